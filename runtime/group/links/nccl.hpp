// NCCL, opened at run time as the driver is: its function table and the few types of its ABI.
// Names and values are those of nccl.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "compiler/diag/diagnostic.hpp"
#include "runtime/cuda/cuda_types.hpp"

namespace lacuna::group {

using NcclResult = int;
using NcclComm = struct ncclComm*;
struct NcclUniqueId {
  char bytes[128] = {};
};
inline constexpr NcclResult kNcclSuccess = 0, kNcclInProgress = 7;
inline constexpr int kNcclUint8 = 1;

/// ncclConfig_t of NCCL 2.17, which newer versions take too. INT_MIN and so on: NCCL decides.
struct NcclConfig {
  static constexpr int kUndefined = -2147483647 - 1;
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21700;
  int blocking = 0;  ///< calls return at once, so that a missing rank is an error and no hang
  /// No clusters: blocks of one have to find several SMs that are free at a time, and while kernels
  /// that take all SMs follow each other there never are, whatever the priority.
  int cga_cluster_size = 0;
  int min_ctas = kUndefined, max_ctas = kUndefined;  ///< blocks of a call, one for each SM
  const char* net_name = nullptr;
  int split_share = kUndefined;
};

struct Nccl {
  int version = 0;   ///< 22703
  std::string path;  ///< of the library that was loaded
// NOLINTNEXTLINE(bugprone-macro-parentheses): the parameters are declarators
#define LACUNA_NCCL(name, parameters) NcclResult(*name) parameters = nullptr;
#include "runtime/group/links/nccl.def"
#undef LACUNA_NCCL
  const char* (*ncclGetErrorString)(NcclResult) = nullptr;
};

/// Opens libnccl.so.2: LACUNA_NCCL_PATH, else what is loaded already, then the places of CUDA's
/// libraries. Null with one diagnostic (kNoNccl) that names what was searched.
std::shared_ptr<const Nccl> load_nccl(Diagnostics& diagnostics);

/// True on success and while work is in progress; else adds kNcclCall.
bool check_nccl(const Nccl& nccl, NcclResult result, const char* doing, Diagnostics& diagnostics);

}  // namespace lacuna::group
