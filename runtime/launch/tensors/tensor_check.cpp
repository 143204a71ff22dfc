#include "runtime/launch/tensors/tensor_check.hpp"

#include <limits>

namespace lacuna {
namespace {

constexpr std::int64_t kRowBytes = 16;  // one cp.async
/// From row to row: bytes of 16-bit elements are numbers of 31 bits then.
constexpr std::int64_t kMostRowStride = (std::int64_t{1} << 30) - 1;
constexpr std::uintptr_t kRowAlignment = 16;

bool same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

bool reachable(DLDevice tensor, DLDevice kernel) {
  if (tensor.device_type == kDLCUDAManaged) return true;
  if (kernel.device_type == kDLCPU) {
    return tensor.device_type == kDLCPU || tensor.device_type == kDLCUDAHost;
  }
  return tensor.device_type == kernel.device_type && tensor.device_id == kernel.device_id;
}

/// "4 [batch, heads, n_q, d]"
std::string shape_text(const TensorRule& rule) {
  if (rule.rank == 0) return "0 (a scalar)";
  std::string text = std::to_string(rule.rank) + " [";
  for (int d = 0; d < rule.rank; ++d) {
    text += (d == 0 ? "" : ", ") + std::string(rule.dims[static_cast<std::size_t>(d)]);
  }
  return text + "]";
}

std::size_t element_bytes(DLDataType dtype) { return dtype.bits / 8U; }

/// One tensor on its way through the checks.
struct Check {
  const TensorRule& rule;
  const Code code;
  Mismatches& mismatches;
  BoundTensor& bound;

  void report(const std::string& text) const {
    if (code == Code::kParamArgument) {
      mismatches.parameter(rule.name, text);
    } else {
      mismatches.argument(rule.name, text);
    }
  }

  std::string dim(int d) const { return rule.dims[static_cast<std::size_t>(d)]; }

  /// Strides of dimensions with at most one element mean nothing.
  bool counts(int d) const { return bound.extent[d] > 1; }
};

void check_extents(const Check& check) {
  for (int d = 0; d < check.rule.rank; ++d) {
    const std::int64_t expected = check.rule.extents[static_cast<std::size_t>(d)];
    const std::int64_t got = check.bound.extent[d];
    if (got < 0 || got > std::numeric_limits<std::int32_t>::max()) {
      check.report(check.dim(d) + " expected 0 to 2147483647, got " + std::to_string(got));
    } else if (expected != kAnyExtent && got != expected) {
      check.report(check.dim(d) + " expected " + std::to_string(expected) + ", got " +
                   std::to_string(got));
    }
  }
}

/// Extents of 31 bits each can still be more elements than a stride of 64 bits counts.
void check_count(const Check& check) {
  std::int64_t count = 1;
  for (int d = 0; d < check.rule.rank; ++d) {
    const std::int64_t extent = check.bound.extent[d];
    if (extent > std::numeric_limits<std::int32_t>::max()) return;  // reported already
    if (__builtin_mul_overflow(count, extent, &count)) {
      check.report("expected at most 9223372036854775807 elements, got more");
      return;
    }
  }
}

void check_last(const Check& check) {
  const int last = check.rule.rank - 1;
  if (check.counts(last) && check.bound.stride[last] != 1) {
    check.report("stride of " + check.dim(last) + " expected 1, got " +
                 std::to_string(check.bound.stride[last]));
  }
}

void check_rows(const Check& check, bool on_gpu) {
  check_last(check);
  const int last = check.rule.rank - 1;
  const auto unit = kRowBytes / static_cast<std::int64_t>(element_bytes(check.rule.dtype));
  for (int d = 0; d < last; ++d) {
    if (!check.counts(d)) continue;
    const std::int64_t stride = check.bound.stride[d];
    if (on_gpu && stride % unit != 0) {
      check.report("stride of " + check.dim(d) + " expected a multiple of " + std::to_string(unit) +
                   " elements, got " + std::to_string(stride));
    }
    if (on_gpu && d == last - 1 && (stride > kMostRowStride || stride < -kMostRowStride)) {
      check.report("stride of " + check.dim(d) + " expected at most " +
                   std::to_string(kMostRowStride) + " elements, got " + std::to_string(stride));
    }
    if (check.rule.is_output && stride == 0) {
      check.report("stride of " + check.dim(d) +
                   " expected not 0: results would overwrite one another");
    }
  }
}

void check_compact(const Check& check) {
  std::uint64_t compact = 1;  // may wrap where check_count complains
  for (int d = check.rule.rank - 1; d >= 0; --d) {
    if (check.counts(d) && static_cast<std::uint64_t>(check.bound.stride[d]) != compact) {
      check.report("stride of " + check.dim(d) + " expected " + std::to_string(compact) +
                   " (contiguous), got " + std::to_string(check.bound.stride[d]));
      return;
    }
    compact *= static_cast<std::uint64_t>(check.bound.extent[d]);
  }
}

void check_data(const Check& check, bool on_gpu) {
  if (check.bound.data == nullptr) {
    check.report("data expected a pointer, got null");
    return;
  }
  const bool whole_rows = on_gpu && check.rule.layout == Layout::kRows;
  const std::uintptr_t alignment = whole_rows ? kRowAlignment : element_bytes(check.rule.dtype);
  if (const auto rest = reinterpret_cast<std::uintptr_t>(check.bound.data) % alignment; rest != 0) {
    check.report("data expected aligned to " + std::to_string(alignment) +
                 " bytes, got an address " + std::to_string(rest) + " bytes past that");
  }
}

}  // namespace

Diagnostic& Mismatches::add(Code code, const std::string& text) {
  any_ = true;
  Diagnostic d;
  d.code = code;
  d.message = "kernel " + contract_.kernel + ", " + text;
  return diagnostics_.add(std::move(d));
}

Diagnostic& Mismatches::argument(const char* subject, const std::string& text) {
  return add(Code::kTensorArgument, "argument " + std::string(subject) + ": " + text);
}

Diagnostic& Mismatches::parameter(const char* subject, const std::string& text) {
  return add(Code::kParamArgument, "parameter " + std::string(subject) + ": " + text);
}

std::string dtype_name(DLDataType dtype) {
  std::string name;
  switch (dtype.code) {
    case kDLInt:
      name = "i";
      break;
    case kDLUInt:
      name = "u";
      break;
    case kDLFloat:
      name = "f";
      break;
    case kDLBfloat:
      name = "bf";
      break;
    case kDLBool:
      name = "bool";
      break;
    case kDLFloat8_e4m3fn:
      return "e4m3";
    default:
      name = "type code " + std::to_string(dtype.code) + " of bits ";
  }
  name += std::to_string(dtype.bits);
  return dtype.lanes == 1 ? name : name + "x" + std::to_string(dtype.lanes);
}

std::string device_text(DLDevice device) {
  switch (device.device_type) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda:" + std::to_string(device.device_id);
    case kDLCUDAHost:
      return "pinned host memory";
    default:
      return "device type " + std::to_string(static_cast<int>(device.device_type));
  }
}

