// What a run is asked for, and what it found: plain values for reports and pictures.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/io/array.hpp"

namespace lacuna::tools {

struct LaunchOptions {
  std::string device;  ///< "cpu", "cuda:N"; empty: the first GPU, else the CPU
  int threads = 0;     ///< CPU threads; 0: all
  std::string template_path;
  bool times = true;  ///< false: one launch, no clock
};

/// Tiles over all work tiles, heads and batch entries.
struct TileCounts {
  std::int64_t visible = 0, visited = 0, gated = 0;
};

/// What a launch reports of one branch; its tiles are its own.
struct BranchReport {
  std::string name;
  std::int32_t tile_q = 0, tile_k = 0;
  int means = 1, query_means = 1;  ///< keys, queries are means of so many tokens
  TileCounts tiles;
  Array tile_mask;  ///< u8 [batch, heads, q_tiles, k_tiles]
};

// Moving nlohmann JSON does not throw, but it is not said so.
struct RunResult {  // NOLINT(bugprone-exception-escape)
  std::string device, device_name, target;
  std::int32_t tile_q = 0, tile_k = 0;
  nlohmann::ordered_json kernel;       ///< facts of lacuna_kernel_info_json
  std::vector<BranchReport> branches;  ///< where there are some, `tiles` and `tile_mask` are empty
  TileCounts tiles;
  Array o, dense_o;                     ///< [batch, heads, n_q, d]
  std::string compared_with = "dense";  ///< what dense_o is, for people
  Array tile_mask;                      ///< u8 [batch, heads, q_tiles, k_tiles]
  double sparse_us = 0, dense_us = 0;
  double attend_us = 0;  ///< of a launch that decides nothing; without a predictor: sparse_us
  std::size_t workspace_bytes = 0, selection_bytes = 0;
  std::string
      plain;  ///< "causal" or "unmasked": attention without the spec's own mask; "": the same
  double plain_us = 0;                ///< its time
  std::int64_t o_not_finite = 0;      ///< elements of o
  std::vector<std::string> warnings;  ///< of rules that decide nothing
};

}  // namespace lacuna::tools
