// Groups for C++17 and newer: one problem on several GPUs, over the C ABI of group.h.
//
//   auto group = lacuna::Group::create(engine, {.rank = r, .size = n, .unique_id = id});
//   auto kernel = group.compile(lacuna::Spec::load("specs/dense.json"), {.head_dim = 128});
//   auto plan = kernel.plan({.shape = whole, .layout = lacuna::Layout::kContiguous});
//   plan.launch({.q = q, .k = k, .v = v, .o = o, .workspace = ..., .stream = s});   // this rank's
//   group.synchronize(s);
#ifndef LACUNA_GROUP_HPP_
#define LACUNA_GROUP_HPP_

#include <array>

#include "lacuna/lacuna.hpp"

namespace lacuna {
inline namespace v1 {

/// Where the ranks are threads that compute on the CPU.
class Loopback {
 public:
  explicit Loopback(std::int32_t size) {
    lacuna_loopback* handle = nullptr;
    detail::check(lacuna_loopback_create(size, &handle));
    handle_.reset(handle, lacuna_loopback_destroy);
  }
  lacuna_loopback* handle() const { return handle_.get(); }

 private:
  std::shared_ptr<lacuna_loopback> handle_;
};

using UniqueId = std::array<unsigned char, LACUNA_UNIQUE_ID_BYTES>;

/// The values are those of lacuna_exchange.
enum class Exchange : std::int32_t { kAuto, kMessages, kCopies };

/// The members are those of lacuna_group_options; of the last three one is set.
struct GroupOptions {
  std::int32_t rank = 0, size = 1;
  double timeout_s = 0, link_gb_s = 0, tflops = 0;
  std::int32_t sm_margin = 0, max_ctas = 0;
  Exchange exchange = Exchange::kAuto;
  const Loopback* loopback = nullptr;
  const UniqueId* unique_id = nullptr;
  void* communicator = nullptr;
};

/// The values are those of lacuna_layout and lacuna_scheme.
enum class Layout : std::int32_t { kContiguous, kStriped, kHeads };
enum class Scheme : std::int32_t { kAuto, kGather, kRows, kHeads };

/// The members are those of lacuna_group_problem.
struct GroupProblem {
  Shape shape = {};
  Layout layout = Layout::kContiguous;
  std::int32_t stripe = 0;
  Scheme scheme = Scheme::kAuto;
  bool lse = false, strided = false;
  std::vector<float> work = {};
  std::int32_t sequences = 0, max_n_q = 0, max_n_k = 0;
};

class GroupPlan {
 public:
  void launch(const LaunchArgs& args) const {
    detail::with_raw_args(args, [&](const lacuna_launch_args& raw) {
      detail::check(lacuna_group_launch(handle_.get(), &raw));
    });
  }
  /// Extents of this rank's tensors.
  Shape shape() const {
    lacuna_shape raw{};
    raw.struct_size = sizeof raw;
    detail::check(lacuna_group_plan_shape(handle_.get(), &raw));
    return {raw.batch, raw.heads, raw.heads_kv, raw.n_q, raw.n_k};
  }
  std::size_t workspace_bytes() const {
    std::size_t bytes = 0;
    detail::check(lacuna_group_plan_workspace_bytes(handle_.get(), &bytes));
    return bytes;
  }
  /// As documented at lacuna_group_plan_json.
  std::string json() const {
    return detail::text_of(handle_.get(), lacuna_group_plan_json(handle_.get()));
  }

 private:
  friend class GroupKernel;
  explicit GroupPlan(std::shared_ptr<lacuna_group_plan> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<lacuna_group_plan> handle_;
};

class GroupKernel {
 public:
  GroupPlan plan(const GroupProblem& problem) const {
    const lacuna_shape shape = detail::to_raw(problem.shape);
    lacuna_group_problem raw{};
    raw.struct_size = sizeof raw;
    raw.shape = &shape;
    raw.layout = static_cast<lacuna_layout>(problem.layout);
    raw.stripe = problem.stripe;
    raw.scheme = static_cast<lacuna_scheme>(problem.scheme);
    raw.lse = problem.lse ? 1 : 0;
    raw.strided = problem.strided ? 1 : 0;
    raw.work = problem.work.empty() ? nullptr : problem.work.data();
    raw.work_count = problem.work.size();
    raw.sequences = problem.sequences;
    raw.max_n_q = problem.max_n_q;
    raw.max_n_k = problem.max_n_k;
    lacuna_group_plan* handle = nullptr;
    detail::check(lacuna_group_plan_create(handle_.get(), &raw, &handle));
    return GroupPlan({handle, lacuna_group_plan_destroy});
  }
  Tile tile() const {
    Tile tile;
    detail::check(lacuna_group_kernel_tile(handle_.get(), &tile.q, &tile.k));
    return tile;
  }

 private:
  friend class Group;
  explicit GroupKernel(std::shared_ptr<lacuna_group_kernel> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<lacuna_group_kernel> handle_;
};

class Group {
 public:
  /// For one rank, which gives it to the others.
  static UniqueId unique_id(const Engine& engine) {
    UniqueId id;
    detail::check(lacuna_group_unique_id(engine.handle(), id.data()));
    return id;
  }

  static Group create(const Engine& engine, const GroupOptions& options) {
    lacuna_group_options raw{};
    raw.struct_size = sizeof raw;
    raw.rank = options.rank;
    raw.size = options.size;
    raw.loopback = options.loopback != nullptr ? options.loopback->handle() : nullptr;
    raw.unique_id = options.unique_id != nullptr ? options.unique_id->data() : nullptr;
    raw.communicator = options.communicator;
    raw.timeout_s = options.timeout_s;
    raw.link_gb_s = options.link_gb_s;
    raw.tflops = options.tflops;
    raw.sm_margin = options.sm_margin;
    raw.max_ctas = options.max_ctas;
    raw.exchange = static_cast<lacuna_exchange>(options.exchange);
    lacuna_group* handle = nullptr;
    detail::check(lacuna_group_create(engine.handle(), &raw, &handle));
    // The wrapper of the engine holds the callback.
    return Group({handle, [engine](lacuna_group* group) { lacuna_group_destroy(group); }});
  }

  GroupKernel compile(const Spec& spec, const CompileOptions& options = {}) const {
    const lacuna_shape shape = detail::to_raw(options.shape);
    const lacuna_compile_options raw = detail::to_raw(options, spec, shape);
    lacuna_group_kernel* handle = nullptr;
    detail::CallingBack call;
    const lacuna_status status =
        lacuna_group_compile(handle_.get(), spec.text().data(), spec.text().size(), &raw, &handle);
    auto group = handle_;
    GroupKernel kernel(
        {handle, [group](lacuna_group_kernel* k) { lacuna_group_kernel_destroy(k); }});
    call.check(status);
    return kernel;
  }

  /// Waits until the stream has run; an error if a rank is lost.
  void synchronize(void* stream) const {
    detail::check(lacuna_group_synchronize(handle_.get(), stream));
  }

 private:
  explicit Group(std::shared_ptr<lacuna_group> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<lacuna_group> handle_;
};

}  // namespace v1
}  // namespace lacuna
#endif