DLDataType dl_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return {kDLBfloat, 16, 1};
    case DType::kF16:
      return {kDLFloat, 16, 1};
    case DType::kF32:
      break;
  }
  return {kDLFloat, 32, 1};
}

void check_tensor(const TensorRule& rule, const DLTensor& tensor, Code code, Mismatches& mismatches,
                  BoundTensor& bound) {
  const Check check{rule, code, mismatches, bound};
  const DLDevice device = mismatches.contract().device;
  if (!reachable(tensor.device, device)) {
    check.report("device expected " + device_text(device) + ", got " + device_text(tensor.device));
  }
  if (!same(tensor.dtype, rule.dtype)) {
    check.report("dtype expected " + dtype_name(rule.dtype) + ", got " + dtype_name(tensor.dtype));
  }
  if (tensor.ndim != rule.rank || (rule.rank > 0 && tensor.shape == nullptr)) {
    check.report("rank expected " + shape_text(rule) + ", got " + std::to_string(tensor.ndim));
    return;
  }
  bound.data = tensor.data == nullptr
                   ? nullptr
                   : static_cast<unsigned char*>(tensor.data) + tensor.byte_offset;
  std::uint64_t compact = 1;  // may wrap where check_extents or check_count complains
  for (int d = rule.rank - 1; d >= 0; --d) {
    bound.extent[d] = tensor.shape[d];
    bound.stride[d] =
        tensor.strides != nullptr ? tensor.strides[d] : static_cast<std::int64_t>(compact);
    compact *= static_cast<std::uint64_t>(tensor.shape[d]);
  }
  const bool on_gpu = device.device_type == kDLCUDA;
  check_extents(check);
  // Without elements, strides and data mean nothing.
  for (int d = 0; d < rule.rank; ++d) {
    if (bound.extent[d] <= 0) return;
  }
  check_count(check);
  if (rule.layout == Layout::kRows) check_rows(check, on_gpu);
  if (rule.layout == Layout::kDenseInLast) check_last(check);
  if (rule.layout == Layout::kCompact) check_compact(check);
  check_data(check, on_gpu);
}

}  // namespace lacuna
