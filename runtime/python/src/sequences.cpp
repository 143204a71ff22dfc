#include "sequences.hpp"

#include <algorithm>
#include <string>

#include "array.hpp"
#include "handles.hpp"

namespace lacuna_python {
namespace {

nb::object attribute(nb::handle sequences, const char* name) {
  const nb::object value = nb::getattr(sequences, name, nb::object());
  if (value.is_valid()) return value;
  throw nb::type_error("sequences: expected a lacuna.Sequences");
}

/// The largest of the numbers, or of what lies between two of them, and at least 1: where there is
/// no work the launch does not look at the contents. 1 for a tensor that it is going to refuse.
std::int32_t largest(const DLTensor& tensor, bool of_differences) {
  const bool is_list = tensor.ndim == 1 && tensor.dtype.code == kDLInt && tensor.dtype.bits == 32;
  if (!is_list || tensor.data == nullptr) return 1;
  const auto* data = reinterpret_cast<const std::int32_t*>(
      static_cast<const unsigned char*>(tensor.data) + tensor.byte_offset);
  const auto at = [&](std::int64_t i) { return data[i * tensor.strides[0]]; };
  std::int32_t most = 1;
  for (std::int64_t i = of_differences ? 1 : 0; i < tensor.shape[0]; ++i) {
    const std::int64_t value = std::int64_t{at(i)} - (of_differences ? at(i - 1) : 0);
    most = std::max(most, static_cast<std::int32_t>(std::min<std::int64_t>(value, INT32_MAX)));
  }
  return most;
}

/// `lengths`: the tensor that the number follows from.
std::int32_t read_most(nb::handle value, const char* name, const DLTensor& lengths,
                       bool of_differences) {
  const std::string subject = std::string("sequences.") + name;
  if (value.is_none()) {
    if (lengths.device.device_type == kDLCPU) return largest(lengths, of_differences);
    refuse_argument(subject +
                    ": expected a number: the lengths lie on a GPU, where the host does " +
                    "not read them");
  }
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    refuse_argument(subject + ": expected an int, got " +
                    nb::cast<std::string>(nb::str(value.type().attr("__name__"))));
  }
  const long most = PyLong_AsLong(number.ptr());
  if (most == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();
  if (most < 0 || most > INT32_MAX) {
    refuse_argument(subject + ": expected 0 to " + std::to_string(INT32_MAX) + ", got " +
                    nb::cast<std::string>(nb::str(number)));
  }
  return static_cast<std::int32_t>(most);
}

}  // namespace

lacuna_batch batch_of(nb::handle sequences) {
  static const nb::handle name = interned("pages");
  if (sequences.is_none()) return LACUNA_BATCH_UNIFORM;
  const nb::object pages = nb::getattr(sequences, name, nb::none());
  return pages.is_none() ? LACUNA_BATCH_SEQUENCES : LACUNA_BATCH_PAGES;
}

lacuna_sequences read_sequences(
    nb::handle sequences, const std::function<const DLTensor&(nb::handle, const char*)>& borrow) {
  lacuna_sequences raw{};
  raw.struct_size = sizeof raw;
  const nb::object q_begin = attribute(sequences, "q_begin"), n_k = attribute(sequences, "n_k"),
                   k_begin = attribute(sequences, "k_begin"), pages = attribute(sequences, "pages");
  raw.q_begin = &borrow(q_begin, "sequences.q_begin");
  raw.n_k = &borrow(n_k, "sequences.n_k");
  if (!k_begin.is_none()) raw.k_begin = &borrow(k_begin, "sequences.k_begin");
  if (!pages.is_none()) raw.pages = &borrow(pages, "sequences.pages");
  raw.count = raw.n_k->ndim == 1 ? static_cast<std::int32_t>(raw.n_k->shape[0]) : 0;
  raw.max_n_q = read_most(attribute(sequences, "max_n_q"), "max_n_q", *raw.q_begin, true);
  raw.max_n_k = read_most(attribute(sequences, "max_n_k"), "max_n_k", *raw.n_k, false);
  return raw;
}

}  // namespace lacuna_python
