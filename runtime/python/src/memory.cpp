#include "memory.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "handles.hpp"

namespace lacuna_python {
namespace {

std::string device_text(DLDevice device) {
  if (device.device_type == kDLCPU) return "cpu";
  const std::string index = std::to_string(device.device_id);
  if (device.device_type == kDLCUDA) return "cuda:" + index;
  return "device type " + std::to_string(static_cast<int>(device.device_type)) + ":" + index;
}

bool is_compact(const DLTensor& tensor) {
  std::int64_t compact = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] > 1 && tensor.strides[i] != compact) return false;
    compact *= tensor.shape[i];
  }
  return true;
}

std::size_t bytes_of(const DLTensor& tensor) {
  std::size_t bytes = tensor.dtype.bits / 8U * tensor.dtype.lanes;
  for (int i = 0; i < tensor.ndim; ++i) bytes *= static_cast<std::size_t>(tensor.shape[i]);
  return bytes;
}

}  // namespace

Memory writable_memory(const BorrowedTensor& tensor, const char* name) {
  if (tensor.is_read_only()) {
    refuse_argument(std::string(name) + ": expected memory to write, got a read-only array");
  }
  if (!is_compact(tensor.tensor())) {
    refuse_argument(std::string(name) + ": expected memory without gaps, got a strided array");
  }
  return {const_cast<void*>(tensor.data()), bytes_of(tensor.tensor()), tensor.tensor().device};
}

void check_reaches(DLDevice device, const Memory& memory, const char* name) {
  const bool is_same = memory.device.device_type == device.device_type &&
                       memory.device.device_id == device.device_id;
  const bool is_managed =
      device.device_type == kDLCUDA && memory.device.device_type == kDLCUDAManaged;
  if (is_same || is_managed) return;
  refuse_argument(std::string(name) + ": device expected " + device_text(device) + ", got " +
                  device_text(memory.device));
}

Selection::Selection(nb::object array) : array_(std::move(array)) {
  BorrowedTensor tensor;
  tensor.borrow(array_, "selection", nullptr);
  memory_ = writable_memory(tensor, "selection");
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data);
  const std::size_t skipped = (kAlignment - address % kAlignment) % kAlignment;
  raw_ = {sizeof(raw_), reinterpret_cast<void*>(address + skipped),
          memory_.bytes - std::min(memory_.bytes, skipped), 0};
}

}  // namespace lacuna_python
