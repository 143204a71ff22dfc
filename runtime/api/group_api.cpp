// group.h over runtime/group.
#include "runtime/api/call.hpp"
#include "runtime/group/group.hpp"
#include "runtime/group/links/loopback.hpp"
#include "runtime/group/links/nccl.hpp"

struct lacuna_loopback {
  std::shared_ptr<lacuna::group::Loopback> state;
  const unsigned generation = lacuna::process_generation();
};
struct lacuna_group {
  std::shared_ptr<lacuna::group::GroupState> state;
  const unsigned generation = lacuna::process_generation();
};
struct lacuna_group_kernel {
  std::shared_ptr<lacuna::group::GroupKernel> state;
  const unsigned generation = lacuna::process_generation();
};
struct lacuna_group_plan {
  std::shared_ptr<lacuna::group::GroupPlan> state;
  const unsigned generation = lacuna::process_generation();
};

namespace lacuna {
namespace {

constexpr double kDefaultTimeoutS = 60;
constexpr int32_t kMostRanks = 1024;
/// Blocks of NCCL, of which each takes a multiprocessor: more of them move no more over NVLink.
constexpr int32_t kExchangeBlocks = 16;
constexpr int32_t kMostExchangeBlocks = 64;  ///< NCCL's channels

lacuna_status fail_group(const Diagnostics& diagnostics) {
  return fail(diagnostics, {"lacuna", ""});
}

/// 0 is the default, and what a caller without these fields has; -1 is none.
int32_t blocks_of(int32_t given) { return given == 0 ? kExchangeBlocks : std::max(given, 0); }

/// Returns what is the matter, "" if nothing is.
std::string read_admission(const lacuna_group_options& options, group::Admission& admission) {
  const int ways = (options.loopback != nullptr ? 1 : 0) + (options.unique_id != nullptr ? 1 : 0) +
                   (options.communicator != nullptr ? 1 : 0);
  if (ways != 1) {
    return "lacuna_group_options: expected one of loopback, unique_id and communicator, got " +
           std::to_string(ways);
  }
  const int32_t size = options.loopback != nullptr ? options.loopback->state->size : options.size;
  if (options.communicator == nullptr) {
    if (options.size != size || size < 1 || size > kMostRanks)
      return "size: expected " +
             (options.loopback != nullptr ? std::to_string(size) + ", the loopback's"
                                          : "1 to " + std::to_string(kMostRanks)) +
             ", got " + std::to_string(options.size);
    if (options.rank < 0 || options.rank >= size)
      return "rank: expected 0 to " + std::to_string(size - 1) + ", got " +
             std::to_string(options.rank);
  }
  if (!(options.timeout_s >= 0 && options.link_gb_s >= 0 && options.tflops >= 0))
    return "timeout_s, link_gb_s, tflops: expected 0 or more";
  for (const auto& [name, number] :
       {std::pair{"sm_margin", options.sm_margin}, std::pair{"max_ctas", options.max_ctas}}) {
    if (number < -1 || number > kMostExchangeBlocks)
      return std::string(name) + ": expected -1 to " + std::to_string(kMostExchangeBlocks) +
             ", got " + std::to_string(number);
  }
  if (options.exchange < LACUNA_EXCHANGE_AUTO || options.exchange > LACUNA_EXCHANGE_COPIES)
    return "exchange: expected auto (0), messages (1) or copies (2), got " +
           std::to_string(static_cast<int>(options.exchange));
  admission.rank = options.rank;
  admission.size = size;
  if (options.loopback != nullptr) admission.loopback = options.loopback->state;
  admission.unique_id = options.unique_id;
  admission.host_communicator = options.communicator;
  admission.timeout_s = options.timeout_s > 0 ? options.timeout_s : kDefaultTimeoutS;
  admission.link_gb_s = options.link_gb_s;
  admission.tflops = options.tflops;
  admission.sm_margin = blocks_of(options.sm_margin);
  admission.max_ctas = blocks_of(options.max_ctas);
  if (options.exchange != LACUNA_EXCHANGE_AUTO)
    admission.exchange = static_cast<group::Exchange>(static_cast<int>(options.exchange) - 1);
  return "";
}

std::string read_problem(const lacuna_group_problem& problem, group::PlanRequest& request) {
  if (problem.shape == nullptr) return "shape: expected lacuna_shape, got null";
  lacuna_shape shape;
  std::string misfit = read_struct("lacuna_shape", *problem.shape, sizeof(shape), shape);
  if (!misfit.empty()) return misfit;
  if (problem.layout < LACUNA_LAYOUT_CONTIGUOUS || problem.layout > LACUNA_LAYOUT_HEADS)
    return "layout: expected contiguous (0), striped (1) or heads (2), got " +
           std::to_string(static_cast<int>(problem.layout));
  if (problem.scheme < LACUNA_SCHEME_AUTO || problem.scheme > LACUNA_SCHEME_HEADS)
    return "scheme: expected auto (0), gather (1), rows (2) or heads (3), got " +
           std::to_string(static_cast<int>(problem.scheme));
  request.problem.shape = launch_shape(shape);
  request.problem.layout = {static_cast<group::LayoutKind>(problem.layout), problem.stripe};
  request.problem.sequences = {problem.sequences, problem.max_n_q, problem.max_n_k};
  request.problem.lse = problem.lse != 0;
  request.problem.strided = problem.strided != 0;
  if (problem.scheme != LACUNA_SCHEME_AUTO)
    request.scheme = static_cast<group::Scheme>(static_cast<int>(problem.scheme) - 1);
  if (problem.work != nullptr) request.work = {problem.work, problem.work_count};
  return "";
}

}  // namespace
}  // namespace lacuna

