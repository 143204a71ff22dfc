# Tensors, masks and references of many cases, in scalar code: once for the tests here and for those of device/.
file(GLOB numerics_sources CONFIGURE_DEPENDS numerics/harness/*.cpp numerics/harness/*/*.cpp numerics/variants/*.cpp)
add_library(lacuna_numerics STATIC EXCLUDE_FROM_ALL ${numerics_sources})
target_compile_options(lacuna_numerics PRIVATE -O2)
target_compile_definitions(lacuna_numerics PRIVATE LACUNA_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LACUNA_BINARY_DIR="${CMAKE_BINARY_DIR}")
target_link_libraries(lacuna_numerics PUBLIC lacuna_runtime lacuna_oracle nlohmann_json::nlohmann_json lacuna_tier)
target_link_libraries(test_numerics PRIVATE lacuna_numerics)
# One process: its cases share kernels, which take longer to compile than to run.
lacuna_run_test(numerics 2400 test_numerics COST 180)
# The other CPU executor is one program for all kernels, to which a head dim is a number. Cases of single launches (Attend, Predicted) ask
# it beside the first one, since inputs and oracle take longer than it does. The rest is here: in the short tier without lengths in f16,
# token orders and predictors on the sample.
if(LACUNA_LLVM)
  set(without --gtest_filter=-*/Attend.*:*/Predicted.*:RunRandomSpecs.Agree*)
  if(NOT LACUNA_ALL_TESTS)
    string(APPEND without :Shapes/*_f16_*:Video.*:Sample.Predictors*)
  endif()
  lacuna_run_test(numerics_interpreter 1200 test_numerics ${without} COST 45 ENVIRONMENT LACUNA_HOST_PLUGIN=off)
endif()
# Samples are safetensors files; their reader belongs to the tools.
target_link_libraries(test_numerics PRIVATE lacuna_readers)
if(TARGET lacuna_host)
  add_dependencies(test_numerics lacuna_host)
endif()
