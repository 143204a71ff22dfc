# The argument structs of the device headers, which are plain C++.
target_include_directories(test_emit PRIVATE ${CMAKE_SOURCE_DIR}/templates)
