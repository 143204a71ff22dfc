# Generated kernels, compiled as C++ and run on emulated blocks (device/README.md).
file(GLOB emulation_sources CONFIGURE_DEPENDS device/emulation/*.cpp)
target_sources(test_device PRIVATE ${emulation_sources}
  numerics/harness.cpp numerics/tensors.cpp numerics/variants.cpp)
# Also in unoptimised builds: the emulation executes every instruction of every thread.
set_source_files_properties(${emulation_sources} PROPERTIES COMPILE_OPTIONS "-O2;-U_FORTIFY_SOURCE")

add_library(device_kernels OBJECT)
target_link_libraries(device_kernels PRIVATE lacuna_flags)
target_link_libraries(test_device PRIVATE device_kernels)
# The stand-ins for arch/ are found before the real ones. Hooks do not use all their arguments.
target_include_directories(device_kernels BEFORE PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR}/device/emulation ${CMAKE_SOURCE_DIR}/templates)
target_compile_options(device_kernels PRIVATE
  -O2 -ffp-contract=off -Wno-unknown-pragmas -Wno-unused-parameter)

set(device_kernels_table "")
set(device_kernels_externs "")
function(device_kernel spec head_dim dtype)
  get_filename_component(name ${spec} NAME_WE)
  string(REPLACE - _ identifier ${name})
  set(KERNEL_ENTRY lacuna_attend_${identifier})
  set(KERNEL_SYMBOL ${identifier}_d${head_dim}_${dtype})
  set(path ${CMAKE_CURRENT_BINARY_DIR}/device/${KERNEL_SYMBOL})
  set(KERNEL_SOURCE ${path}.cu)
  add_custom_command(OUTPUT ${path}.cu
    COMMAND lacuna_cli emit --stage cuda ${spec} --arch sm_90a --head-dim ${head_dim}
            --dtype ${dtype} -o ${path}.new.cu
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${path}.new.cu ${path}.cu
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DEPENDS lacuna_cli ${CMAKE_SOURCE_DIR}/${spec}
    COMMENT "Generating ${KERNEL_SYMBOL}.cu" VERBATIM)
  configure_file(device/kernel.cpp.in ${path}.cpp @ONLY)
  set_source_files_properties(${path}.cpp PROPERTIES OBJECT_DEPENDS ${path}.cu)
  target_sources(device_kernels PRIVATE ${path}.cpp)
  set(device_kernels_externs
    "${device_kernels_externs}extern const emulation::Kernel ${KERNEL_SYMBOL};\n" PARENT_SCOPE)
  set(device_kernels_table
    "${device_kernels_table}      {\"${spec}\", ${head_dim}, \"${dtype}\", &${KERNEL_SYMBOL}},\n" PARENT_SCOPE)
endfunction()

foreach(name dense window document softcap alibi bsfa skip-softmax)
  device_kernel(specs/${name}.json 64 bf16)
  device_kernel(specs/${name}.json 128 f16)
endforeach()
foreach(name dense bsfa skip-softmax)
  device_kernel(specs/${name}.json 96 f16)
  device_kernel(specs/${name}.json 256 bf16)
endforeach()
foreach(name warp-gate tile-gate-pv tile-gate-exp lists lists-descending)
  device_kernel(tests/device/specs/${name}.json 128 bf16)
endforeach()
device_kernel(tests/device/specs/warp-gate.json 256 f16)

configure_file(device/kernels.cpp.in device/kernels.cpp @ONLY)
target_sources(test_device PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/device/kernels.cpp)
