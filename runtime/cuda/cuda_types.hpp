// The few types and constants of the CUDA driver and NVRTC ABIs that are in use, declared here so
// that the build needs no CUDA toolkit. Names and values are those of cuda.h and nvrtc.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUfunction = struct CUfunc_st*;

inline constexpr CUresult kCudaSuccess = 0;
inline constexpr CUresult kCudaErrorNoDevice = 100;
inline constexpr CUresult kCudaErrorInvalidImage = 200;
inline constexpr CUresult kCudaErrorInvalidContext = 201;

inline constexpr int kAttributeMultiprocessorCount = 16;
inline constexpr int kAttributeComputeCapabilityMajor = 75;
inline constexpr int kAttributeComputeCapabilityMinor = 76;
inline constexpr int kFunctionAttributeMaxDynamicSharedBytes = 8;

// CUtensorMapDataType, -Interleave, -Swizzle, -L2promotion, -FloatOOBfill
inline constexpr int kTensorMapUint8 = 0, kTensorMapFloat16 = 6, kTensorMapBFloat16 = 9;
inline constexpr int kTensorMapNoInterleave = 0;
inline constexpr int kTensorMapSwizzle64 = 2, kTensorMapSwizzle128 = 3;
inline constexpr int kTensorMapPromoteNone = 0;
inline constexpr int kTensorMapFillZeros = 0;

inline constexpr int kLaunchProgrammaticStreamSerialization = 6;

struct CUlaunchAttribute {
  int id = 0;
  int unused = 0;
  union {
    char bytes[64] = {};
    int allowed;  ///< of kLaunchProgrammaticStreamSerialization
  };
};
static_assert(sizeof(CUlaunchAttribute) == 72);

struct CUlaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  CUlaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(CUlaunchConfig) == 56);

inline constexpr unsigned kStreamNonBlocking = 1;  ///< does not wait for the default stream
inline constexpr unsigned kEventDisableTiming = 2;

inline constexpr CUresult kCudaErrorNotReady = 600;
inline constexpr int kMemoryTypeDevice = 2;

/// CUDA_MEMCPY2D; of device memory only.
struct CUmemcpy2D {
  std::size_t source_x_bytes = 0, source_y = 0;
  int source_type = kMemoryTypeDevice;
  const void* source_host = nullptr;
  CUdeviceptr source = 0;
  void* source_array = nullptr;
  std::size_t source_pitch = 0;
  std::size_t target_x_bytes = 0, target_y = 0;
  int target_type = kMemoryTypeDevice;
  void* target_host = nullptr;
  CUdeviceptr target = 0;
  void* target_array = nullptr;
  std::size_t target_pitch = 0;
  std::size_t width_bytes = 0, height = 0;
};
static_assert(sizeof(CUmemcpy2D) == 128);

/// CUipcMemHandle.
struct CUipcHandle {
  char bytes[64] = {};
};
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr unsigned kHostRegisterPortable = 1, kHostRegisterDeviceMap = 2;
inline constexpr unsigned kWaitValueGeq = 0;  ///< of numbers that turn over, as they are compared

using NvrtcResult = int;
using NvrtcProgram = struct _nvrtcProgram*;
inline constexpr NvrtcResult kNvrtcSuccess = 0;

}  // namespace lacuna
