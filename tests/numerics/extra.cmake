# The same cases on the other CPU executor.
if(LACUNA_LLVM)
  add_test(NAME numerics_interpreter COMMAND test_numerics)
  set_tests_properties(numerics_interpreter PROPERTIES
    LABELS numerics TIMEOUT 1200
    ENVIRONMENT "LACUNA_HOST_PLUGIN=off;LACUNA_CACHE_DIR=${CMAKE_BINARY_DIR}/test-cache")
endif()
# Samples are safetensors files; their reader belongs to the tools.
target_sources(test_numerics PRIVATE ${CMAKE_SOURCE_DIR}/tools/safetensors.cpp ${CMAKE_SOURCE_DIR}/tools/array.cpp)
if(TARGET lacuna_host)
  add_dependencies(test_numerics lacuna_host)
endif()
