# The wrapper of the C ABI has a Spec of its own.
set_source_files_properties(tools/calibrate/calibrate_report_test.cpp tools/calibrate/calibrate_stop_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# The readers and writers of files are tested directly, the command as a process.
if(TARGET test_tools)
  add_library(fake_cublas SHARED tools/fake_cublas/fake_cublas.cpp)
  target_link_libraries(fake_cublas PRIVATE lacuna_flags)
  set_target_properties(fake_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION 13
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fake_cublas)
  target_link_libraries(test_tools PRIVATE lacuna_tools)
  add_dependencies(test_tools lacuna_cli fake_cuda fake_cublas fake_host)
  target_compile_definitions(test_tools PRIVATE LACUNA_FAKE_HOST="$<TARGET_FILE:fake_host>")
endif()
# The readers and writers alone, which meet files from anywhere: under sanitizers the short tier has no more of the tools.
set(reader_tests io/array io/file_io io/npy io/safetensors)
list(TRANSFORM reader_tests REPLACE "(.+)" "tools/\\1_test.cpp")
add_executable(test_readers EXCLUDE_FROM_ALL ${reader_tests} tools/command.cpp)
target_link_libraries(test_readers PRIVATE lacuna_readers nlohmann_json::nlohmann_json GTest::gtest GTest::gtest_main)
target_compile_definitions(test_readers PRIVATE
  LACUNA_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LACUNA_BINARY_DIR="${CMAKE_BINARY_DIR}")

# The scripts of tools/dev, once for all builds.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(TARGET test_tools AND Python3_Interpreter_FOUND AND NOT LACUNA_SANITIZE)
  add_test(NAME dev_scripts COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/dev_scripts_test.py)
  set_tests_properties(dev_scripts PROPERTIES LABELS tools TIMEOUT 120 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  foreach(part draw trial record)
    add_test(NAME mutants_${part} COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/mutants/${part}_test.py)
    set_tests_properties(mutants_${part} PROPERTIES LABELS tools TIMEOUT 120 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
  # A primitive of the predictor that only this test has: in the long tier it is built and asked, too.
  set(build_primitive "")
  if(LACUNA_ALL_TESTS)
    set(build_primitive --build ${CMAKE_BINARY_DIR}/primitive)
  endif()
  add_test(NAME primitive COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/primitive/primitive_test.py ${build_primitive})
  set_tests_properties(primitive PROPERTIES LABELS tools TIMEOUT 3600 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
