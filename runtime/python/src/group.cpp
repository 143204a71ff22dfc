#include "group.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string_view>

namespace lacuna_python {
namespace {

using namespace nb::literals;

/// In the order of lacuna_layout, lacuna_scheme and lacuna_exchange.
constexpr std::string_view kLayouts[] = {"contiguous", "striped", "heads"};
constexpr std::string_view kSchemes[] = {"auto", "gather", "rows", "heads"};
constexpr std::string_view kExchanges[] = {"auto", "messages", "copies"};

template <std::size_t kCount>
int read_word(const char* name, const std::string_view (&words)[kCount], const std::string& word) {
  std::string known;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (words[i] == word) return static_cast<int>(i);
    known += (i == 0 ? "" : i + 1 < kCount ? ", " : " or ") + std::string(words[i]);
  }
  refuse_argument(std::string(name) + ": expected " + known + ", got " + word);
}

/// call() without the lock of Python, whose last error belongs to this thread.
template <class Call>
void check_waiting(const Call& call) {
  lacuna_status status;
  {
    nb::gil_scoped_release others_run;
    status = call();
  }
  check(status);
}

}  // namespace

Loopback::Loopback(int size) { check(lacuna_loopback_create(size, &handle_)); }

nb::bytes unique_id(const Engine& engine) {
  unsigned char id[LACUNA_UNIQUE_ID_BYTES];
  check_waiting([&] { return lacuna_group_unique_id(engine.handle(), id); });
  return nb::bytes(reinterpret_cast<const char*>(id), sizeof id);
}

Group::Group(std::shared_ptr<Engine> engine, int rank, int size, std::shared_ptr<Loopback> loopback,
             std::optional<nb::bytes> id, std::uintptr_t communicator, double timeout_s,
             double link_gb_s, double tflops, const std::string& exchange)
    : engine_(std::move(engine)), loopback_(std::move(loopback)) {
  if (id && id->size() != LACUNA_UNIQUE_ID_BYTES) {
    refuse_argument("unique_id: expected " + std::to_string(LACUNA_UNIQUE_ID_BYTES) +
                    " bytes, got " + std::to_string(id->size()));
  }
  lacuna_group_options options{};
  options.struct_size = sizeof options;
  if (communicator == 0) options.rank = rank, options.size = size;
  if (loopback_ != nullptr) options.loopback = loopback_->handle();
  if (id) options.unique_id = id->c_str();
  options.communicator = reinterpret_cast<void*>(communicator);
  options.timeout_s = timeout_s;
  options.link_gb_s = link_gb_s;
  options.tflops = tflops;
  options.exchange = static_cast<lacuna_exchange>(read_word("exchange", kExchanges, exchange));
  check_waiting([&] { return lacuna_group_create(engine_->handle(), &options, &handle_); });
}

void Group::synchronize(std::uintptr_t stream) const {
  check_waiting([&] { return lacuna_group_synchronize(handle_, reinterpret_cast<void*>(stream)); });
}

GroupKernel::GroupKernel(std::shared_ptr<Group> group, const std::string& spec,
                         const std::string& path, int head_dim, const std::string& dtype,
                         std::optional<Shape> shape, bool sequences)
    : group_(std::move(group)) {
  const lacuna_shape raw = shape ? raw_shape(*shape) : lacuna_shape{};
  const lacuna_compile_options options = {
      sizeof(options),        head_dim,
      read_dtype(dtype),      path.c_str(),
      shape ? &raw : nullptr, sequences ? LACUNA_BATCH_SEQUENCES : LACUNA_BATCH_UNIFORM};
  check_waiting([&] {
    return lacuna_group_compile(group_->handle(), spec.data(), spec.size(), &options, &handle_);
  });
}

std::tuple<int, int> GroupKernel::tile() const {
  std::int32_t q = 0, k = 0;
  check(lacuna_group_kernel_tile(handle_, &q, &k));
  return {q, k};
}

GroupPlan::GroupPlan(std::shared_ptr<GroupKernel> kernel, const Shape& shape,
                     const std::string& layout, int stripe, const std::string& scheme, bool lse,
                     bool strided, const std::vector<float>& work, const SequenceLimits& sequences)
    : kernel_(std::move(kernel)) {
  const lacuna_shape raw = raw_shape(shape);
  lacuna_group_problem problem{};
  problem.struct_size = sizeof problem;
  problem.shape = &raw;
  problem.layout = static_cast<lacuna_layout>(read_word("layout", kLayouts, layout));
  problem.stripe = stripe;
  problem.scheme = static_cast<lacuna_scheme>(read_word("scheme", kSchemes, scheme));
  problem.lse = lse ? 1 : 0;
  problem.strided = strided ? 1 : 0;
  problem.work = work.empty() ? nullptr : work.data();
  problem.work_count = work.size();
  std::tie(problem.sequences, problem.max_n_q, problem.max_n_k) = sequences;
  check_waiting([&] { return lacuna_group_plan_create(kernel_->handle(), &problem, &handle_); });
}