using namespace lacuna;  // NOLINT(google-build-using-namespace): this file is the namespace's door

extern "C" {

lacuna_status lacuna_loopback_create(int32_t size, lacuna_loopback** loopback) {
  return guarded([&] {
    if (loopback == nullptr)
      return fail_call("loopback: expected a place for the handle, got null");
    *loopback = nullptr;
    if (size < 1 || size > kMostRanks)
      return fail_call("size: expected 1 to " + std::to_string(kMostRanks) + ", got " +
                       std::to_string(size));
    *loopback = new lacuna_loopback{.state = std::make_shared<group::Loopback>(size)};
    return LACUNA_OK;
  });
}
void lacuna_loopback_destroy(lacuna_loopback* loopback) { destroy(loopback); }

lacuna_status lacuna_group_unique_id(lacuna_engine* engine, void* unique_id) {
  return guarded([&] {
    if (engine == nullptr) return fail_call("engine: expected a handle, got null");
    if (unique_id == nullptr)
      return fail_call("unique_id: expected a place of 128 bytes, got null");
    if (engine->state->gpu == nullptr)
      return fail_call("engine: expected one of a GPU, got the CPU's");
    Diagnostics diagnostics;
    const auto nccl = group::load_nccl(diagnostics);
    if (nccl == nullptr) return fail_group(diagnostics);
    const ContextScope scope(*engine->state->gpu);
    group::NcclUniqueId id;
    if (!check_nccl(*nccl, nccl->ncclGetUniqueId(&id), "ncclGetUniqueId", diagnostics))
      return fail_group(diagnostics);
    static_assert(sizeof id.bytes == LACUNA_UNIQUE_ID_BYTES);
    std::memcpy(unique_id, id.bytes, sizeof id.bytes);
    return LACUNA_OK;
  });
}

lacuna_status lacuna_group_create(lacuna_engine* engine, const lacuna_group_options* options,
                                  lacuna_group** group) {
  return guarded([&] {
    if (group == nullptr) return fail_call("group: expected a place for the handle, got null");
    *group = nullptr;
    if (engine == nullptr) return fail_call("engine: expected a handle, got null");
    if (options == nullptr) return fail_call("options: expected lacuna_group_options, got null");
    lacuna_group_options known;
    std::string misfit = read_struct("lacuna_group_options", *options,
                                     offsetof(lacuna_group_options, exchange), known);
    group::Admission admission;
    if (misfit.empty()) misfit = read_admission(known, admission);
    if (!misfit.empty()) return fail_call(misfit);
    Diagnostics diagnostics;
    auto state = group::create_group(engine->state, admission, diagnostics);
    if (state == nullptr) return fail_group(diagnostics);
    *group = new lacuna_group{.state = std::move(state)};
    return LACUNA_OK;
  });
}
void lacuna_group_destroy(lacuna_group* group) { destroy(group); }

lacuna_status lacuna_group_compile(lacuna_group* group, const char* spec_json, size_t bytes,
                                   const lacuna_compile_options* options,
                                   lacuna_group_kernel** kernel) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a place for the handle, got null");
    *kernel = nullptr;
    if (group == nullptr) return fail_call("group: expected a handle, got null");
    CompileRequest request;
    const std::string misfit = read_compile_request(spec_json, bytes, options, request);
    if (!misfit.empty()) return fail_call(misfit);
    Diagnostics diagnostics;
    auto state = group::compile_group_kernel(group->state, request.source, request.build,
                                             request.shape, diagnostics);
    if (state == nullptr) return fail(diagnostics, request.source);
    if (!diagnostics.items.empty())
      group->state->engine->emit_event("warnings", render_json(diagnostics, request.source));
    *kernel = new lacuna_group_kernel{.state = std::move(state)};
    return LACUNA_OK;
  });
}
void lacuna_group_kernel_destroy(lacuna_group_kernel* kernel) { destroy(kernel); }

