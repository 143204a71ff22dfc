#include "array.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <string>
#include <unordered_map>

namespace lacuna_python {
namespace {

constexpr const char* kExchangeCapsule = "dlpack_exchange_api";

/// str(array.dtype)
std::string dtype_text(nb::handle array) {
  const nb::object dtype = nb::getattr(array, "dtype", array.type());
  return nb::cast<std::string>(nb::steal(PyObject_Str(dtype.ptr())));
}

std::string class_name(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

/// The functions of this version, of the type or inherited; null if there are none.
const DLPackExchangeAPI* find_exchange(nb::handle type) {
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (capsule.is_none() || PyCapsule_IsValid(capsule.ptr(), kExchangeCapsule) == 0) return nullptr;
  const auto* header = static_cast<const DLPackExchangeAPIHeader*>(
      PyCapsule_GetPointer(capsule.ptr(), kExchangeCapsule));
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) {
    header = header->prev_api;
  }
  const auto* api = reinterpret_cast<const DLPackExchangeAPI*>(header);
  return api != nullptr && api->dltensor_from_py_object_no_sync != nullptr ? api : nullptr;
}

ArrayType find_array_type(nb::handle type) {
  const nb::object library = nb::module_::import_("lacuna.arrays").attr("library_of")(type);
  return {find_exchange(type), nb::cast<bool>(library.attr("by_buffer")), library,
          library.attr("finish"), library.attr("refuse_gradients")};
}

/// Of the formats of the struct module, those that a launch may take, and enough others to be named
/// in its errors.
std::optional<DLDataType> dtype_of_format(const char* format, Py_ssize_t bytes) {
  if (format == nullptr) return DLDataType{kDLUInt, 8, 1};
  if (*format == '<' || *format == '=' || *format == '@' || *format == '|') ++format;
  if (*format == '\0' || format[1] != '\0') return std::nullopt;
  const auto bits = static_cast<std::uint8_t>(bytes * 8);
  if (std::strchr("efd", *format) != nullptr) return DLDataType{kDLFloat, bits, 1};
  if (std::strchr("bhilq", *format) != nullptr) return DLDataType{kDLInt, bits, 1};
  if (std::strchr("BHILQ", *format) != nullptr) return DLDataType{kDLUInt, bits, 1};
  if (*format == '?') return DLDataType{kDLBool, bits, 1};
  return std::nullopt;
}

[[noreturn]] void refuse(const char* name, const std::string& text) {
  throw nb::type_error((std::string("argument ") + name + ": " + text).c_str());
}

/// The capsule of array.__dlpack__, of the newest version that the library speaks.
nb::object export_capsule(nb::handle array, std::optional<std::intptr_t> stream) {
  nb::dict options, versioned;
  if (stream) options["stream"] = nb::int_(*stream);
  versioned.update(options);
  versioned["max_version"] = nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
  const nb::object method = array.attr("__dlpack__");
  const nb::tuple none = nb::make_tuple();
  PyObject* capsule = PyObject_Call(method.ptr(), none.ptr(), versioned.ptr());
  if (capsule == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();  // from before max_version
    capsule = PyObject_Call(method.ptr(), none.ptr(), options.ptr());
  }
  if (capsule == nullptr) nb::raise_python_error();
  return nb::steal(capsule);
}

}  // namespace

nb::handle interned(const char* name) {
  return PyUnicode_InternFromString(name);  // for good: names of attributes are few
}

const ArrayType& array_type(nb::handle array) {
  // Keys are types that never end: each is held. Never destroyed: Python may be gone by then.
  static auto& types = *new std::unordered_map<PyTypeObject*, ArrayType>;
  PyTypeObject* type = Py_TYPE(array.ptr());
  const auto found = types.find(type);
  if (found != types.end()) return found->second;
  ArrayType made = find_array_type(array.type());
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  return types.emplace(type, std::move(made)).first->second;
}

BorrowedTensor::~BorrowedTensor() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
  if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
  if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
}

void BorrowedTensor::borrow(nb::handle array, const char* name, void* stream) {
  const ArrayType& type = array_type(array);
  if (type.exchange != nullptr) {
    from_exchange(*type.exchange, array);
    take(tensor_, name);
  } else if (type.by_buffer) {
    from_buffer(array, name);
  } else if (nb::hasattr(array, "__dlpack__")) {
    from_protocol(array, name, stream);
  } else {
    refuse(name, "expected an array (NumPy's, or one with __dlpack__), got " + class_name(array));
  }
}

