// A CUDA driver for tests without a GPU: it records calls and computes nothing. Loaded under the
// soname of the real one, so that the library under test finds it by its own means.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/cuda/cuda_types.hpp"

namespace lacuna {

struct FakeCuda {
  static constexpr int kLogCapacity = 1 << 16;
  static constexpr int kKernelCapacity = 256;

  // What the driver pretends to be.
  int device_count = 2;
  int compute_capability = 90;
  int cuda_version = 13000;
  int loads_to_accept = 0;  ///< before those that are refused
  int loads_to_refuse = 0;  ///< that many cuLibraryLoadData fail with "invalid image"
  CUresult init_result = kCudaSuccess;
  const char* missing_entry = "";  ///< that this driver does not have
  CUresult launch_result = kCudaSuccess;
  CUresult map_result = kCudaSuccess;
  CUresult fill_result = kCudaSuccess;  ///< of cuMemsetD8Async
  CUresult stream_query_result = kCudaSuccess;
  CUresult peer_result = kCudaSuccess;  ///< of cuCtxEnablePeerAccess
  int is_capturing = 0;

  // What it saw.
  std::atomic<int> log_count{0};
  const char* log[kLogCapacity] = {};
  CUlaunchConfig config;
  unsigned char arguments[4096] = {};
  CUfunction launched = nullptr;
  std::atomic<int> map_count{0};  ///< tensor maps; each has its number, from 1, in its first byte
  CUcontext launch_context = nullptr;
  std::atomic<CUdeviceptr> cleared{0};  ///< by the last cuMemsetD8Async
  std::atomic<std::size_t> cleared_bytes{0};
  std::uint32_t awaited = 0,
                written = 0;       ///< by the last cuStreamWaitValue32, cuStreamWriteValue32
  CUdeviceptr awaited_at = 0;      ///< where the last cuStreamWaitValue32 looks, memory of the host
  std::atomic<int> wait_count{0};  ///< for events, since it was set to 0
  CUstream waits[kLogCapacity] = {};  ///< the streams that wait
  std::size_t code_bytes = 0;
  int kernel_count = 0;  ///< found in libraries since it was set to 0
  char kernels[kKernelCapacity][128] = {};
  std::atomic<int> launch_count{0};  ///< of all launches since it was set to 0
  CUfunction launches[kLogCapacity] = {};
  unsigned grids[kLogCapacity] = {};
  CUstream launch_streams[kLogCapacity] = {};
  bool overlapping[kLogCapacity] = {};  ///< launches that may begin before the one ahead has ended
  std::atomic<int> event_count{0};      ///< recorded since it was set to 0
  CUevent events[kLogCapacity] = {};
  CUstream event_streams[kLogCapacity] = {};
  int shared_bytes_allowed = 0;
  int attribute_device = -1;
};

extern "C" FakeCuda* fake_cuda();

/// The primary context of a device, as the fake hands it out.
inline CUcontext fake_primary(int device) {
  return reinterpret_cast<CUcontext>(std::size_t{0x1000} + static_cast<std::size_t>(device));
}

/// The stream of a priority: 0 to -5, the greatest.
inline CUstream fake_lane(int priority) {
  return reinterpret_cast<CUstream>(std::size_t{0x5100} - static_cast<std::size_t>(priority));
}

/// The n-th kernel found in a library.
inline CUkernel fake_kernel(int n) {
  return reinterpret_cast<CUkernel>(std::size_t{0x3000} + static_cast<std::size_t>(n));
}

}  // namespace lacuna
