#include "runtime/group/links/nccl_communicator.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/cuda/device_memory.hpp"
#include "runtime/group/links/peer_memory.hpp"

namespace lacuna::group {
namespace {

using Clock = std::chrono::steady_clock;

/// Of each rank in all_gather, the number of the call included.
constexpr std::size_t kMostBytes = 1024;

struct NcclRank {
  NcclOptions options;
  NcclComm communicator = nullptr;
  bool is_owned = false;
  std::string lost;  ///< why it was aborted; "" while it is alive
  DeviceBuffer scratch;
  std::unique_ptr<DeviceStream> stream;
  int rank = 0, size = 1;
  std::uint64_t gathers = 0;         ///< calls of all_gather, as many on all ranks
  std::unique_ptr<PeerFlags> flags;  ///< null where ranks do not reach each other's memory
  std::vector<std::array<std::uint32_t, kFlags>> awaited;  ///< values of flags, of each peer

  NcclRank() = default;
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;
  /// Aborted also where all is well: ncclCommDestroy may wait for ranks that are gone.
  ~NcclRank() {
    if (flags != nullptr) flags->release(rank);  // work in flight is given up
    if (!is_owned || !lost.empty() || communicator == nullptr) return;
    const ContextScope scope(*options.device);
    options.nccl->ncclCommAbort(communicator);
  }
};

NcclRank& rank_of(void* state) { return *static_cast<NcclRank*>(state); }

bool is_alive(const NcclRank& rank, Diagnostics& diagnostics) {
  if (rank.lost.empty()) return true;
  add_lost("the group is lost: " + rank.lost, diagnostics);
  return false;
}

void abort(NcclRank& rank, const std::string& reason) {
  if (!rank.lost.empty()) return;
  rank.lost = reason;
  if (rank.flags != nullptr) rank.flags->release(rank.rank);
  if (rank.communicator != nullptr) rank.options.nccl->ncclCommAbort(rank.communicator);
}

/// Aborts with what NCCL said last.
bool give_up(NcclRank& rank, Diagnostics& diagnostics) {
  abort(rank, diagnostics.items.empty() ? "NCCL failed" : diagnostics.items.back().message);
  return false;
}

bool is_late(const NcclRank& rank, Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count() > rank.options.timeout_s;
}

/// Those whose flags have not come: "rank 1, rank 3"; "" where that is not known.
std::string late_peers(const NcclRank& rank) {
  std::string late;
  for (std::size_t peer = 0; peer < rank.awaited.size(); ++peer) {
    for (std::size_t flag = 0; flag < kFlags; ++flag) {
      if (rank.flags->value_of(rank.rank, static_cast<int>(peer), flag) >= rank.awaited[peer][flag])
        continue;
      late += (late.empty() ? "rank " : ", rank ") + std::to_string(peer);
      break;
    }
  }
  return late;
}

bool give_up_late(NcclRank& rank, const char* doing, Diagnostics& diagnostics) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g s", rank.options.timeout_s);
  const std::string late = late_peers(rank);
  abort(rank, std::string(doing) + " did not end within " + seconds + ": " +
                  (late.empty() ? "a rank has died or hangs" : late + " did not send its part"));
  return is_alive(rank, diagnostics);
}

/// Seldom enough to leave the processor to others, often enough for a launch of some milliseconds.
void pause(Clock::time_point begin) {
  if (Clock::now() - begin < std::chrono::milliseconds(1)) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

/// Until NCCL has done on the host what a call began.
bool wait_for_nccl(NcclRank& rank, NcclResult result, const char* doing, Diagnostics& diagnostics) {
  const Nccl& nccl = *rank.options.nccl;
  for (const auto begin = Clock::now(); result == kNcclInProgress; pause(begin)) {
    if (is_late(rank, begin)) return give_up_late(rank, doing, diagnostics);
    NcclResult current = kNcclSuccess;
    result = nccl.ncclCommGetAsyncError(rank.communicator, &current);
    if (result == kNcclSuccess) result = current;
  }
  return check_nccl(nccl, result, doing, diagnostics) || give_up(rank, diagnostics);
}

bool wait_for_stream(NcclRank& rank, CUstream stream, Diagnostics& diagnostics) {
  const Nccl& nccl = *rank.options.nccl;
  const Driver& driver = *rank.options.device->driver;
  for (const auto begin = Clock::now();; pause(begin)) {
    const CUresult done = driver.cuStreamQuery(stream);
    if (done == kCudaSuccess) return true;
    if (done != kCudaErrorNotReady) {
      check_driver(driver, done, "cuStreamQuery", diagnostics);
      return give_up(rank, diagnostics);
    }
    NcclResult current = kNcclSuccess;
    const NcclResult asked = nccl.ncclCommGetAsyncError(rank.communicator, &current);
    if (!check_nccl(nccl, asked, "ncclCommGetAsyncError", diagnostics) ||
        !check_nccl(nccl, current, "work of NCCL on a stream", diagnostics))
      return give_up(rank, diagnostics);
    if (is_late(rank, begin)) return give_up_late(rank, "work on a stream", diagnostics);
  }
}

bool exchange(void* state, std::span<const Message> messages, void* stream,
              Diagnostics& diagnostics) {
  NcclRank& rank = rank_of(state);
  if (!is_alive(rank, diagnostics)) return false;
  const ContextScope scope(*rank.options.device);
  const Nccl& nccl = *rank.options.nccl;
  const auto cuda_stream = static_cast<CUstream>(stream);
  bool good = check_nccl(nccl, nccl.ncclGroupStart(), "ncclGroupStart", diagnostics);
  if (!good) return give_up(rank, diagnostics);
  for (const Message& message : messages) {
    if (!good) break;
    good = message.is_send ? check_nccl(nccl,
                                        nccl.ncclSend(message.data, message.bytes, kNcclUint8,
                                                      message.peer, rank.communicator, cuda_stream),
                                        "ncclSend", diagnostics)
                           : check_nccl(nccl,
                                        nccl.ncclRecv(message.data, message.bytes, kNcclUint8,
                                                      message.peer, rank.communicator, cuda_stream),
                                        "ncclRecv", diagnostics);
  }
  const NcclResult ended = nccl.ncclGroupEnd();
  if (!good) return give_up(rank, diagnostics);
  return wait_for_nccl(rank, ended, "ncclGroupEnd", diagnostics);
}

/// Parts of all ranks, one behind the other, in host memory.
bool gather_parts(NcclRank& rank, const char* what, std::span<const unsigned char> mine,
                  std::vector<unsigned char>& all, Diagnostics& diagnostics) {
  const ContextScope scope(*rank.options.device);
  const Driver& driver = *rank.options.device->driver;
  auto* gathered = static_cast<unsigned char*>(rank.scratch.data()) + kMostBytes;
  if (!rank.scratch.copy_in(mine.data(), mine.size(), diagnostics))
    return give_up(rank, diagnostics);
  const CUstream stream = rank.stream->handle();
  const NcclResult begun = rank.options.nccl->ncclAllGather(
      rank.scratch.data(), gathered, mine.size(), kNcclUint8, rank.communicator, stream);
  all.resize(mine.size() * static_cast<std::size_t>(rank.size));
  return wait_for_nccl(rank, begun, what, diagnostics) &&
         wait_for_stream(rank, stream, diagnostics) &&
         check_driver(
             driver,
             driver.cuMemcpyDtoH(all.data(), reinterpret_cast<CUdeviceptr>(gathered), all.size()),
             "cuMemcpyDtoH", diagnostics);
}

/// Each rank's part ends with the number of the call. If a rank has died, NCCL may end the call
/// without its part; then the place of that part still holds one of an earlier call, or zeros.
bool all_gather(void* state, const char* what, const void* mine, std::size_t bytes, void* all,
                Diagnostics& diagnostics) {
  NcclRank& rank = rank_of(state);
  if (!is_alive(rank, diagnostics)) return false;
  const std::uint64_t number = ++rank.gathers;
  std::vector<unsigned char> part(bytes + sizeof number), parts;
  std::memcpy(part.data(), mine, bytes);
  std::memcpy(part.data() + bytes, &number, sizeof number);
  if (!gather_parts(rank, what, part, parts, diagnostics)) return false;
  for (int peer = 0; peer < rank.size; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const unsigned char* theirs = parts.data() + index * part.size();
    if (std::memcmp(theirs + bytes, &number, sizeof number) != 0) {
      abort(rank, "rank " + std::to_string(peer) + " died before " + what);
      return is_alive(rank, diagnostics);
    }
    std::memcpy(static_cast<unsigned char*>(all) + index * bytes, theirs, bytes);
  }
  return true;
}

PeerRank peer_rank_of(void* state) {
  const NcclRank& rank = rank_of(state);
  const auto gather = [state](const char* what, const void* mine, std::size_t bytes, void* all,
                              Diagnostics& diagnostics) {
    return all_gather(state, what, mine, bytes, all, diagnostics);
  };
  return {rank.options.device, rank.rank, rank.size, gather};
}

bool connect(void* state, bool wants, bool& connected, Diagnostics& diagnostics) {
  NcclRank& rank = rank_of(state);
  if (!is_alive(rank, diagnostics) ||
      !connect_peers(peer_rank_of(state), wants, rank.flags, diagnostics))
    return false;
  connected = rank.flags != nullptr;
  if (connected) rank.awaited.resize(static_cast<std::size_t>(rank.size));
  return true;
}

bool share(void* state, std::size_t bytes, SharedBuffer& buffer, Diagnostics& diagnostics) {
  return share_memory(peer_rank_of(state), bytes, buffer, diagnostics);
}

bool set_flag(void* state, int peer, std::size_t flag, std::uint32_t value, void* stream,
              Diagnostics& diagnostics) {
  const NcclRank& rank = rank_of(state);
  if (!is_alive(rank, diagnostics)) return false;
  const Driver& driver = *rank.options.device->driver;
  return check_driver(
      driver,
      driver.cuStreamWriteValue32(static_cast<CUstream>(stream),
                                  rank.flags->address_of(peer, rank.rank, flag), value, 0),
      "cuStreamWriteValue32", diagnostics);
}

bool await_flag(void* state, int peer, std::size_t flag, std::uint32_t value, void* stream,
                Diagnostics& diagnostics) {
  NcclRank& rank = rank_of(state);
  if (!is_alive(rank, diagnostics)) return false;
  const Driver& driver = *rank.options.device->driver;
  rank.awaited[static_cast<std::size_t>(peer)][flag] = value;
  return check_driver(driver,
                      driver.cuStreamWaitValue32(static_cast<CUstream>(stream),
                                                 rank.flags->address_of(rank.rank, peer, flag),
                                                 value, kWaitValueGeq),
                      "cuStreamWaitValue32", diagnostics);
}

bool synchronize(void* state, void* stream, Diagnostics& diagnostics) {
  NcclRank& rank = rank_of(state);
  if (!is_alive(rank, diagnostics)) return false;
  const ContextScope scope(*rank.options.device);
  return wait_for_stream(rank, static_cast<CUstream>(stream), diagnostics);
}

bool is_capturing(void* state, void* stream) {
  const NcclRank& rank = rank_of(state);
  const ContextScope scope(*rank.options.device);
  return lacuna::is_capturing(*rank.options.device->driver, stream);
}

void abandon(void* state, const std::string& reason) {
  NcclRank& rank = rank_of(state);
  const ContextScope scope(*rank.options.device);
  abort(rank, reason);
}

bool has_entries(const Driver& driver, Diagnostics& diagnostics) {
  if (driver.cuMemcpyDtoDAsync != nullptr && driver.cuMemcpy2DAsync != nullptr &&
      driver.cuStreamQuery != nullptr && driver.cuStreamIsCapturing != nullptr &&
      driver.cuStreamWaitEvent != nullptr && driver.cuStreamCreateWithPriority != nullptr &&
      driver.cuCtxGetStreamPriorityRange != nullptr)
    return true;
  Diagnostic d;
  d.code = Code::kNoDriver;
  d.message = "the NVIDIA driver lacks entry points that a group needs";
  diagnostics.add(std::move(d));
  return false;
}

/// Memory and a stream for all_gather; `state` has a communicator.
bool finish(std::shared_ptr<NcclRank> state, int rank, int size, Communicator& communicator,
            Diagnostics& diagnostics) {
  const auto& device = state->options.device;
  state->stream = std::make_unique<DeviceStream>(device, diagnostics);
  state->scratch =
      DeviceBuffer(device, kMostBytes * (static_cast<std::size_t>(size) + 1), diagnostics);
  // Memory that another group had before may hold the number of a call.
  if (diagnostics.has_errors() || !state->scratch.fill_zero(diagnostics)) return false;
  state->rank = rank;
  state->size = size;
  communicator = {rank,  size,     std::move(state), exchange,    all_gather,   connect,
                  share, set_flag, await_flag,       synchronize, is_capturing, abandon};
  return true;
}

}  // namespace

bool init_nccl(const NcclOptions& options, const NcclUniqueId& id, int rank, int size,
               Communicator& communicator, Diagnostics& diagnostics) {
  if (!has_entries(*options.device->driver, diagnostics)) return false;
  const ContextScope scope(*options.device);
  auto state = std::make_shared<NcclRank>();
  state->options = options;
  state->is_owned = true;
  NcclConfig config;
  if (options.max_ctas > 0) config.max_ctas = options.max_ctas;
  const NcclResult begun =
      options.nccl->ncclCommInitRankConfig(&state->communicator, size, id, rank, &config);
  return wait_for_nccl(*state, begun, "ncclCommInitRankConfig", diagnostics) &&
         finish(std::move(state), rank, size, communicator, diagnostics);
}

bool borrow_nccl(const NcclOptions& options, NcclComm host, Communicator& communicator,
                 Diagnostics& diagnostics) {
  if (!has_entries(*options.device->driver, diagnostics)) return false;
  const Nccl& nccl = *options.nccl;
  int rank = 0, size = 0, device = 0;
  if (!check_nccl(nccl, nccl.ncclCommUserRank(host, &rank), "ncclCommUserRank", diagnostics) ||
      !check_nccl(nccl, nccl.ncclCommCount(host, &size), "ncclCommCount", diagnostics) ||
      !check_nccl(nccl, nccl.ncclCommCuDevice(host, &device), "ncclCommCuDevice", diagnostics))
    return false;
  if (device != options.device->index) {
    Diagnostic d;
    d.code = Code::kCallArgument;
    d.message =
        "communicator: expected one of device cuda:" + std::to_string(options.device->index) +
        ", as the engine is, got cuda:" + std::to_string(device);
    diagnostics.add(std::move(d));
    return false;
  }
  const ContextScope scope(*options.device);
  auto state = std::make_shared<NcclRank>();
  state->options = options;
  state->communicator = host;
  return finish(std::move(state), rank, size, communicator, diagnostics);
}

}  // namespace lacuna::group
