# Generated kernels, compiled as C++ and run on emulated blocks (device/README.md).
file(GLOB generated_tests CONFIGURE_DEPENDS device/*.cpp)
file(GLOB emulation_sources CONFIGURE_DEPENDS device/emulation/*.cpp device/emulation/races/*.cpp)
file(GLOB single_tests CONFIGURE_DEPENDS device/single_tests/*.cpp)
target_sources(test_device PRIVATE ${emulation_sources} ${single_tests})
target_link_libraries(test_device PRIVATE lacuna_numerics)
# Also in unoptimised builds: the emulation executes every instruction of every thread.
set_source_files_properties(${emulation_sources} PROPERTIES COMPILE_OPTIONS -O2)
target_compile_options(test_device PRIVATE -U_FORTIFY_SOURCE)
# Device headers have a Normalise of their own: what includes them is a group apart.
lacuna_unity_group(single ${single_tests})
lacuna_unity_group(generated ${generated_tests})
set_source_files_properties(${emulation_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# As they are, and with a call for each access to memory (emulation/races/).
# Traced ones run as fast with less optimisation, which compiles them in three fifths of the time: what is traced takes it.
foreach(library device_kernels traced_kernels)
  set(level -O2)
  if(library STREQUAL traced_kernels)
    set(level -O1)
  endif()
  add_library(${library} OBJECT)
  target_link_libraries(${library} PRIVATE lacuna_flags)
  # The stand-ins for arch/ are found before the real ones. Hooks do not use all their arguments, and their formulas
  # have the parentheses that C++ asks for.
  target_include_directories(${library} BEFORE PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/device/emulation ${CMAKE_SOURCE_DIR}/templates)
  target_compile_options(${library} PRIVATE
    ${level} -ffp-contract=off -Wno-unknown-pragmas -Wno-unused-parameter -Wno-parentheses)
  set_target_properties(${library} PROPERTIES EXCLUDE_FROM_ALL ON UNITY_BUILD OFF)
endforeach()
target_compile_options(traced_kernels PRIVATE -fsanitize=thread)
target_link_libraries(test_device PRIVATE device_kernels)

# The device headers take almost as long to compile as what one kernel makes of them.
set(LACUNA_KERNELS_PER_UNIT 8 CACHE STRING "Generated kernels that are compiled as one (tests/device)")

foreach(library device_kernels traced_kernels)
  set(${library}_table "")
  set(${library}_externs "")
  set(${library}_symbols "")
endforeach()
function(device_kernel spec head_dim dtype)
  set(arch sm_100a)  # mma
  if(ARGC GREATER 3)
    set(arch ${ARGV3})
  endif()
  set(batch uniform)
  set(suffix "")
  if(ARGC GREATER 4)
    set(batch ${ARGV4})
    if(NOT batch STREQUAL uniform)
      set(suffix _${batch})
    endif()
  endif()
  set(kv same)
  if(ARGC GREATER 5)
    set(kv ${ARGV5})
    if(NOT kv STREQUAL same)
      string(APPEND suffix _${kv})
    endif()
  endif()
  set(branch "")
  set(of_branch "")
  if(ARGC GREATER 6)
    set(branch ${ARGV6})
    set(of_branch --branch ${branch})
    string(APPEND suffix _${branch})
  endif()
  get_filename_component(name ${spec} NAME_WE)
  string(REPLACE - _ identifier ${name})
  set(symbol ${identifier}_d${head_dim}_${dtype}_${arch}${suffix})
  set(device_symbols ${device_symbols} ${symbol} PARENT_SCOPE)
  set(path ${CMAKE_CURRENT_BINARY_DIR}/device/${symbol})
  set(script ${CMAKE_CURRENT_SOURCE_DIR}/device/stand_in.cmake)
  set(template ${CMAKE_CURRENT_SOURCE_DIR}/device/kernel.in)
  add_custom_command(OUTPUT ${path}.cu ${path}.headers ${path}.kernels
    COMMAND lacuna_cli emit --form cuda ${spec} --arch ${arch} --head-dim ${head_dim}
            --dtype ${dtype} --batch ${batch} --kv ${kv} ${of_branch} -o ${path}.generated.cu
    COMMAND ${CMAKE_COMMAND} -DGENERATED=${path}.generated.cu -DTEMPLATE=${template}
            -DSYMBOL=${symbol} -DOUTPUT=${path} -P ${script}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    DEPENDS lacuna_cli ${CMAKE_SOURCE_DIR}/${spec} ${script} ${template}
    COMMENT "Generating ${symbol}.cu" VERBATIM)
  set(libraries device_kernels)
  if((LACUNA_ALL_TESTS AND head_dim EQUAL 64) OR (NOT LACUNA_ALL_TESTS AND symbol IN_LIST short_tier))
    list(APPEND libraries traced_kernels)
  endif()
  foreach(library ${libraries})
    set(${library}_symbols ${${library}_symbols} ${symbol} PARENT_SCOPE)
    set(${library}_externs
      "${${library}_externs}extern const std::span<const emulation::NamedKernel> ${symbol};\n" PARENT_SCOPE)
    set(${library}_table
      "${${library}_table}      {\"${spec}\", ${head_dim}, \"${dtype}\", \"${arch}\", &${symbol}, \"${batch}\", \"${kv}\", \"${branch}\"},\n"
      PARENT_SCOPE)
  endforeach()
endfunction()

# The short tier: each spec in each family that it has, each head dim and type in each family; with calls
# for each access, so that one run shows results and races.
set(short_tier
  dense_d128_f16_sm_100a dense_d96_f16_sm_100a window_d64_bf16_sm_100a document_d64_bf16_sm_100a
  softcap_d64_bf16_sm_100a alibi_d64_bf16_sm_100a bsfa_d64_bf16_sm_100a skip_softmax_d256_bf16_sm_100a
  skip_softmax_d128_f16_sm_100a warp_gate_d128_bf16_sm_100a tile_gate_pv_d128_bf16_sm_100a
  tile_gate_exp_d128_bf16_sm_100a lists_d128_bf16_sm_100a lists_descending_d128_bf16_sm_100a
  sparge_d128_f16_sm_100a sparge_topk_d64_bf16_sm_100a sale_d64_bf16_sm_100a
  fg_attn_cached_d64_bf16_sm_100a fg_attn_pooled_d64_bf16_sm_100a xattention_d64_bf16_sm_100a
  relmax_d64_bf16_sm_100a flashprefill_d64_bf16_sm_100a cascade_d64_bf16_sm_100a
  seer_attention_d64_bf16_sm_100a quest_d64_bf16_sm_100a sampled_rows_d64_bf16_sm_100a
  bands_d64_bf16_sm_100a prism_d128_f16_sm_100a
  deepseek_indexer_d64_bf16_sm_100a index_tiles_d64_bf16_sm_100a index_rows_d128_f16_sm_100a
  twilight_d64_bf16_sm_100a
  streaming_d64_bf16_sm_100a radial_d64_bf16_sm_100a minference_vertical_slash_d64_bf16_sm_100a
  topk_blocks_d64_bf16_sm_100a external_mask_d64_bf16_sm_100a sparge_video_d64_bf16_sm_100a
  split_dense_d96_f16_sm_100a split_window_d64_bf16_sm_100a split_lists_d64_bf16_sm_100a
  split_int8_lists_d64_bf16_sm_100a split_streaming_d64_bf16_sm_100a
  dense_d64_bf16_sm_90a dense_d256_bf16_sm_90a document_d64_bf16_sm_90a alibi_d64_bf16_sm_90a
  softcap_d64_bf16_sm_90a softcap_reading_d64_bf16_sm_90a distance_table_d64_bf16_sm_90a
  slanted_table_d64_bf16_sm_90a
  pair_table_d64_bf16_sm_90a image_bias_d64_bf16_sm_90a
  long_formulas_d64_bf16_sm_90a long_formulas_d128_f16_sm_100a
  long_columns_d64_bf16_sm_90a long_columns_d64_bf16_sm_100a
  dilated_d64_bf16_sm_90a dilated_d128_f16_sm_100a kept_distances_d128_bf16_sm_90a
  kept_distances_d128_bf16_sm_100a strided_lists_d64_f16_sm_90a strided_lists_d64_f16_sm_100a
  strided_pattern_d64_bf16_sm_90a strided_pattern_d64_bf16_sm_100a
  chunks_d64_bf16_sm_90a chunks_d128_f16_sm_90a chunks_d64_bf16_sm_100a chunks_before_d64_bf16_sm_90a
  chunks_before_d64_bf16_sm_100a chunks_d64_bf16_sm_90a_sequences chunks_before_d64_bf16_sm_100a_pages
  longformer_d64_bf16_sm_90a longformer_d128_f16_sm_100a int8_dilated_d64_bf16_sm_90a
  int8_dilated_d64_bf16_sm_100a dilated_gate_d64_bf16_sm_90a dilated_gate_d64_bf16_sm_100a
  dilated_d64_bf16_sm_90a_sequences dilated_d64_bf16_sm_100a_pages
  bucket_bias_d64_bf16_sm_90a bucket_bias_d64_bf16_sm_100a t5_bias_d128_f16_sm_90a
  t5_bias_d64_bf16_sm_90a_sequences t5_bias_d64_bf16_sm_100a_pages
  fire_bias_d64_bf16_sm_90a taylor_weights_d64_bf16_sm_100a taylor_weights_d64_bf16_sm_90a bsfa_d128_f16_sm_90a
  bsfa_d64_bf16_sm_90a skip_softmax_d64_bf16_sm_90a late_tile_gate_d64_bf16_sm_90a
  external_mask_d64_bf16_sm_90a sparge_d64_bf16_sm_90a
  sparge_topk_d128_f16_sm_90a topk_blocks_d64_bf16_sm_90a sale_d64_bf16_sm_90a
  cascade_d64_bf16_sm_90a xattention_d64_bf16_sm_90a integer_softmax_d64_bf16_sm_90a
  integer_sums_d128_f16_sm_90a twilight_d64_bf16_sm_90a
  fg_attn_pooled_d128_f16_sm_90a minference_vertical_slash_d64_bf16_sm_90a quest_d64_bf16_sm_90a
  columns_of_pairs_d64_bf16_sm_90a int8_lists_d64_bf16_sm_90a
  int8_lists_narrow_d64_bf16_sm_90a int8_lists_causal_d64_bf16_sm_90a int8_tile_gate_d64_bf16_sm_90a
  int8_gap_or_max_d64_bf16_sm_90a int8_closing_gate_d64_bf16_sm_90a flash_decoding_d128_bf16_sm_90a
  split_dense_d256_f16_sm_90a split_window_d64_bf16_sm_90a split_lists_narrow_d64_bf16_sm_90a
  split_int8_lists_d64_bf16_sm_90a split_scores_d64_bf16_sm_90a split_topk_blocks_d64_bf16_sm_90a
  sink_d64_bf16_sm_90a row_sink_d128_f16_sm_100a int8_sink_d64_bf16_sm_90a int8_sink_d64_bf16_sm_100a
  split_row_sink_d64_bf16_sm_100a split_row_sink_d64_bf16_sm_90a
  sigmoid_d64_bf16_sm_100a sigmoid_d64_bf16_sm_90a sigmoid_d64_bf16_sm_90a_sequences
  hstu_d64_bf16_sm_90a relu_squared_d64_bf16_sm_100a relu_squared_d64_bf16_sm_90a retention_d128_f16_sm_100a
  retention_d128_f16_sm_90a linear_dilated_d64_bf16_sm_100a linear_dilated_d64_bf16_sm_90a
  int8_linear_d64_bf16_sm_100a columns_of_scores_d64_bf16_sm_100a columns_of_scores_d64_bf16_sm_90a
  divided_window_d64_bf16_sm_100a divided_window_d64_bf16_sm_90a
  values_d64_bf16_sm_100a values_d64_bf16_sm_90a
  documents_d64_bf16_sm_100a documents_d64_bf16_sm_90a pair_mask_d128_f16_sm_100a pair_mask_d128_f16_sm_90a
  pair_gate_d64_bf16_sm_100a pair_gate_d64_bf16_sm_90a pair_lists_d64_bf16_sm_100a pair_lists_d64_bf16_sm_90a
  dense_d64_bf16_sm_90a_sequences dense_d64_bf16_sm_90a_pages sink_d64_bf16_sm_90a_sequences sink_d64_bf16_sm_100a_pages
  flash_decoding_d128_bf16_sm_90a_pages alibi_d64_bf16_sm_90a_pages flash_decoding_d128_bf16_sm_100a_pages
  window_d64_f16_sm_90a_pages dense_d64_bf16_sm_100a_sequences
  quest_d64_bf16_sm_100a_pages streaming_d64_bf16_sm_100a_sequences skip_softmax_d64_bf16_sm_100a_pages
  dense_d64_bf16_sm_100a_pages_e4m3 flash_decoding_d128_f16_sm_100a_sequences_e4m3
  dense_d64_bf16_sm_90a_e4m3 flash_decoding_d128_bf16_sm_90a_e4m3 dense_d64_bf16_sm_90a_sequences_e4m3
  dense_d64_bf16_sm_90a_pages_e4m3 flash_decoding_d128_f16_sm_90a_pages_e4m3
  sparge_d64_bf16_sm_100a_e4m3 sparge_video_d64_bf16_sm_100a_e4m3 topk_blocks_d64_bf16_sm_90a_e4m3
  quest_d64_bf16_sm_100a_pages_e4m3 topk_blocks_d64_bf16_sm_100a_pages_e4m3
  weighted_branches_d64_f16_sm_100a_pages_e4m3_tokens weighted_branches_d64_f16_sm_100a_pages_e4m3_short
  weighted_branches_d64_f16_sm_100a_pages_e4m3_long
  topk_blocks_d64_bf16_sm_100a_pages relmax_d64_bf16_sm_100a_sequences
  streaming_d64_bf16_sm_90a_sequences relmax_d64_bf16_sm_90a_pages external_mask_d128_f16_sm_90a_sequences
  topk_blocks_d64_bf16_sm_90a_pages quest_d64_bf16_sm_90a_pages
  minference_vertical_slash_d64_bf16_sm_90a_pages skip_softmax_d64_bf16_sm_90a_sequences bsfa_d64_bf16_sm_90a_pages
  sparge_d64_bf16_sm_90a_sequences sale_d64_bf16_sm_90a_pages int8_tile_gate_d64_bf16_sm_90a_sequences
  int8_dilated_d64_bf16_sm_90a_pages sparge_video_d64_bf16_sm_90a_pages ordered_window_d64_bf16_sm_90a_sequences
  dense_d80_bf16_sm_90a dense_d96_bf16_sm_90a flash_decoding_d96_bf16_sm_90a_pages dense_d192_bf16_sm_90a bsfa_d112_f16_sm_100a split_mla_d192_f16_sm_100a
  mla_d192_bf16_sm_90a_pages wide_values_d64_bf16_sm_90a_sequences uneven_widths_d80_f16_sm_90a_sequences
  wide_values_d64_f16_sm_100a_sequences mla_d192_f16_sm_90a_pages_e4m3 wide_values_d64_bf16_sm_90a_sequences_e4m3
  external_mask_d80_f16_sm_90a mla_d192_bf16_sm_90a wide_heads_d576_bf16_sm_100a wide_tile_gate_d512_bf16_sm_100a
  one_warp_d64_bf16_sm_100a split_wide_heads_d576_f16_sm_100a wide_v_of_k_d576_bf16_sm_100a
  latent_index_d576_bf16_sm_100a ordered_tokens_d64_bf16_sm_100a ordered_tokens_d64_bf16_sm_90a
  merged_branches_d64_bf16_sm_100a_near merged_branches_d64_bf16_sm_100a_far
  sunk_branches_d64_bf16_sm_100a_tokens sunk_branches_d64_bf16_sm_100a_queries
  weighted_branches_d128_f16_sm_90a_tokens weighted_branches_d128_f16_sm_90a_short
  weighted_branches_d128_f16_sm_90a_long
  differential_d128_bf16_sm_100a_signal differential_d128_bf16_sm_100a_noise
  banded_branches_d128_bf16_sm_90a_middle banded_branches_d128_bf16_sm_90a_first
  merged_branches_d64_bf16_sm_100a_sequences_near merged_branches_d64_bf16_sm_100a_sequences_far
  weighted_branches_d64_f16_sm_100a_pages_tokens weighted_branches_d64_f16_sm_100a_pages_short
  weighted_branches_d64_f16_sm_100a_pages_long
  pooled_branches_d64_bf16_sm_90a_queries pooled_branches_d64_bf16_sm_90a_tokens
  pooled_branches_d64_bf16_sm_90a_both
  pooled_branches_d64_bf16_sm_100a_sequences_queries pooled_branches_d64_bf16_sm_100a_sequences_tokens
  pooled_branches_d64_bf16_sm_100a_sequences_both
  sparge_video_d64_bf16_sm_100a_pages ordered_window_d64_bf16_sm_100a_sequences ordered_branches_d64_bf16_sm_100a_pages_both ordered_branches_d64_bf16_sm_100a_pages_keys
  ordered_branches_d64_bf16_sm_100a_pages_tokens ordered_branches_d64_bf16_sm_90a_both
  ordered_branches_d64_bf16_sm_90a_keys ordered_branches_d64_bf16_sm_90a_tokens
  ordered_merged_d64_f16_sm_100a_sequences_tokens ordered_merged_d64_f16_sm_100a_sequences_means)

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
device_kernel(tests/device/specs/late-tile-gate.json 64 bf16 sm_90a)
# All kernels of a predictor, one after the other.
foreach(name sparge sparge-topk sale fg-attn-cached fg-attn-pooled xattention relmax flashprefill cascade seer-attention quest streaming radial
             minference-vertical-slash topk-blocks external-mask sparge-video)
  device_kernel(specs/${name}.json 64 bf16)
endforeach()
foreach(name sparge sale fg-attn-pooled)
  device_kernel(specs/${name}.json 128 f16)
endforeach()

# A sample of each tile's queries.
device_kernel(tests/device/specs/sampled-rows.json 64 bf16)
device_kernel(tests/device/specs/bands.json 64 bf16)
device_kernel(specs/prism.json 128 f16)

# An index of vectors of its own; a budget of pages, of which a second step keeps some.
device_kernel(specs/deepseek-indexer.json 64 bf16)
device_kernel(tests/device/specs/index-tiles.json 64 bf16)
device_kernel(tests/device/specs/index-rows.json 128 f16)
device_kernel(specs/twilight.json 64 bf16)

# The wgmma family.
foreach(name dense document alibi softcap bsfa skip-softmax external-mask sparge sparge-topk topk-blocks sale cascade
             fg-attn-pooled minference-vertical-slash quest)
  device_kernel(specs/${name}.json 64 bf16 sm_90a)
endforeach()
foreach(name dense bsfa skip-softmax sparge-topk fg-attn-pooled)
  device_kernel(specs/${name}.json 128 f16 sm_90a)
endforeach()
device_kernel(tests/device/specs/columns-of-pairs.json 64 bf16 sm_90a)
device_kernel(specs/dense.json 256 bf16 sm_90a)
device_kernel(tests/device/specs/integer-softmax.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/integer-sums.json 128 f16 sm_90a)
device_kernel(specs/twilight.json 64 bf16 sm_90a)
device_kernel(specs/xattention.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/distance-table.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/distance-table.json 128 f16)
device_kernel(tests/device/specs/slanted-table.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/slanted-table.json 128 f16)
device_kernel(tests/device/specs/pair-table.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/pair-table.json 128 f16)
device_kernel(tests/device/specs/image-bias.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/image-bias.json 128 f16)
# Formulas that are worked out in loops over blocks of keys.
device_kernel(tests/device/specs/long-formulas.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/long-formulas.json 128 f16)
device_kernel(tests/device/specs/long-columns.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/long-columns.json 64 bf16)
# Formulas of the distance, which the lanes of a warp work out for one another; heads of sequences share warps.
foreach(arch sm_100a sm_90a)
  device_kernel(tests/device/specs/bucket-bias.json 64 bf16 ${arch})
  device_kernel(specs/t5-bias.json 128 f16 ${arch})
endforeach()
device_kernel(specs/t5-bias.json 64 bf16 sm_90a sequences)
device_kernel(specs/t5-bias.json 64 bf16 sm_100a pages)
device_kernel(tests/device/specs/fire-bias.json 64 bf16 sm_90a)
# Scores of -inf, also all of a row's.
device_kernel(tests/device/specs/taylor-weights.json 64 bf16 sm_100a)
device_kernel(tests/device/specs/taylor-weights.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/taylor-weights.json 128 f16 sm_90a)
foreach(name int8-lists int8-lists-narrow int8-lists-causal int8-tile-gate int8-gap-or-max
             int8-closing-gate)
  device_kernel(tests/device/specs/${name}.json 64 bf16 sm_90a)
endforeach()
device_kernel(tests/device/specs/int8-lists.json 128 f16 sm_90a)

# Sinks, and an LSE in base 2.
foreach(arch sm_100a sm_90a)
  device_kernel(specs/sink.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/row-sink.json 128 f16 ${arch})
  device_kernel(tests/device/specs/int8-sink.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/split-row-sink.json 64 bf16 ${arch})
endforeach()

# Weights without a denominator: sigmoids, and scores themselves.
foreach(arch sm_100a sm_90a)
  device_kernel(specs/sigmoid.json 64 bf16 ${arch})
  foreach(name relu-squared linear-dilated columns-of-scores)
    device_kernel(tests/device/specs/${name}.json 64 bf16 ${arch})
  endforeach()
  device_kernel(tests/device/specs/retention.json 128 f16 ${arch})
endforeach()
device_kernel(specs/sigmoid.json 128 f16 sm_90a)
device_kernel(specs/sigmoid.json 64 bf16 sm_90a sequences)
device_kernel(specs/hstu.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/int8-linear.json 64 bf16)

# Queries that each product reads.
device_kernel(tests/device/specs/softcap-reading.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/softcap-reading.json 128 f16 sm_90a)

# Split rows, whose results are merged, in both families.
foreach(arch sm_100a sm_90a)
  device_kernel(specs/flash-decoding.json 128 bf16 ${arch})
  foreach(name split-dense split-window split-lists split-lists-narrow split-int8-lists
               split-streaming split-topk-blocks split-scores)
    device_kernel(tests/device/specs/${name}.json 64 bf16 ${arch})
  endforeach()
endforeach()
device_kernel(tests/device/specs/split-dense.json 256 f16 sm_90a)
device_kernel(tests/device/specs/split-dense.json 96 f16)

# Rows that are no whole panels of 64 elements, wide ones, and rows of V of a width of their own.
device_kernel(specs/dense.json 96 bf16 sm_90a)
device_kernel(specs/bsfa.json 96 bf16 sm_90a)
foreach(arch sm_100a sm_90a)
  device_kernel(specs/dense.json 80 bf16 ${arch})
  device_kernel(specs/dense.json 192 bf16 ${arch})
  device_kernel(specs/bsfa.json 112 f16 ${arch})
  device_kernel(specs/external-mask.json 80 f16 ${arch})
  device_kernel(tests/device/specs/mla.json 192 bf16 ${arch})
  device_kernel(tests/device/specs/mla-tile-gate.json 192 f16 ${arch})
  device_kernel(tests/device/specs/split-mla.json 192 f16 ${arch})
endforeach()

# Blocks of one warp.
device_kernel(tests/device/specs/one-warp.json 64 bf16)

# Rows of O that warps share.
device_kernel(tests/device/specs/wide-heads.json 576 bf16)
device_kernel(tests/device/specs/split-wide-heads.json 576 f16)
device_kernel(tests/device/specs/wide-v-of-k.json 576 bf16)
device_kernel(tests/device/specs/latent-index.json 576 bf16)

# Masks that read tensors for each pair of tokens.
foreach(arch sm_100a sm_90a)
  device_kernel(tests/device/specs/documents.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/pair-mask.json 128 f16 ${arch})
  device_kernel(tests/device/specs/pair-gate.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/pair-lists.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/neighbour-tiles.json 64 bf16 ${arch})
endforeach()
device_kernel(tests/device/specs/neighbour-tiles.json 64 f16 sm_100a pages)
device_kernel(tests/device/specs/neighbour-tiles.json 64 bf16 sm_90a sequences)

# Masks with conditions on distance, key or query alone; heads of sequences share warps, and so are asked for each pair.
foreach(arch sm_100a sm_90a)
  device_kernel(tests/device/specs/dilated.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/dilated.json 128 f16 ${arch})
  device_kernel(tests/device/specs/kept-distances.json 128 bf16 ${arch})
  device_kernel(tests/device/specs/strided-pattern.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/strided-lists.json 64 f16 ${arch})
  device_kernel(tests/device/specs/int8-dilated.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/dilated-gate.json 64 bf16 ${arch})
endforeach()
device_kernel(specs/longformer.json 64 bf16 sm_90a)
device_kernel(specs/longformer.json 128 f16)
device_kernel(tests/device/specs/dilated.json 64 bf16 sm_90a sequences)
device_kernel(tests/device/specs/dilated.json 64 bf16 sm_100a pages)

# Ranges of keys that end at multiples of a parameter; by wgmma of three consumer warpgroups and of two.
foreach(arch sm_100a sm_90a)
  device_kernel(tests/device/specs/chunks.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/chunks.json 128 f16 ${arch})
  device_kernel(tests/device/specs/chunks-before.json 64 bf16 ${arch})
endforeach()
device_kernel(tests/device/specs/chunks.json 64 bf16 sm_90a sequences)
device_kernel(tests/device/specs/chunks-before.json 64 bf16 sm_100a pages)

# Tokens in another order, of which formulas see the caller's.
device_kernel(tests/device/specs/ordered-tokens.json 64 bf16)
device_kernel(tests/device/specs/ordered-tokens.json 64 bf16 sm_90a)
device_kernel(tests/device/specs/wide-tile-gate.json 512 bf16)

# Masks that divide; integers, bits, hashes and tables of many shapes.
foreach(arch sm_100a sm_90a)
  device_kernel(tests/device/specs/divided-window.json 64 bf16 ${arch})
  device_kernel(tests/device/specs/values.json 64 bf16 ${arch})
endforeach()

# Branches of a spec, merged and added.
foreach(arch sm_100a sm_90a)
  foreach(branch near far)
    device_kernel(tests/device/specs/merged-branches.json 64 bf16 ${arch} uniform same ${branch})
  endforeach()
  foreach(branch tokens short long)
    device_kernel(tests/device/specs/weighted-branches.json 128 f16 ${arch} uniform same ${branch})
  endforeach()
  # A sink in each softmax.
  foreach(branch tokens queries)
    device_kernel(tests/device/specs/sunk-branches.json 64 bf16 ${arch} uniform same ${branch})
  endforeach()
  # Means of queries.
  foreach(branch queries tokens both)
    device_kernel(tests/device/specs/pooled-branches.json 64 bf16 ${arch} uniform same ${branch})
  endforeach()
  # Bands of the head dim, which attend takes from rows of 128.
  foreach(branch signal noise)
    device_kernel(specs/differential.json 128 bf16 ${arch} uniform same ${branch})
  endforeach()
  foreach(branch middle first)
    device_kernel(tests/device/specs/banded-branches.json 128 bf16 ${arch} uniform same ${branch})
  endforeach()
  # Tokens in another order than the caller's.
  foreach(branch both keys tokens)
    device_kernel(tests/device/specs/ordered-branches.json 64 bf16 ${arch} uniform same ${branch})
  endforeach()
endforeach()

# The same of batches of sequences; by wgmma where a branch attends to tokens as they are.
foreach(branch near far)
  device_kernel(tests/device/specs/merged-branches.json 64 bf16 sm_100a sequences same ${branch})
endforeach()
foreach(branch near far)
  device_kernel(tests/device/specs/merged-branches.json 64 bf16 sm_90a pages same ${branch})
endforeach()
foreach(branch tokens short long)
  device_kernel(tests/device/specs/weighted-branches.json 64 f16 sm_100a pages same ${branch})
endforeach()
foreach(branch tokens short long)
  device_kernel(tests/device/specs/weighted-branches.json 64 bf16 sm_90a sequences same ${branch})
endforeach()
foreach(branch signal noise)
  device_kernel(specs/differential.json 128 bf16 sm_90a pages same ${branch})
endforeach()
foreach(branch queries tokens both)
  device_kernel(tests/device/specs/pooled-branches.json 64 bf16 sm_100a sequences same ${branch})
endforeach()
foreach(branch queries tokens both)
  device_kernel(tests/device/specs/pooled-branches.json 64 bf16 sm_90a pages same ${branch})
endforeach()
device_kernel(specs/xattention.json 64 f16 sm_90a sequences e4m3)
foreach(branch both keys tokens)
  device_kernel(tests/device/specs/ordered-branches.json 64 bf16 sm_100a pages same ${branch})
endforeach()
device_kernel(specs/sparge-video.json 64 bf16 sm_100a pages)
device_kernel(tests/device/specs/ordered-window.json 64 bf16 sm_100a sequences)
foreach(branch tokens means)
  device_kernel(tests/device/specs/ordered-merged.json 64 f16 sm_100a sequences same ${branch})
endforeach()

# Batches of sequences, in rows and in pages.
foreach(batch sequences pages)
  foreach(name skip-softmax streaming topk-blocks quest relmax sparge-topk)
    device_kernel(specs/${name}.json 64 bf16 sm_100a ${batch})
  endforeach()
  foreach(arch sm_100a sm_90a)
    device_kernel(specs/dense.json 64 bf16 ${arch} ${batch})
    device_kernel(specs/sink.json 64 bf16 ${arch} ${batch})
  endforeach()
  device_kernel(specs/flash-decoding.json 128 bf16 sm_90a ${batch})
  device_kernel(specs/flash-decoding.json 96 bf16 sm_90a ${batch})
  device_kernel(specs/alibi.json 64 bf16 sm_90a ${batch})
  device_kernel(specs/natten.json 64 bf16 sm_100a ${batch})
endforeach()
# Lists by wgmma, whose work tiles are of one head.
foreach(batch sequences pages)
  foreach(name streaming relmax topk-blocks)
    device_kernel(specs/${name}.json 64 bf16 sm_90a ${batch})
  endforeach()
  device_kernel(specs/external-mask.json 128 f16 sm_90a ${batch})
  device_kernel(specs/streaming.json 64 bf16 sm_90a ${batch} e4m3)
endforeach()
device_kernel(specs/xattention.json 96 bf16 sm_90a pages)
# Columns by wgmma: rows that are copied, boxes, in pages parts of columns.
foreach(batch sequences pages)
  foreach(name quest minference-vertical-slash)
    device_kernel(specs/${name}.json 64 bf16 sm_90a ${batch})
  endforeach()
endforeach()
device_kernel(specs/fg-attn-pooled.json 128 f16 sm_90a pages)
device_kernel(specs/minference-vertical-slash.json 64 bf16 sm_90a pages e4m3)
# Gates by wgmma.
foreach(batch sequences pages)
  foreach(name skip-softmax bsfa)
    device_kernel(specs/${name}.json 64 bf16 sm_90a ${batch})
  endforeach()
endforeach()
device_kernel(specs/skip-softmax.json 128 f16 sm_90a pages e4m3)
# Integers by wgmma, which lie in a piece of the workspace for each sequence.
foreach(batch sequences pages)
  foreach(name sparge sale)
    device_kernel(specs/${name}.json 64 bf16 sm_90a ${batch})
  endforeach()
endforeach()
device_kernel(specs/sparge-topk.json 128 f16 sm_90a sequences)
device_kernel(specs/fg-attn-cached.json 64 bf16 sm_90a sequences)
device_kernel(specs/twilight.json 64 bf16 sm_90a pages)
device_kernel(tests/device/specs/int8-lists.json 64 bf16 sm_90a pages)
device_kernel(tests/device/specs/int8-lists-narrow.json 64 bf16 sm_90a sequences)
device_kernel(tests/device/specs/int8-tile-gate.json 64 bf16 sm_90a sequences)
device_kernel(tests/device/specs/int8-dilated.json 64 bf16 sm_90a pages)
# Another order of tokens.
foreach(batch sequences pages)
  device_kernel(specs/sparge-video.json 64 bf16 sm_90a ${batch})
  device_kernel(tests/device/specs/ordered-window.json 64 bf16 sm_90a ${batch})
endforeach()
foreach(branch both keys tokens)
  device_kernel(tests/device/specs/ordered-branches.json 64 bf16 sm_90a pages same ${branch})
endforeach()
foreach(branch tokens means)
  device_kernel(tests/device/specs/ordered-merged.json 64 f16 sm_90a sequences same ${branch})
endforeach()

device_kernel(tests/device/specs/split-topk-blocks.json 64 bf16 sm_90a sequences)
device_kernel(specs/cascade.json 64 f16 sm_90a sequences)
device_kernel(specs/window.json 64 f16 sm_90a pages)
# Keys and values of e4m3.
foreach(name dense skip-softmax)
  device_kernel(specs/${name}.json 64 bf16 sm_100a pages e4m3)
endforeach()
device_kernel(specs/flash-decoding.json 128 f16 sm_100a sequences e4m3)
foreach(name dense softcap bsfa)
  device_kernel(specs/${name}.json 64 bf16 sm_90a uniform e4m3)
endforeach()
device_kernel(specs/flash-decoding.json 128 bf16 sm_90a uniform e4m3)
device_kernel(specs/dense.json 256 f16 sm_90a uniform e4m3)
foreach(batch sequences pages)
  device_kernel(specs/dense.json 64 bf16 sm_90a ${batch} e4m3)
  device_kernel(specs/flash-decoding.json 128 f16 sm_90a ${batch} e4m3)
endforeach()
device_kernel(specs/window.json 128 bf16 sm_90a pages e4m3)
# What reads them before attend: means, bounds, integers, statistics, another order; columns of them.
foreach(name sparge sparge-video quest fg-attn-pooled)
  device_kernel(specs/${name}.json 64 bf16 sm_100a uniform e4m3)
endforeach()
device_kernel(specs/topk-blocks.json 64 bf16 sm_90a uniform e4m3)
device_kernel(specs/sparge.json 64 f16 sm_90a uniform e4m3)
foreach(name topk-blocks quest sparge-topk)
  device_kernel(specs/${name}.json 64 bf16 sm_100a pages e4m3)
endforeach()
device_kernel(specs/relmax.json 64 bf16 sm_100a sequences e4m3)
# 16-bit rows are made of them first.
device_kernel(specs/xattention.json 64 bf16 sm_100a uniform e4m3)
device_kernel(specs/sale.json 64 bf16 sm_90a uniform e4m3)
device_kernel(specs/minference-vertical-slash.json 64 bf16 sm_100a pages e4m3)
device_kernel(specs/xattention.json 64 f16 sm_100a sequences e4m3)
foreach(branch tokens short long)
  device_kernel(tests/device/specs/weighted-branches.json 64 f16 sm_100a pages e4m3 ${branch})
endforeach()
foreach(branch queries tokens both)
  device_kernel(tests/device/specs/pooled-branches.json 64 bf16 sm_90a uniform e4m3 ${branch})
endforeach()
foreach(name cascade xattention fg-attn-pooled minference-vertical-slash sale)
  device_kernel(specs/${name}.json 64 bf16 sm_100a pages)
endforeach()
device_kernel(tests/device/specs/split-topk-blocks.json 64 bf16 sm_100a pages)
device_kernel(specs/external-mask.json 64 bf16 sm_100a sequences)
device_kernel(specs/flash-decoding.json 128 bf16 sm_100a pages)
# Rows of V that are shorter than those of K, longer, and of no whole panels; the last of them codes of e4m3.
foreach(batch sequences pages)
  device_kernel(tests/device/specs/mla.json 192 bf16 sm_90a ${batch})
  device_kernel(tests/device/specs/wide-values.json 64 bf16 sm_90a ${batch})
endforeach()
device_kernel(tests/device/specs/split-mla.json 192 f16 sm_90a pages)
device_kernel(tests/device/specs/uneven-widths.json 80 f16 sm_90a sequences)
device_kernel(tests/device/specs/wide-values.json 64 f16 sm_100a sequences)
device_kernel(tests/device/specs/mla.json 192 bf16 sm_90a uniform e4m3)
device_kernel(tests/device/specs/mla.json 192 f16 sm_90a pages e4m3)
device_kernel(tests/device/specs/wide-values.json 64 bf16 sm_90a sequences e4m3)

foreach(symbol IN LISTS short_tier)
  if(NOT symbol IN_LIST device_symbols)
    message(FATAL_ERROR "The short tier names ${symbol}, which is not in the list of kernels")
  endif()
endforeach()

# Units of a library: each has the name of its first kernel.
function(kernel_units library)
  set(rest ${${library}_symbols})
  while(rest)
    list(SUBLIST rest 0 ${LACUNA_KERNELS_PER_UNIT} unit)
    list(GET unit 0 first)
    set(unit_headers "")
    set(unit_kernels "")
    set(generated "")
    foreach(symbol IN LISTS unit)
      list(POP_FRONT rest)
      string(APPEND unit_headers "#include \"../${symbol}.headers\"\n")
      string(APPEND unit_kernels "#include \"../${symbol}.kernels\"\n")
      foreach(part cu headers kernels)
        list(APPEND generated ${CMAKE_CURRENT_BINARY_DIR}/device/${symbol}.${part})
      endforeach()
    endforeach()
    set(path ${CMAKE_CURRENT_BINARY_DIR}/device/${library}/${first}.cpp)
    configure_file(device/unit.cpp.in ${path} @ONLY)
    set_source_files_properties(${path} PROPERTIES OBJECT_DEPENDS "${generated}")
    target_sources(${library} PRIVATE ${path} ${generated})
  endwhile()
endfunction()
kernel_units(device_kernels)
kernel_units(traced_kernels)

# Single kernels: single/*/*.cpp configures a kernel's template by hand and exports it as a Kernel.
file(GLOB single_kernels CONFIGURE_DEPENDS device/single/*/*.cpp)
target_sources(device_kernels PRIVATE ${single_kernels})
target_sources(traced_kernels PRIVATE ${single_kernels})
# Their argument structs.
target_include_directories(test_device PRIVATE ${CMAKE_SOURCE_DIR}/templates)

function(kernel_table test library)
  set(kernels_externs "${${library}_externs}")
  set(kernels_table "${${library}_table}")
  configure_file(device/kernels.cpp.in device/${library}.cpp @ONLY)
  target_sources(${test} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/device/${library}.cpp)
endfunction()

# The same tests once more with traced kernels, where a race is a fault: not all of them, as they take several times as long.
if(NOT LACUNA_SANITIZE)
  get_target_property(device_sources test_device SOURCES)
  get_target_property(device_libraries test_device LINK_LIBRARIES)
  get_target_property(device_definitions test_device COMPILE_DEFINITIONS)
  get_target_property(device_includes test_device INCLUDE_DIRECTORIES)
  get_target_property(device_options test_device COMPILE_OPTIONS)
  list(REMOVE_ITEM device_libraries device_kernels)
  add_executable(test_races ${device_sources})
  set_target_properties(test_races PROPERTIES UNITY_BUILD_MODE GROUP)
  target_link_libraries(test_races PRIVATE ${device_libraries} traced_kernels)
  target_include_directories(test_races PRIVATE ${device_includes})
  target_compile_options(test_races PRIVATE ${device_options})
  target_compile_definitions(test_races PRIVATE ${device_definitions} EMULATION_FINDS_RACES)
  kernel_table(test_races traced_kernels)
  # Those tests of the emulation itself hold races that have to come out; bounds in all their cases are for test_device.
  lacuna_run_test(races 2400 test_races
    --gtest_filter=-Schedules.*:*Pairs.KeepWhatTokensKeep/*:*Pairs.ComputeFew* SHARDS 4 COST 90)
endif()
kernel_table(test_device device_kernels)
if(LACUNA_ALL_TESTS)
  lacuna_run_test(device 1200 test_device SHARDS 2 COST 100)
else()
  set_target_properties(test_device PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