lacuna_status lacuna_group_kernel_tile(const lacuna_group_kernel* kernel, int32_t* tile_q,
                                       int32_t* tile_k) {
  return guarded([&] {
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    if (tile_q == nullptr || tile_k == nullptr)
      return fail_call("tile_q, tile_k: expected places for the sizes, got null");
    *tile_q = kernel->state->kernel->lowered().contract.tile_q;
    *tile_k = kernel->state->kernel->lowered().contract.tile_k;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_group_plan_create(lacuna_group_kernel* kernel,
                                       const lacuna_group_problem* problem,
                                       lacuna_group_plan** plan) {
  return guarded([&] {
    if (plan == nullptr) return fail_call("plan: expected a place for the handle, got null");
    *plan = nullptr;
    if (kernel == nullptr) return fail_call("kernel: expected a handle, got null");
    if (problem == nullptr) return fail_call("problem: expected lacuna_group_problem, got null");
    lacuna_group_problem known;
    std::string misfit = read_struct("lacuna_group_problem", *problem,
                                     offsetof(lacuna_group_problem, sequences), known);
    group::PlanRequest request;
    if (misfit.empty()) misfit = read_problem(known, request);
    if (!misfit.empty()) return fail_call(misfit);
    Diagnostics diagnostics;
    auto state = group::make_group_plan(kernel->state, request, diagnostics);
    if (state == nullptr) return fail(diagnostics, kernel->state->kernel->document.source);
    *plan = new lacuna_group_plan{.state = std::move(state)};
    return LACUNA_OK;
  });
}
void lacuna_group_plan_destroy(lacuna_group_plan* plan) { destroy(plan); }

const char* lacuna_group_plan_json(const lacuna_group_plan* plan) {
  return text_of(plan, "plan",
                 [](const lacuna_group_plan& p) -> const std::string& { return p.state->json; });
}

lacuna_status lacuna_group_plan_shape(const lacuna_group_plan* plan, lacuna_shape* shape) {
  return guarded([&] {
    if (plan == nullptr) return fail_call("plan: expected a handle, got null");
    if (shape == nullptr) return fail_call("shape: expected a place for it, got null");
    if (shape->struct_size < sizeof(lacuna_shape))
      return fail_call(size_text("lacuna_shape", sizeof(lacuna_shape), shape->struct_size));
    const LaunchShape& share = plan->state->share;
    *shape = {shape->struct_size, share.n_b, share.n_h, share.n_h_kv, share.n_q, share.n_k};
    return LACUNA_OK;
  });
}

lacuna_status lacuna_group_plan_workspace_bytes(const lacuna_group_plan* plan, size_t* bytes) {
  return guarded([&] {
    if (plan == nullptr) return fail_call("plan: expected a handle, got null");
    if (bytes == nullptr) return fail_call("bytes: expected a place for the size, got null");
    *bytes = plan->state->workspace_bytes;
    return LACUNA_OK;
  });
}

lacuna_status lacuna_group_launch(lacuna_group_plan* plan, const lacuna_launch_args* args) {
  return guarded([&] {
    if (plan == nullptr) return fail_call("plan: expected a handle, got null");
    LaunchRequest request;
    const std::string misfit = read_launch_request(args, request);
    if (!misfit.empty()) return fail_call(misfit);
    Diagnostics diagnostics;
    if (!group::launch_group(*plan->state, request.args, diagnostics))
      return fail(diagnostics, plan->state->kernel->kernel->document.source);
    return LACUNA_OK;
  });
}

lacuna_status lacuna_group_synchronize(lacuna_group* group, void* stream) {
  return guarded([&] {
    if (group == nullptr) return fail_call("group: expected a handle, got null");
    const group::Communicator& ranks = group->state->communicator;
    Diagnostics diagnostics;
    if (!ranks.synchronize(ranks.state.get(), stream, diagnostics)) return fail_group(diagnostics);
    return LACUNA_OK;
  });
}

}  // extern "C"
