// The kernels of a spec in launch order, from one table (stages.cpp); the CUDA text and the
// KernelLaunches both follow from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/emit/stage_facts.hpp"

namespace lacuna {

inline constexpr int kStageThreads =
    256;  ///< of a block of most stages; no stage's has more but attend's
inline constexpr int kStatisticTokens = 512;  ///< of a block of the statistics kernel

inline constexpr const char* kAttendConfig = "Config";  ///< StageKernel::config_name of attend

/// One line of a Config: its declaration and where its value comes from.
struct ConfigField {
  std::string declaration;
  const char* pointer;      ///< field of the spec
  std::string_view origin;  ///< if the spec does not have it
};

struct StageKernel {
  std::string stage;        ///< "prepare_q"
  std::string entry;        ///< extern "C" name: "lacuna_prepare_q_sparge"
  std::string config_name;  ///< "PrepareQConfig"; attend: kAttendConfig
  const char* header = "";
  const char* function = "";
  std::vector<ConfigField> config;
  std::string grid_name, grid;  ///< of the launch value, and its expression
  int threads = 0, smem_bytes = 0;
  bool decides = false;   ///< KernelLaunch::decides
  int blocks_per_sm = 1;  ///< __launch_bounds__: blocks that the compiler leaves registers for
  /// There is a kernel before (behind) it, whose end (beginning) it may overlap with.
  bool follows = false, precedes = false;
};

/// For plans of CUDA targets.
std::vector<StageKernel> stage_kernels(const StageFacts& facts);

// Fields of each Config, in stage_configs.cpp; element type and head dim are added to all of them.
std::vector<ConfigField> tensor_config(const StageFacts& facts, Tensor tensor);
std::vector<ConfigField> finish_config(const StageFacts& facts, Tensor tensor);
std::vector<ConfigField> unpermute_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> prepare_config(const StageFacts& facts, Tensor tensor);
std::vector<ConfigField> prepare_values_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> pooled_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> tokens_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> select_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> compact_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> order_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> attend_config(const StageFacts& facts, Tensor);
std::vector<ConfigField> combine_config(const StageFacts& facts, Tensor);

/// Tokens of a block of the prepare kernel: as many as its registers hold well, and at least the
/// largest tile it works on, which like all others divides it.
int prepare_tokens(const TokenOps& ops, int head_dim);

/// "(n_q + 63) // 64"
std::string ceil_divide(const std::string& length, int divisor);
/// "n_q" or "n_k"; "n_h" or "n_h_kv".
const char* length_of(Tensor tensor);
const char* heads_of(Tensor tensor);
/// Length rounded up to kPreparedTokens.
std::string padded_length(Tensor tensor);

}  // namespace lacuna
