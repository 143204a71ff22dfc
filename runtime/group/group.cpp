#include "runtime/group/group.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/cuda/device_memory.hpp"
#include "runtime/group/links/loopback.hpp"
#include "runtime/group/links/nccl_communicator.hpp"

namespace lacuna::group {
namespace {

Diagnostic diagnostic(Code code, std::string message) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  return d;
}

/// What each rank tells the others about itself.
struct Note {
  std::uint64_t digest = 0;
  std::uint32_t is_well = 0;
  char text[244] = {};
};

std::string text_of(const Note& note) {
  return std::string(note.text, strnlen(note.text, sizeof note.text));
}

constexpr std::size_t kProbeBytes = std::size_t{64} << 20;
constexpr int kProbes = 5;

/// Sends what the probe sends once, to the next rank of a ring.
using Probe = std::function<bool(CUstream stream)>;

/// By the slowest rank.
bool time_link(GroupState& group, const Probe& probe, Diagnostics& diagnostics) {
  const Communicator& ranks = group.communicator;
  const auto& device = group.engine->gpu;
  const DeviceStream stream(device, diagnostics);
  DeviceTimer timer(device, diagnostics);
  if (diagnostics.has_errors()) return false;
  bool good = probe(stream.handle()) && timer.start(stream.handle(), diagnostics);
  for (int i = 0; i < kProbes && good; ++i) good = probe(stream.handle());
  good = good && timer.stop(stream.handle(), diagnostics) &&
         ranks.synchronize(ranks.state.get(), stream.handle(), diagnostics);
  if (!good) return false;
  const double rate =
      kProbes * static_cast<double>(kProbeBytes) / (timer.elapsed_us(diagnostics) * 1e3);
  std::vector<double> rates(static_cast<std::size_t>(ranks.size));
  if (!ranks.all_gather(ranks.state.get(), "measure the link", &rate, sizeof rate, rates.data(),
                        diagnostics))
    return false;
  group.rates.link_gb_s = *std::ranges::min_element(rates);
  group.rates.link_origin = "measured when the group was made";
  return true;
}

bool measure_link(GroupState& group, Diagnostics& diagnostics) {
  const Communicator& ranks = group.communicator;
  const auto& device = group.engine->gpu;
  const Driver& driver = *device->driver;
  const int next = (ranks.rank + 1) % ranks.size;
  const DeviceBuffer source(device, kProbeBytes, diagnostics);
  if (diagnostics.has_errors()) return false;
  if (group.rates.exchange == Exchange::kCopies) {
    SharedBuffer target;
    if (!ranks.share(ranks.state.get(), kProbeBytes, target, diagnostics)) return false;
    const ContextScope scope(*device);
    const auto address =
        reinterpret_cast<CUdeviceptr>(target.of_rank[static_cast<std::size_t>(next)]);
    return time_link(
        group,
        [&](CUstream stream) {
          return check_driver(
              driver,
              driver.cuMemcpyDtoDAsync(address, reinterpret_cast<CUdeviceptr>(source.data()),
                                       kProbeBytes, stream),
              "cuMemcpyDtoDAsync", diagnostics);
        },
        diagnostics);
  }
  const DeviceBuffer target(device, kProbeBytes, diagnostics);
  if (diagnostics.has_errors()) return false;
  const std::array<Message, 2> messages = {
      {{source.data(), kProbeBytes, next, true},
       {target.data(), kProbeBytes, (ranks.rank + ranks.size - 1) % ranks.size, false}}};
  return time_link(
      group,
      [&](CUstream stream) {
        return ranks.exchange(ranks.state.get(), messages, stream, diagnostics);
      },
      diagnostics);
}

bool join_nccl(const GroupState& group, const Admission& admission, Communicator& communicator,
               Diagnostics& diagnostics) {
  const NcclOptions options{load_nccl(diagnostics), group.engine->gpu, admission.timeout_s,
                            admission.max_ctas};
  if (options.nccl == nullptr) return false;
  if (admission.host_communicator != nullptr) {
    return borrow_nccl(options, static_cast<NcclComm>(admission.host_communicator), communicator,
                       diagnostics);
  }
  NcclUniqueId id;
  std::memcpy(id.bytes, admission.unique_id, sizeof id.bytes);
  return init_nccl(options, id, admission.rank, admission.size, communicator, diagnostics);
}

}  // namespace

std::shared_ptr<GroupState> create_group(std::shared_ptr<EngineState> engine,
                                         const Admission& admission, Diagnostics& diagnostics) {
  auto group = std::make_shared<GroupState>();
  group->engine = std::move(engine);
  const bool on_gpu = group->engine->gpu != nullptr;
  const bool is_loopback = admission.loopback != nullptr;
  if (on_gpu == is_loopback) {
    diagnostics.add(diagnostic(
        Code::kCallArgument,
        on_gpu ? "loopback: expected an engine of the CPU, got one of " + group->engine->device
               : "communicator: expected an engine of a GPU, got one of the CPU, whose groups are "
                 "loopbacks"));
    return nullptr;
  }
  if (on_gpu) group->sm_margin = std::min(admission.sm_margin, group->engine->gpu->sm_count / 2);
  const bool joined = is_loopback
                          ? join_loopback(admission.loopback, admission.rank, admission.timeout_s,
                                          group->communicator, diagnostics)
                          : join_nccl(*group, admission, group->communicator, diagnostics);
  if (!joined) return nullptr;
  const Communicator& ranks = group->communicator;
  const Exchange wanted = admission.exchange.value_or(kUsualExchange);
  bool connected = false;
  if (ranks.size > 1 &&
      !ranks.connect(ranks.state.get(), wanted == Exchange::kCopies, connected, diagnostics))
    return nullptr;
  group->rates =
      known_rates(group->engine->target.name, connected ? Exchange::kCopies : Exchange::kMessages,
                  admission.link_gb_s, admission.tflops);
  if (on_gpu) {
    group->lanes = make_lanes(group->engine->gpu, diagnostics);
    if (group->lanes == nullptr) return nullptr;
  }
  if (on_gpu && admission.link_gb_s <= 0 && group->communicator.size > 1 &&
      !measure_link(*group, diagnostics))
    return nullptr;
  return group;
}

