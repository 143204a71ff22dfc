# Generated kernels, compiled as C++ and run on emulated blocks (device/README.md).
file(GLOB emulation_sources CONFIGURE_DEPENDS device/emulation/*.cpp)
file(GLOB variant_sources CONFIGURE_DEPENDS numerics/variants*.cpp)
target_sources(test_device PRIVATE ${emulation_sources} ${variant_sources}
  numerics/check.cpp numerics/harness.cpp numerics/tensors.cpp)
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
  set(arch sm_100a)  # mma
  if(ARGC GREATER 3)
    set(arch ${ARGV3})
  endif()
  get_filename_component(name ${spec} NAME_WE)
  string(REPLACE - _ identifier ${name})
  set(symbol ${identifier}_d${head_dim}_${dtype}_${arch})
  set(path ${CMAKE_CURRENT_BINARY_DIR}/device/${symbol})
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/device/stand_in.cmake)
  set(template ${CMAKE_CURRENT_SOURCE_DIR}/device/kernel.cpp.in)
  add_custom_command(OUTPUT ${path}.cu ${path}.cpp
    COMMAND lacuna_cli emit --stage cuda ${spec} --arch ${arch} --head-dim ${head_dim}
            --dtype ${dtype} -o ${path}.generated.cu
    COMMAND ${CMAKE_COMMAND} -DGENERATED=${path}.generated.cu -DTEMPLATE=${template}
            -DSYMBOL=${symbol} -DOUTPUT=${path} -P ${script}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    DEPENDS lacuna_cli ${CMAKE_SOURCE_DIR}/${spec} ${script} ${template}
    COMMENT "Generating ${symbol}.cu" VERBATIM)
  set_source_files_properties(${path}.cpp PROPERTIES OBJECT_DEPENDS ${path}.cu)
  target_sources(device_kernels PRIVATE ${path}.cpp)
  set(device_kernels_externs
    "${device_kernels_externs}extern const std::vector<emulation::NamedKernel> ${symbol};\n"
    PARENT_SCOPE)
  set(device_kernels_table
    "${device_kernels_table}      {\"${spec}\", ${head_dim}, \"${dtype}\", \"${arch}\", &${symbol}},\n" PARENT_SCOPE)
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
# All stages of a predictor, one after the other.
foreach(name sparge sparge-topk sale fg-attn-cached fg-attn-pooled xattention streaming radial
             minference-vertical-slash topk-blocks external-mask sparge-video)
  device_kernel(specs/${name}.json 64 bf16)
endforeach()
foreach(name sparge sale fg-attn-pooled)
  device_kernel(specs/${name}.json 128 f16)
endforeach()

# The wgmma family.
foreach(name dense document bsfa skip-softmax external-mask sparge sparge-topk topk-blocks sale fg-attn-pooled
             minference-vertical-slash)
  device_kernel(specs/${name}.json 64 bf16 sm_90a)
endforeach()
foreach(name dense bsfa sparge-topk fg-attn-pooled)
  device_kernel(specs/${name}.json 128 f16 sm_90a)
endforeach()
device_kernel(specs/dense.json 256 bf16 sm_90a)
foreach(name int8-lists int8-lists-narrow int8-lists-causal int8-tile-gate int8-gap-or-max
             int8-closing-gate)
  device_kernel(tests/device/specs/${name}.json 64 bf16 sm_90a)
endforeach()
device_kernel(tests/device/specs/int8-lists.json 128 f16 sm_90a)

# Split rows, whose results are merged, in both families.
foreach(arch sm_100a sm_90a)
  device_kernel(specs/flash-decoding.json 128 bf16 ${arch})
  foreach(name split-dense split-window split-lists split-lists-narrow split-int8-lists
               split-streaming split-topk-blocks)
    device_kernel(tests/device/specs/${name}.json 64 bf16 ${arch})
  endforeach()
endforeach()
device_kernel(tests/device/specs/split-dense.json 256 f16 sm_90a)
device_kernel(tests/device/specs/split-dense.json 96 f16)

# Stages by themselves: stages/*.cpp configures a stage's template by hand and exports it as a Kernel.
file(GLOB stage_kernels CONFIGURE_DEPENDS device/stages/*.cpp)
target_sources(device_kernels PRIVATE ${stage_kernels})
# Their argument structs.
target_include_directories(test_device PRIVATE ${CMAKE_SOURCE_DIR}/templates)

configure_file(device/kernels.cpp.in device/kernels.cpp @ONLY)
target_sources(test_device PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/device/kernels.cpp)
