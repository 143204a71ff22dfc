# The readers and writers of files are tested directly, the command as a process.
if(TARGET test_tools)
  target_link_libraries(test_tools PRIVATE lacuna_tools)
  add_dependencies(test_tools lacuna_cli)
endif()