Shape GroupPlan::shape() const {
  lacuna_shape raw{};
  raw.struct_size = sizeof raw;
  check(lacuna_group_plan_shape(handle_, &raw));
  return {raw.batch, raw.heads, raw.heads_kv, raw.n_q, raw.n_k};
}

std::size_t GroupPlan::workspace_bytes() const {
  std::size_t bytes = 0;
  check(lacuna_group_plan_workspace_bytes(handle_, &bytes));
  return bytes;
}

Target GroupPlan::target() const {
  lacuna_group_plan* handle = handle_;
  return {read_device(kernel_->group()->engine()->device()), true,
          [handle](const lacuna_shape&, std::size_t& bytes) {
            return lacuna_group_plan_workspace_bytes(handle, &bytes);
          },
          [handle](const lacuna_launch_args& args) { return lacuna_group_launch(handle, &args); }};
}

namespace {

nb::object call_plan(const GroupPlan& plan, nb::object q, nb::object k, nb::object v,
                     nb::object out, nb::object lse, nb::object stream, nb::object axes,
                     nb::object workspace, nb::object sequences, nb::kwargs named) {
  const nb::object none = nb::none();
  const LaunchOptions options = {out, lse, stream, axes, workspace, none, none, sequences};
  return Launch(q, k, v, options, nb::borrow<nb::dict>(named)).run(plan.target());
}

}  // namespace

void add_group_classes(nb::module_& module) {
  module.def("unique_id", &unique_id, "engine"_a, "For one rank, which gives it to the others.");
  nb::class_<Loopback>(module, "Loopback", "Where the ranks are threads that compute on the CPU.")
      .def(nb::init<int>(), "size"_a);
  nb::class_<Group>(module, "Group", "One rank of a group.")
      .def(nb::init<std::shared_ptr<Engine>, int, int, std::shared_ptr<Loopback>,
                    std::optional<nb::bytes>, std::uintptr_t, double, double, double,
                    const std::string&>(),
           "engine"_a, "rank"_a, "size"_a, nb::kw_only(), "loopback"_a = nb::none(),
           "unique_id"_a = nb::none(), "communicator"_a = 0, "timeout_s"_a = 0, "link_gb_s"_a = 0,
           "tflops"_a = 0, "exchange"_a = "auto")
      .def("wait", &Group::synchronize, "stream"_a);
  nb::class_<GroupKernel>(module, "GroupKernel", "One spec for all ranks of a group, compiled.")
      .def(nb::init<std::shared_ptr<Group>, const std::string&, const std::string&, int,
                    const std::string&, std::optional<Shape>, bool>(),
           "group"_a, "spec"_a, "path"_a, "head_dim"_a, "dtype"_a, "shape"_a = nb::none(),
           "sequences"_a = false)
      .def_prop_ro("tile", &GroupKernel::tile);
  nb::class_<GroupPlan>(module, "GroupPlan", "Who computes what of one problem.")
      .def(nb::init<std::shared_ptr<GroupKernel>, const Shape&, const std::string&, int,
                    const std::string&, bool, bool, const std::vector<float>&,
                    const SequenceLimits&>(),
           "kernel"_a, "shape"_a, "layout"_a, "stripe"_a, "scheme"_a, "lse"_a, "strided"_a,
           "work"_a, "sequences"_a)
      .def("json", &GroupPlan::json)
      .def_prop_ro("shape", &GroupPlan::shape,
                   "(batch, heads, heads_kv, n_q, n_k) of this rank's tensors.")
      .def_prop_ro("workspace_bytes", &GroupPlan::workspace_bytes)
      .def("launch", &call_plan, "q"_a, "k"_a, "v"_a, nb::kw_only(), "out"_a = nb::none(),
           "lse"_a = false, "stream"_a = nb::none(), "axes"_a = "bhnd", "workspace"_a = nb::none(),
           "sequences"_a = nb::none(), "named"_a);
}

}  // namespace lacuna_python
