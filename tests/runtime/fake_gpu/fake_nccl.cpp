#include "tests/runtime/fake_gpu/fake_nccl.hpp"

#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace lacuna {

using group::kNcclInProgress;
using group::kNcclSuccess;
using group::NcclComm;
using group::NcclConfig;
using group::NcclResult;
using group::NcclUniqueId;

namespace {

FakeNccl& state() {
  static FakeNccl* fake = new FakeNccl;
  return *fake;
}

NcclResult note(std::string call, NcclResult result = kNcclSuccess) {
  state().calls.push_back(std::move(call));
  return result;
}

/// Work goes on after the call, if the test asks for it.
NcclResult begun() { return state().polls_in_progress > 0 ? kNcclInProgress : kNcclSuccess; }

std::string message(const char* call, std::size_t count, int peer) {
  return std::string(call) + " " + std::to_string(count) + " peer " + std::to_string(peer);
}

}  // namespace

FAKE FakeNccl* fake_nccl() { return &state(); }

FAKE NcclResult ncclGetVersion(int* version) {
  *version = 22703;
  return kNcclSuccess;
}
FAKE const char* ncclGetErrorString(NcclResult) { return "as the test asked"; }
FAKE NcclResult ncclGetUniqueId(NcclUniqueId* id) {
  std::memset(id->bytes, 7, sizeof id->bytes);
  return note("ncclGetUniqueId");
}
FAKE NcclResult ncclCommInitRankConfig(NcclComm* communicator, int size, NcclUniqueId id, int rank,
                                       NcclConfig* config) {
  *communicator = reinterpret_cast<NcclComm>(std::size_t{0x9000});
  state().config = *config;
  state().size = size;
  state().rank = rank;
  return note("ncclCommInitRankConfig " + std::to_string(id.bytes[127]), begun());
}
FAKE NcclResult ncclCommAbort(NcclComm) { return note("ncclCommAbort"); }
FAKE NcclResult ncclCommGetAsyncError(NcclComm, NcclResult* result) {
  FakeNccl& fake = state();
  *result = fake.polls_in_progress > 0 ? kNcclInProgress : fake.async_error;
  if (fake.polls_in_progress > 0) --fake.polls_in_progress;
  return kNcclSuccess;
}
FAKE NcclResult ncclCommCount(NcclComm, int* count) {
  *count = state().size;
  return kNcclSuccess;
}
FAKE NcclResult ncclCommUserRank(NcclComm, int* rank) {
  *rank = state().rank;
  return kNcclSuccess;
}
FAKE NcclResult ncclCommCuDevice(NcclComm, int* device) {
  *device = 0;
  return kNcclSuccess;
}
FAKE NcclResult ncclGroupStart() { return note("ncclGroupStart"); }
FAKE NcclResult ncclGroupEnd() { return note("ncclGroupEnd", begun()); }
FAKE NcclResult ncclSend(const void*, std::size_t count, int, int peer, NcclComm, CUstream stream) {
  state().stream = stream;
  return note(message("ncclSend", count, peer), state().send_result);
}
FAKE NcclResult ncclRecv(void*, std::size_t count, int, int peer, NcclComm, CUstream) {
  return note(message("ncclRecv", count, peer));
}
FAKE NcclResult ncclAllGather(const void* mine, void* all, std::size_t count, int, NcclComm,
                              CUstream) {
  for (int rank = 0; rank < state().size; ++rank) {
    auto* slot = static_cast<unsigned char*>(all) + static_cast<std::size_t>(rank) * count;
    if (state().peers_are_dead && rank != state().rank) continue;
    std::memcpy(slot, mine, count);
    if (state().peers_disagree && rank != state().rank) slot[0] ^= 1U;
  }
  return note("ncclAllGather", begun());
}

}  // namespace lacuna