bool agree(const GroupState& group, const char* what, bool is_well, std::uint64_t digest,
           const std::string& text, Diagnostics& diagnostics) {
  const Communicator& ranks = group.communicator;
  Note mine;
  mine.digest = digest;
  mine.is_well = is_well ? 1 : 0;
  std::copy_n(text.begin(), std::min(text.size(), sizeof mine.text), mine.text);
  std::vector<Note> notes(static_cast<std::size_t>(ranks.size));
  if (!ranks.all_gather(ranks.state.get(), what, &mine, sizeof mine, notes.data(), diagnostics))
    return false;
  if (!is_well) return false;  // it has said why
  for (int rank = 0; rank < ranks.size; ++rank) {
    const Note& note = notes[static_cast<std::size_t>(rank)];
    if (note.is_well == 0) {
      diagnostics.add(diagnostic(
          Code::kGroupMismatch,
          std::string(what) + ": rank " + std::to_string(rank) + " failed: " + text_of(note)));
      return false;
    }
    if (note.digest == digest) continue;
    diagnostics.add(diagnostic(Code::kGroupMismatch, std::string(what) + ": rank " +
                                                         std::to_string(ranks.rank) + " asks for " +
                                                         text + ", rank " + std::to_string(rank) +
                                                         " for " + text_of(note)));
    return false;
  }
  return true;
}

std::string group_refusal(const LaunchContract& contract) {
  if (contract.batch == BatchLayout::kPages)
    return "a group takes batches of one length and sequences, not pages";
  if (contract.head_dim_v != contract.head_dim)
    return "head_dim_v " + std::to_string(contract.head_dim_v) +
           ": a group exchanges rows of one width, that of q and k";
  if (contract.v_of_k) return "\"v\": \"k\": a group exchanges v by itself";
  if (contract.takes_lists) return "\"mask\": \"external\": a group does not cut lists of tiles";
  if (contract.takes_previous_lse)
    return "\"normalise\": \"previous_lse\": a group does not exchange it";
  if (contract.kv != KvFormat::kSame) return "a group takes k and v of q's type";
  if (contract.takes_order) return "\"permute\": a group does not change the order of tokens";
  return "";
}

namespace {

/// One for each branch.
std::vector<const Program*> programs_of(const KernelState& kernel) {
  std::vector<const Program*> programs;
  for (const auto& branch : kernel.branches) programs.push_back(&branch->lowered().plan.program);
  if (programs.empty()) programs.push_back(&kernel.lowered().plan.program);
  return programs;
}

}  // namespace

std::shared_ptr<GroupKernel> compile_group_kernel(std::shared_ptr<GroupState> group,
                                                  SourceText source, BuildOptions options,
                                                  const std::optional<LaunchShape>& shape,
                                                  Diagnostics& diagnostics) {
  auto made = std::make_shared<GroupKernel>();
  made->group = std::move(group);
  options.positions = true;
  Diagnostics found;
  made->kernel = compile_kernel(made->group->engine, std::move(source), options, found, shape);
  if (made->kernel != nullptr) {
    const LoweredKernel& planned = made->kernel->planned;
    if (const std::string refusal = group_refusal(planned.contract); !refusal.empty())
      found.add(diagnostic(Code::kUnsupported, planned.contract.kernel + ": " + refusal));
  }
  const bool is_well =
      made->kernel != nullptr && !found.has_errors() && prepare_kernel(*made->kernel, found);
  std::uint64_t digest = 0;
  std::string text = found.items.empty() ? "" : found.items.front().message;
  if (is_well) {
    const LaunchContract& contract = made->kernel->lowered().contract;
    const std::vector<const Program*> programs = programs_of(*made->kernel);
    if (contract.batch == BatchLayout::kSequences)
      made->rules.no_query_cut = "each launch says where its sequences begin";
    for (const Program* program : programs) {
      digest = digest * 0x100000001b3U + hash_program(*program);
      made->rules = both(made->rules, cut_rules(*program));
    }
    text = "spec " + contract.kernel + ", head dim " + std::to_string(contract.head_dim) + ", " +
           std::string(name_of(contract.dtype)) + ", program " +
           std::to_string(digest % 1000000007);
  }
  for (Diagnostic& d : found.items) diagnostics.add(std::move(d));
  if (!agree(*made->group, "compile", is_well, digest, text, diagnostics)) return nullptr;
  return made;
}

}  // namespace lacuna::group
