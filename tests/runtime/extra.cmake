# The wrapper of the C ABI has a Spec and a Shape of its own.
foreach(name launch/arguments launch/branch_args launch/launch_scales mask api/callback api/token_order)
  lacuna_unity_group(runtime_abi runtime/${name}_test.cpp)
endforeach()
# These include both, the compiler's first.
foreach(name launch/workspace cpu/host_plugin)
  set_source_files_properties(runtime/${name}_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
lacuna_unity_group(runtime_both runtime/engine/fork_test.cpp runtime/cpu/host_kernel_test.cpp)

# The driver protocol is tested in a process of its own, against a driver that only takes notes.
add_library(fake_cuda SHARED runtime/fake_gpu/fake_cuda.cpp)
target_link_libraries(fake_cuda PRIVATE lacuna_flags)
set_target_properties(fake_cuda PROPERTIES OUTPUT_NAME cuda SOVERSION 1
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fake_cuda)

add_library(fake_nccl SHARED runtime/fake_gpu/fake_nccl.cpp)
target_link_libraries(fake_nccl PRIVATE lacuna_flags)
set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fake_nccl)

add_executable(test_runtime_gpu runtime/fake_gpu/protocol_test.cpp runtime/fake_gpu/devices_test.cpp
               runtime/fake_gpu/launch_cost_test.cpp
               runtime/fake_gpu/kernels_test.cpp runtime/fake_gpu/events_test.cpp
               runtime/fake_gpu/split_kv_test.cpp runtime/fake_gpu/out_of_memory_test.cpp
               runtime/fake_gpu/branches_test.cpp
               runtime/fake_gpu/shipped_kernels_test.cpp
               runtime/fake_gpu/group_test.cpp
               runtime/fake_gpu/count_allocations.cpp)
# Its operators new and delete are not to be inlined into what it counts.
set_source_files_properties(runtime/fake_gpu/count_allocations.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(test_runtime_gpu PRIVATE lacuna_runtime GTest::gtest GTest::gtest_main)
add_dependencies(test_runtime_gpu fake_cuda fake_nccl)
target_compile_definitions(test_runtime_gpu PRIVATE
  LACUNA_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LACUNA_FAKE_CUDA="$<TARGET_FILE:fake_cuda>"
  LACUNA_FAKE_NCCL="$<TARGET_FILE:fake_nccl>")
target_compile_options(test_runtime_gpu PRIVATE $<$<CONFIG:Release>:-O0>)
lacuna_run_test(runtime_gpu 1200 test_runtime_gpu COST 35)

# A CPU plugin that fails on demand.
add_library(fake_host MODULE runtime/fake_plugin/fake_host.cpp)
target_link_libraries(fake_host PRIVATE lacuna_flags)
set_target_properties(fake_host PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fake_host)
add_dependencies(test_runtime fake_host)
target_compile_definitions(test_runtime PRIVATE LACUNA_FAKE_HOST="$<TARGET_FILE:fake_host>")
