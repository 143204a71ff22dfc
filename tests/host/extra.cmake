# The tests open the plugin at run time; without LLVM they skip and say so.
if(TARGET lacuna_host)
  add_dependencies(test_host lacuna_host)
  target_compile_definitions(test_host PRIVATE LACUNA_HAS_HOST_PLUGIN)
endif()
