# The readers and writers of files are tested directly, the command as a process.
if(TARGET test_tools)
  foreach(part array file_io npy safetensors table)
    target_sources(test_tools PRIVATE ${CMAKE_SOURCE_DIR}/tools/${part}.cpp)
  endforeach()
  add_dependencies(test_tools lacuna_cli)
endif()
