// An NCCL for tests without a GPU: one rank, whose peers are imaginary and say what it says. It
// records calls and moves nothing, but for all-gathers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/group/links/nccl.hpp"

namespace lacuna {

struct FakeNccl {
  // What it pretends.
  int polls_in_progress = 0;  ///< calls of ncclCommGetAsyncError that still say "in progress"
  group::NcclResult async_error = group::kNcclSuccess;
  group::NcclResult send_result = group::kNcclSuccess;
  bool peers_are_dead = false;  ///< an all-gather ends without what they say
  bool peers_disagree = false;  ///< what they say in an all-gather has another first byte

  // What it saw.
  std::vector<std::string> calls;  ///< those of groups with their bytes and peer
  CUstream stream = nullptr;       ///< of the last send
  group::NcclConfig config;
  int size = 1, rank = 0;

  void forget() { *this = FakeNccl{}; }
};

extern "C" FakeNccl* fake_nccl();

}  // namespace lacuna
