// The group behind lacuna_group, its kernels and its plans. Everything here is called by all ranks
// alike; what they ask for is compared before anything is exchanged.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/kernel.hpp"
#include "runtime/group/cost.hpp"
#include "runtime/group/lanes.hpp"
#include "runtime/group/links/communicator.hpp"
#include "runtime/group/schedule.hpp"

namespace lacuna::group {

struct GroupState {
  std::shared_ptr<EngineState> engine;
  Communicator communicator;
  Rates rates;
  std::shared_ptr<Lanes> lanes;  ///< null on the CPU
  /// That launches leave to messages under way; 0 on the CPU.
  std::int32_t sm_margin = 0;
  /// Launches that exchanged by copies; the value of their flags (Communicator::set_flag).
  std::uint32_t launches = 0;
};

/// How a rank comes to its group: by one of the three.
struct Admission {
  int rank = 0, size = 0;
  std::shared_ptr<struct Loopback> loopback;
  void* host_communicator = nullptr;  ///< ncclComm_t
  const void* unique_id = nullptr;    ///< 128 bytes
  double timeout_s = 0, link_gb_s = 0, tflops = 0;
  std::int32_t sm_margin = 0;  ///< multiprocessors that launches leave to an exchange under way
  std::int32_t max_ctas = 0;   ///< blocks of NCCL; 0: it decides
  std::optional<Exchange> exchange;  ///< none: kUsualExchange
};

/// Null with diagnostics.
std::shared_ptr<GroupState> create_group(std::shared_ptr<EngineState> engine,
                                         const Admission& admission, Diagnostics& diagnostics);

/// Waits for the other ranks, which come to the same call `what`. False with kGroupMismatch on all
/// of them where their digests differ or one says that it failed; `text` tells them apart.
bool agree(const GroupState& group, const char* what, bool is_well, std::uint64_t digest,
           const std::string& text, Diagnostics& diagnostics);

struct GroupKernel {
  std::shared_ptr<GroupState> group;
  std::shared_ptr<KernelState> kernel;  ///< prepared; its formulas read positions
  CutRules rules;
};

std::shared_ptr<GroupKernel> compile_group_kernel(std::shared_ptr<GroupState> group,
                                                  SourceText source, BuildOptions options,
                                                  const std::optional<LaunchShape>& shape,
                                                  Diagnostics& diagnostics);

/// Why a group cannot serve a spec; "" if it can.
std::string group_refusal(const LaunchContract& contract);

struct PlanRequest {
  Problem problem;  ///< head_dim and element_bytes are the kernel's
  std::optional<Scheme> scheme;
  std::span<const float> work;  ///< [heads, q_tiles]; empty: by the mask
};

struct GroupPlan {
  GroupPlan() = default;
  GroupPlan(const GroupPlan&) = delete;
  GroupPlan& operator=(const GroupPlan&) = delete;
  ~GroupPlan();  ///< others have read and written what they share, or the group is lost

  std::shared_ptr<GroupKernel> kernel;
  Traffic traffic;
  Schedule schedule;
  SharedBuffer shared;     ///< what the schedule calls the workspace; empty: exchange by messages
  LaunchContract tensors;  ///< the kernel's, without parameters
  LaunchShape share;       ///< of this rank
  /// Where in the workspace the kernels of each lane have their part, and its bytes.
  std::array<std::size_t, kLanes> lane_offset{}, lane_bytes{};
  /// Where in the workspace each launch has its counts: [batch, heads, q_tiles, 3] of its piece.
  std::vector<std::size_t> counts_offset;
  std::string no_counts;  ///< why launches take no counts; "" if they do
  std::size_t workspace_bytes = 0;
  std::string json;
  std::vector<std::string> events;  ///< that a launch can record, in their order
  Signals signals;                  ///< kForkSignal and so on; none on the CPU
  std::vector<Message> messages;    ///< room for those of a launch
};

/// Signals of a plan: these four; from kFirstChunkSignal on one of each chunk, when its inputs are
/// there; behind those two of each launch, when it is free to begin and when it is done.
inline constexpr std::size_t kForkSignal = 0, kExchangeSignal = 1, kIncomingSignal = 2,
                             kCopiesSignal = 3, kFirstChunkSignal = 4;

std::vector<std::string> event_names(const Schedule& schedule);

std::shared_ptr<GroupPlan> make_group_plan(std::shared_ptr<GroupKernel> kernel,
                                           const PlanRequest& request, Diagnostics& diagnostics);

/// Not for two launches of a group at once. An error of one rank loses the group.
bool launch_group(GroupPlan& plan, const lacuna_launch_args& args, Diagnostics& diagnostics);

}  // namespace lacuna::group
