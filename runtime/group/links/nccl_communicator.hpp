// The communicator of ranks that each have a GPU. NCCL's calls and streams are watched against the
// deadline; past it, or after an error, the communicator is aborted, which ends its kernels on the
// stream, and every further call is an error.
#pragma once

#include <memory>

#include "runtime/cuda/driver.hpp"
#include "runtime/group/links/communicator.hpp"
#include "runtime/group/links/nccl.hpp"

namespace lacuna::group {

struct NcclOptions {
  std::shared_ptr<const Nccl> nccl;
  std::shared_ptr<const Device> device;
  double timeout_s = 0;
  int max_ctas = 0;  ///< of a communicator that is made here; 0: NCCL decides
};

/// Waits until all ranks have come with the same id.
bool init_nccl(const NcclOptions& options, const NcclUniqueId& id, int rank, int size,
               Communicator& communicator, Diagnostics& diagnostics);

/// Over the host's communicator, which stays the host's unless a rank is lost: then it is aborted,
/// and the host must neither use nor destroy it any more.
bool borrow_nccl(const NcclOptions& options, NcclComm host, Communicator& communicator,
                 Diagnostics& diagnostics);

}  // namespace lacuna::group
