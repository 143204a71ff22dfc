#include "launch.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "sequences.hpp"

namespace lacuna_python {
namespace {

/// The optional tensors of a launch; every other keyword but kSoftmaxScale is a parameter of the
/// spec.
struct NamedTensor {
  const char* name;
  const DLTensor* lacuna_launch_args::*place;
  bool is_output;
};

constexpr NamedTensor kNamedTensors[] = {
    {"counts", &lacuna_launch_args::counts, true},
    {"tile_mask", &lacuna_launch_args::tile_mask, true},
    {"list_indices", &lacuna_launch_args::list_indices, false},
    {"list_counts", &lacuna_launch_args::list_counts, false},
    {"previous_lse", &lacuna_launch_args::previous_lse, false},
    {"order", &lacuna_launch_args::order, false},
    {"k_scale", &lacuna_launch_args::k_scale, false},
    {"v_scale", &lacuna_launch_args::v_scale, false},
    {"k_summaries", &lacuna_launch_args::k_summaries, true},
    {"summary_slots", &lacuna_launch_args::summary_slots, false},
    {"summarised", &lacuna_launch_args::summarised, false},
};

constexpr std::string_view kSoftmaxScale =
    "softmax_scale";                          // a number of the launch, not of the spec
constexpr std::size_t kUnnamedTensors = 6;    // q, k, v, o, lse, workspace
constexpr std::size_t kSequencesTensors = 4;  // q_begin, n_k, k_begin, pages

const NamedTensor* find_named(std::string_view name) {
  for (const NamedTensor& tensor : kNamedTensors) {
    if (name == tensor.name) return &tensor;
  }
  return nullptr;
}

bool read_layout(nb::handle layout) {
  const std::string_view name = text_of(layout, "layout");
  if (name == "bhnd") return false;
  if (name == "bnhd") return true;
  refuse_argument("layout: expected \"bhnd\" or \"bnhd\", got \"" + std::string(name) + "\"");
}

/// The stream as the driver knows it, of a number or of an object of a library.
void* read_stream(nb::handle stream) {
  nb::object number = nb::borrow(stream);
  if (PyLong_Check(stream.ptr()) == 0) {
    number = nb::module_::import_("lacuna.arrays").attr("stream_handle")(stream);
  }
  void* handle = PyLong_AsVoidPtr(number.ptr());
  if (handle == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return handle;
}

void* current_stream(const ArrayType& type, DLDevice device) {
  if (type.exchange != nullptr) {
    void* stream = nullptr;
    if (type.exchange->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
      nb::raise_python_error();
    }
    return stream;
  }
  return read_stream(type.library.attr("current_stream")(device.device_id));
}

/// What a number is passed as; nothing for an array.
std::optional<double> read_number(nb::handle value) {
  if (PyFloat_Check(value.ptr()) != 0) return PyFloat_AsDouble(value.ptr());
  if (PyLong_Check(value.ptr()) == 0 && nb::hasattr(value, "__dlpack__")) return std::nullopt;
  if (PyLong_Check(value.ptr()) == 0 && !nb::hasattr(value, "__float__")) return std::nullopt;
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return number;
}

void delete_managed(DLManagedTensorVersioned* tensor) {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

void set_error(void* /*context*/, const char* kind, const char* message) {
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

}  // namespace

std::string_view text_of(nb::handle text, const char* name) {
  Py_ssize_t bytes = 0;
  const char* data =
      PyUnicode_Check(text.ptr()) ? PyUnicode_AsUTF8AndSize(text.ptr(), &bytes) : nullptr;
  if (data == nullptr) refuse_argument(std::string(name) + ": expected a str");
  return {data, static_cast<std::size_t>(bytes)};
}

Target target_of(const Kernel& kernel) {
  lacuna_kernel* handle = kernel.handle();
  return {kernel.device(), kernel.device().device_type == kDLCPU,
          [handle](const lacuna_shape& shape, std::size_t& bytes) {
            return lacuna_workspace_bytes(handle, &shape, &bytes);
          },
          [handle](const lacuna_launch_args& args) { return lacuna_launch(handle, &args); }};
}

Launch::Launch(nb::handle q, nb::handle k, nb::handle v, const LaunchOptions& options,
               nb::dict named)
    : q_array_(q),
      k_array_(k),
      v_array_(v),
      options_(options),
      named_(std::move(named)),
      type_(array_type(q)),
      swapped_(read_layout(options.layout)),
      tensors_(new BorrowedTensor[kUnnamedTensors + named_.size() +
                                  kBranchTensors * branch_count(named_) +
                                  (options.sequences.is_none() ? 0 : kSequencesTensors)]),
      pooled_(nullptr, delete_managed) {
  args_.struct_size = sizeof(args_);
  if (!options_.stream.is_none()) {
    stream_ = read_stream(options_.stream);
    is_current_stream_ = false;
  }
  // The stream that is current depends on the device of q, and only libraries whose arrays come by
  // __dlpack__ want to know it before: they say their device themselves.
  if (is_current_stream_ && type_.exchange == nullptr && !type_.by_buffer &&
      nb::hasattr(q, "__dlpack_device__")) {
    const auto device = nb::cast<nb::tuple>(q.attr("__dlpack_device__")());
    if (nb::cast<int>(nb::int_(device[0])) == kDLCUDA) {
      stream_ = current_stream(type_, {kDLCUDA, nb::cast<int>(nb::int_(device[1]))});
    }
  }
  const DLTensor& tensor = borrow(q, "q").tensor();
  if (is_current_stream_ && type_.exchange != nullptr && tensor.device.device_type == kDLCUDA) {
    stream_ = current_stream(type_, tensor.device);
  }
  if (swapped_) tensors_[0].swap_heads_and_tokens();
  args_.q = &tensor;
  args_.stream = stream_;
  args_.k = &borrow(k, "k").tensor();
  args_.v = &borrow(v, "v").tensor();
  if (swapped_) {
    tensors_[1].swap_heads_and_tokens();
    tensors_[2].swap_heads_and_tokens();
  }
}

nb::tuple Launch::problem() const {
  const DLTensor& q = *args_.q;
  if (q.ndim != 4) {
    refuse_argument(
        std::string("argument q: expected 4 axes, ") +
        (swapped_ ? "[batch, tokens, heads, head_dim]" : "[batch, heads, tokens, head_dim]") +
        ", got " + std::to_string(q.ndim));
  }
  return nb::make_tuple(static_cast<int>(q.device.device_type), q.device.device_id,
                        q.dtype.code * 256 + q.dtype.bits, q.shape[3],
                        static_cast<int>(batch_of(options_.sequences)),
                        args_.v->ndim == 4 ? args_.v->shape[3] : 0);
}

BorrowedTensor& Launch::borrow(nb::handle array, const char* name) {
  BorrowedTensor& tensor = tensors_[borrowed_++];
  tensor.borrow(array, name, stream_);
  return tensor;
}

void Launch::output(nb::handle array, const char* name, bool is_callers, const DLTensor*& place) {
  BorrowedTensor& tensor = borrow(array, name);
  // What has just been made may be written to, also by a library whose arrays never change.
  if (is_callers && tensor.is_read_only()) {
    refuse_argument(std::string("argument ") + name +
                    ": expected memory to write, got a read-only array");
  }
  place = &tensor.tensor();
}

/// Like q, with as many elements in a row as v has.
nb::object Launch::make_output() const {
  const DLTensor &q = *args_.q, &v = *args_.v;
  if (q.ndim != 4 || v.ndim != 4 || v.shape[3] == q.shape[3]) {
    return type_.library.attr("empty_like")(q_array_);
  }
  const nb::tuple shape = swapped_ ? nb::make_tuple(q.shape[0], q.shape[2], q.shape[1], v.shape[3])
                                   : nb::make_tuple(q.shape[0], q.shape[1], q.shape[2], v.shape[3]);
  const std::string kind = q.dtype.code == kDLBfloat ? "bfloat" : "float";
  return type_.library.attr("empty")(shape, kind + std::to_string(q.dtype.bits), q_array_);
}

void Launch::take_lse(nb::object& made) {
  const bool is_array = PyBool_Check(options_.lse.ptr()) == 0 && !options_.lse.is_none();
  if (!is_array && options_.lse.ptr() != Py_True) return;
  if (is_array) {
    made = nb::borrow(options_.lse);
  } else if (args_.q->ndim == 4) {
    const std::int64_t* extent = args_.q->shape;
    made = type_.library.attr("empty")(nb::make_tuple(extent[0], extent[1], extent[2]), "float32",
                                       q_array_);
  } else {
    return;  // the launch says what q lacks
  }
  output(made, "lse", is_array, args_.lse);
}

void Launch::take_named() {
  params_.reserve(named_.size());
  for (const auto [key, value] : named_) {
    const char* name = text_of(key, "keywords").data();
    if (value.is_none() || std::string_view(name) == kBranches) continue;
    if (const NamedTensor* tensor = find_named(name)) {
      if (tensor->is_output) {
        output(value, name, true, args_.*tensor->place);
      } else {
        args_.*tensor->place = &borrow(value, name).tensor();
      }
      continue;
    }
    const std::optional<double> number = read_number(value);
    if (std::string_view(name) == kSoftmaxScale) {
      if (!number) refuse_argument("softmax_scale: expected a number");
      args_.softmax_scale = *number;
    } else if (number) {
      params_.push_back({name, nullptr, *number});
    } else {
      params_.push_back({name, &borrow(value, name).tensor(), 0});
    }
  }
  args_.params = params_.data();
  args_.params_count = params_.size();
}

void Launch::take_events() {
  if (options_.stage_events.is_none()) return;
  for (const nb::handle event : options_.stage_events) events_.push_back(read_stream(event));
  args_.stage_events = events_.empty() ? nullptr : events_.data();
  args_.stage_events_count = events_.size();
}

void Launch::take_selection(const Target& target) {
  if (!options_.selection.is_none()) args_.selection = selection_of(options_.selection, target);
}

void Launch::take_sequences() {
  if (options_.sequences.is_none()) return;
  sequences_ = read_sequences(options_.sequences,
                              [this](nb::handle array, const char* name) -> const DLTensor& {
                                return borrow(array, name).tensor();
                              });
  args_.sequences = &sequences_;
}

std::optional<Shape> Launch::shape() const {
  if (args_.q->ndim != 4 || args_.k->ndim != 4) return std::nullopt;
  const std::int64_t *q = args_.q->shape, *k = args_.k->shape;
  if (args_.sequences != nullptr)
    return Shape(sequences_.count, q[1], k[1], sequences_.max_n_q, sequences_.max_n_k);
  return Shape(q[0], q[1], k[1], q[2], k[2]);
}

void Launch::take_workspace(const Target& target) {
  if (!options_.workspace.is_none()) {
    const Memory memory = writable_memory(borrow(options_.workspace, "workspace"), "workspace");
    check_reaches(target.device, memory, "workspace");
    args_.workspace = memory.data;
    args_.workspace_bytes = memory.bytes;
    return;
  }
  // Tensors of another device are refused by the launch, with all else that is wrong.
  if (args_.q->device.device_type != target.device.device_type) return;
  const std::optional<Shape> problem = shape();
  if (!problem) return;
  const lacuna_shape raw = raw_shape(*problem);
  std::size_t bytes = 0;
  if (target.workspace_bytes(raw, bytes) != LACUNA_OK || bytes == 0) return;
  if (target.device.device_type == kDLCPU) {
    allocate_on_host(bytes);
  } else {
    allocate_workspace(bytes);
  }
}

void Launch::allocate_on_host(std::size_t bytes) {
  host_workspace_.reset(new unsigned char[bytes + kAlignment]);
  const auto address = reinterpret_cast<std::uintptr_t>(host_workspace_.get());
  args_.workspace = host_workspace_.get() + (kAlignment - address % kAlignment) % kAlignment;
  args_.workspace_bytes = bytes;
}

/// From the allocator of q's library, whose memory follows the order of a stream: it is given back
/// as soon as the launch is enqueued.
void Launch::allocate_workspace(std::size_t bytes) {
  if (type_.exchange != nullptr && is_current_stream_) {
    std::int64_t count = static_cast<std::int64_t>(bytes), stride = 1;
    DLTensor prototype{nullptr, args_.q->device, 1, {kDLUInt, 8, 1}, &count, &stride, 0};
    DLManagedTensorVersioned* made = nullptr;
    if (type_.exchange->managed_tensor_allocator(&prototype, &made, nullptr, set_error) != 0) {
      nb::raise_python_error();
    }
    pooled_.reset(made);
    args_.workspace =
        static_cast<unsigned char*>(made->dl_tensor.data) + made->dl_tensor.byte_offset;
  } else {
    own_workspace_ =
        type_.library.attr("workspace")(bytes, q_array_, reinterpret_cast<std::intptr_t>(stream_));
    borrow(own_workspace_, "workspace");
    args_.workspace = const_cast<void*>(tensors_[borrowed_ - 1].data());
  }
  args_.workspace_bytes = bytes;
}

void Launch::refuse_aliases() const {
  const auto address = [](const DLTensor* tensor) {
    return static_cast<const unsigned char*>(tensor->data) + tensor->byte_offset;
  };
  if (args_.o->data == nullptr) return;
  const std::pair<const char*, const DLTensor*> inputs[] = {
      {"q", args_.q}, {"k", args_.k}, {"v", args_.v}};
  for (const auto& [name, input] : inputs) {
    if (input->data != nullptr && address(input) == address(args_.o)) {
      refuse_argument(std::string("argument o: expected memory of its own, got that of ") + name);
    }
  }
}

bool Launch::wants_gradients() const {
  static const nb::handle name = interned("requires_grad");
  for (const nb::handle array : {q_array_, k_array_, v_array_}) {
    const nb::object wants = nb::getattr(array, name, nb::none());
    if (wants.ptr() == Py_True) return true;
  }
  return false;
}

nb::object Launch::run(const Target& target) {
  if (!type_.refuse_gradients.is_none() && wants_gradients()) type_.refuse_gradients();
  const bool is_callers = !options_.out.is_none();
  nb::object o = is_callers ? nb::borrow(options_.out) : make_output();
  output(o, "o", is_callers, args_.o);
  if (swapped_) tensors_[3].swap_heads_and_tokens();
  refuse_aliases();
  nb::object lse;
  take_lse(lse);
  take_named();
  take_events();
  take_selection(target);
  take_branches(target);
  take_sequences();
  take_workspace(target);

  lacuna_status status;
  if (target.waits) {
    nb::gil_scoped_release others_run;
    status = target.launch(args_);
  } else {
    status = target.launch(args_);
  }
  check(status);
  if (!type_.finish.is_none() && target.device.device_type == kDLCUDA) {
    type_.finish(reinterpret_cast<std::intptr_t>(stream_), target.device.device_id);
  }
  if (!lse.is_valid()) return o;
  return nb::make_tuple(std::move(o), std::move(lse));
}

}  // namespace lacuna_python
