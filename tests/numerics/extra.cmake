# Tensors of many cases, in scalar code.
target_compile_options(test_numerics PRIVATE -O2)
# One process: its cases share kernels, which take longer to compile than to run.
lacuna_run_test(numerics 2400 test_numerics COST 180)
# The same cases on the other CPU executor, which is one program for all kernels, to which a head dim is a number: in the short tier
# fewer lengths and values, no kinds of the head dims 128 and 256 in 16 bits (CpuHeadDims has 512), and nothing whose inputs and
# oracle take longer than the executor: token orders, predictors on the sample.
if(LACUNA_LLVM)
  set(without "")
  if(NOT LACUNA_ALL_TESTS)
    set(without --gtest_filter=-Kinds/*_d256_*:Kinds/*f16_d128_*:Shapes/*_f16_*:NarrowLists/*_b1_h4_2_*:NarrowLists/*_n200_300_*:Video.*:Sample.Predictors*)
  endif()
  lacuna_run_test(numerics_interpreter 1200 test_numerics ${without} COST 95 ENVIRONMENT LACUNA_HOST_PLUGIN=off)
endif()
# Samples are safetensors files; their reader belongs to the tools.
target_link_libraries(test_numerics PRIVATE lacuna_readers)
if(TARGET lacuna_host)
  add_dependencies(test_numerics lacuna_host)
endif()
