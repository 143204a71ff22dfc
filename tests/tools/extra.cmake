# The readers and writers of files are tested directly, the command as a process.
if(TARGET test_tools)
  add_library(fake_cublas SHARED tools/fake_cublas/fake_cublas.cpp)
  target_link_libraries(fake_cublas PRIVATE lacuna_flags)
  set_target_properties(fake_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION 13
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fake_cublas)
  target_link_libraries(test_tools PRIVATE lacuna_tools)
  add_dependencies(test_tools lacuna_cli fake_cuda fake_cublas)
endif()
# The scripts of tools/dev that use the C ABI, on the CPU. A sanitized library does not load into Python.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(TARGET test_tools AND Python3_Interpreter_FOUND AND NOT LACUNA_SANITIZE)
  add_test(NAME dev_scripts COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_SOURCE_DIR}/tools/dev_scripts_test.py $<TARGET_FILE:lacuna>)
  set_tests_properties(dev_scripts PROPERTIES LABELS tools TIMEOUT 120
    ENVIRONMENT "LACUNA_CACHE_DIR=${CMAKE_BINARY_DIR}/test-cache;PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME mutants COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/mutants_test.py)
  set_tests_properties(mutants PROPERTIES LABELS tools TIMEOUT 120 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