void BorrowedTensor::swap_heads_and_tokens() {
  if (tensor_.ndim != 4) return;
  std::swap(shape_[1], shape_[2]);
  std::swap(strides_[1], strides_[2]);
}

void BorrowedTensor::from_exchange(const DLPackExchangeAPI& exchange, nb::handle array) {
  if (exchange.dltensor_from_py_object_no_sync(array.ptr(), &tensor_) != 0) {
    nb::raise_python_error();
  }
}

void BorrowedTensor::from_buffer(nb::handle array, const char* name) {
  std::optional<DLDataType> dtype;
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) == 0) {
    has_buffer_ = true;
    dtype = dtype_of_format(buffer_.format, buffer_.itemsize);
  } else {
    // A type that is none of NumPy's own: those of ml_dtypes have no format.
    PyErr_Clear();
    const std::string text = dtype_text(array);
    if (text == "bfloat16" || text == "float8_e4m3fn") {
      const bool is_byte = text != "bfloat16";
      const nb::object bits = array.attr("view")(is_byte ? "uint8" : "uint16");
      if (PyObject_GetBuffer(bits.ptr(), &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        nb::raise_python_error();
      }
      has_buffer_ = true;
      dtype = is_byte ? DLDataType{kDLFloat8_e4m3fn, 8, 1} : DLDataType{kDLBfloat, 16, 1};
    }
  }
  if (!dtype) {
    refuse(name,
           "dtype expected bfloat16, float16 or float32 (of parameters: float32 or int32), got " +
               dtype_text(array));
  }
  if (buffer_.ndim > kMostAxes) {
    refuse(name, "expected at most 4 axes, got " + std::to_string(buffer_.ndim));
  }
  for (int i = 0; i < buffer_.ndim; ++i) {
    if (buffer_.strides[i] % buffer_.itemsize != 0) {
      refuse(name, "stride of axis " + std::to_string(i) + " expected whole elements of " +
                       std::to_string(buffer_.itemsize) + " bytes, got " +
                       std::to_string(buffer_.strides[i]) + " bytes");
    }
    shape_[i] = buffer_.shape[i];
    strides_[i] = buffer_.strides[i] / buffer_.itemsize;
  }
  is_read_only_ = buffer_.readonly != 0;
  tensor_ = {buffer_.buf, {kDLCPU, 0}, buffer_.ndim, *dtype, shape_, strides_, 0};
}

void BorrowedTensor::from_protocol(nb::handle array, const char* name, void* stream) {
  const auto device = nb::cast<nb::tuple>(array.attr("__dlpack_device__")());
  const bool on_gpu = nb::cast<int>(nb::int_(device[0])) == kDLCUDA;
  std::optional<std::intptr_t> ready_on;
  if (on_gpu) {
    constexpr std::intptr_t kLegacyDefault = 1;  // DLPack has no stream 0
    ready_on = stream == nullptr ? kLegacyDefault : reinterpret_cast<std::intptr_t>(stream);
  }
  const nb::object capsule = export_capsule(array, ready_on);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0) {
    auto* versioned = static_cast<DLManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    versioned_ = versioned;
    if (versioned->version.major != DLPACK_MAJOR_VERSION) {
      refuse(name, "expected DLPack 1, got DLPack " + std::to_string(versioned->version.major));
    }
    is_read_only_ = (versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
    take(versioned->dl_tensor, name);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    managed_ = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    take(managed_->dl_tensor, name);
  } else {
    refuse(name, "__dlpack__ gave no tensor that can be taken");
  }
}

void BorrowedTensor::take(const DLTensor& tensor, const char* name) {
  if (tensor.ndim > kMostAxes) {
    refuse(name, "expected at most 4 axes, got " + std::to_string(tensor.ndim));
  }
  std::int64_t compact = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    shape_[i] = tensor.shape[i];
    strides_[i] = tensor.strides != nullptr ? tensor.strides[i] : compact;
    compact *= tensor.shape[i];
  }
  tensor_ = tensor;
  tensor_.shape = shape_;
  tensor_.strides = strides_;
}

}  // namespace lacuna_python
