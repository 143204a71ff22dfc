#include "runtime/group/links/peer_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "runtime/cuda/device_memory.hpp"

namespace lacuna::group {
namespace {

/// Larger than any value that is waited for.
constexpr std::uint32_t kReleased = 0x7fffffff;
/// Smaller allocations may share a block of the driver's with others, of which a handle would be.
constexpr std::size_t kBlockBytes = std::size_t{2} << 20;
constexpr CUresult kPeerAccessAlreadyEnabled = 704;

std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Tells processes apart, also those of different containers and those that are forks of one.
std::uint64_t process_number() {
  static const std::uint64_t number = random_number();
  return number + static_cast<std::uint64_t>(::getpid());
}

/// Of the host's running system; "" where it does not say.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

/// What ranks tell each other before they share anything.
struct Introduction {
  unsigned char wants = 0;
  char boot[64] = {};
  char flags[48] = {};  ///< name of the memory of the first rank
};

/// Of a buffer.
struct Invitation {
  std::uint64_t process = 0;
  std::uint64_t address = 0, context = 0;  ///< for ranks of the same process
  unsigned char is_well = 0, has_handle = 0;
  CUipcHandle handle;  ///< for others
};

bool has_entries(const Driver& driver) {
  return driver.cuIpcGetMemHandle != nullptr && driver.cuIpcOpenMemHandle != nullptr &&
         driver.cuIpcCloseMemHandle != nullptr && driver.cuCtxEnablePeerAccess != nullptr &&
         driver.cuStreamWaitValue32 != nullptr && driver.cuStreamWriteValue32 != nullptr &&
         driver.cuMemHostRegister != nullptr && driver.cuMemHostUnregister != nullptr &&
         driver.cuMemHostGetDevicePointer != nullptr;
}

/// Own memory, and the way to that of the others.
struct Shared {
  std::shared_ptr<const Device> device;
  DeviceBuffer own;
  std::vector<CUdeviceptr> opened;

  Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    if (device == nullptr) return;
    const ContextScope scope(*device);
    own = {};  // waits for work that uses any of it
    for (const CUdeviceptr address : opened) device->driver->cuIpcCloseMemHandle(address);
  }
};

Invitation invite(const Shared& shared) {
  const Driver& driver = *shared.device->driver;
  Invitation invitation;
  invitation.process = process_number();
  invitation.address = reinterpret_cast<std::uint64_t>(shared.own.data());
  CUcontext context = nullptr;
  invitation.is_well = shared.own && driver.cuCtxGetCurrent(&context) == kCudaSuccess;
  invitation.has_handle = shared.own && driver.cuIpcGetMemHandle(
                                            &invitation.handle, invitation.address) == kCudaSuccess;
  invitation.context = reinterpret_cast<std::uint64_t>(context);
  return invitation;
}

/// 0 where the memory cannot be reached.
CUdeviceptr accept(const Invitation& invitation, Shared& shared) {
  const Driver& driver = *shared.device->driver;
  if (invitation.is_well == 0) return 0;
  if (invitation.process == process_number()) {
    const CUresult enabled =
        driver.cuCtxEnablePeerAccess(reinterpret_cast<CUcontext>(invitation.context), 0);
    const bool good = enabled == kCudaSuccess || enabled == kPeerAccessAlreadyEnabled;
    return good ? invitation.address : 0;
  }
  CUdeviceptr address = 0;
  if (invitation.has_handle == 0 ||
      driver.cuIpcOpenMemHandle(&address, invitation.handle, kIpcLazyPeerAccess) != kCudaSuccess)
    return 0;
  shared.opened.push_back(address);
  return address;
}

/// Whether this is so on all ranks. False with diagnostics if one is lost.
bool all_agree(const PeerRank& peers, const char* what, bool mine, bool& all,
               Diagnostics& diagnostics) {
  std::vector<unsigned char> well(index_of(peers.size));
  const unsigned char own = mine ? 1 : 0;
  if (!peers.gather(what, &own, 1, well.data(), diagnostics)) return false;
  all = std::ranges::all_of(well, [](unsigned char one) { return one != 0; });
  return true;
}

/// `are_shared`: on all ranks, or on none.
bool try_share(const PeerRank& peers, std::size_t bytes, SharedBuffer& buffer, bool& are_shared,
               Diagnostics& diagnostics) {
  const ContextScope scope(*peers.device);
  auto shared = std::make_shared<Shared>();
  shared->device = peers.device;
  Diagnostics own;  // that there is no memory is said by all ranks alike
  const std::size_t blocks = (std::max<std::size_t>(bytes, 1) + kBlockBytes - 1) / kBlockBytes;
  shared->own = DeviceBuffer(peers.device, blocks * kBlockBytes, own);
  const Invitation mine = invite(*shared);
  std::vector<Invitation> all(index_of(peers.size));
  if (!peers.gather("share", &mine, sizeof mine, all.data(), diagnostics)) return false;
  bool good = true;
  for (int rank = 0; rank < peers.size && good; ++rank) {
    const CUdeviceptr address = rank == peers.rank
                                    ? CUdeviceptr{mine.is_well != 0 ? mine.address : 0}
                                    : accept(all[index_of(rank)], *shared);
    good = address != 0;
    buffer.of_rank.push_back(reinterpret_cast<unsigned char*>(address));
  }
  buffer.owner = shared;
  if (!all_agree(peers, "shared", good, are_shared, diagnostics)) return false;
  if (!are_shared) buffer = {};
  return true;
}

}  // namespace

PeerFlags::~PeerFlags() {
  if (device_ != nullptr) {
    const ContextScope scope(*device_);
    device_->driver->cuMemHostUnregister(host_);
  }
  if (host_ != nullptr) ::munmap(host_, bytes_);
}

std::size_t PeerFlags::index_of_flag(int rank, int setter, std::size_t flag) const {
  return index_of(rank * size_ + setter) * kFlags + flag;
}

CUdeviceptr PeerFlags::address_of(int rank, int setter, std::size_t flag) const {
  return address_ + index_of_flag(rank, setter, flag) * sizeof(std::uint32_t);
}

std::uint32_t PeerFlags::value_of(int rank, int setter, std::size_t flag) const {
  auto* flags = static_cast<std::uint32_t*>(host_);
  return std::atomic_ref(flags[index_of_flag(rank, setter, flag)]).load(std::memory_order_acquire);
}

void PeerFlags::release(int rank) const {
  auto* flags = static_cast<std::uint32_t*>(host_) + index_of_flag(rank, 0, 0);
  for (std::size_t flag = 0; flag < index_of(size_) * kFlags; ++flag)
    std::atomic_ref(flags[flag]).store(kReleased, std::memory_order_release);
}

bool PeerFlags::map(const std::string& name, bool make, int size) {
  const int file = ::shm_open(name.c_str(), make ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
  if (file < 0) return false;
  size_ = size;
  bytes_ = index_of(size) * index_of(size) * kFlags * sizeof(std::uint32_t);
  const bool is_long = !make || ::ftruncate(file, static_cast<off_t>(bytes_)) == 0;
  void* memory =
      is_long ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  ::close(file);
  if (memory == MAP_FAILED) return false;
  host_ = memory;
  return true;
}

bool PeerFlags::map_to(std::shared_ptr<const Device> device) {
  const Driver& driver = *device->driver;
  const ContextScope scope(*device);
  if (driver.cuMemHostRegister(host_, bytes_, kHostRegisterPortable | kHostRegisterDeviceMap) !=
      kCudaSuccess)
    return false;
  device_ = std::move(device);
  return driver.cuMemHostGetDevicePointer(&address_, host_, 0) == kCudaSuccess;
}

bool connect_peers(const PeerRank& peers, bool wants, std::unique_ptr<PeerFlags>& flags,
                   Diagnostics& diagnostics) {
  Introduction mine;
  const std::string boot = boot_id();
  auto made = std::make_unique<PeerFlags>();
  const std::string name = "/lacuna-" + std::to_string(random_number());
  mine.wants = wants && has_entries(*peers.device->driver) && !boot.empty() &&
               (peers.rank != 0 || made->map(name, true, peers.size));
  std::copy_n(boot.begin(), std::min(boot.size(), sizeof mine.boot - 1), mine.boot);
  std::copy_n(name.begin(), std::min(name.size(), sizeof mine.flags - 1), mine.flags);
  std::vector<Introduction> all(index_of(peers.size));
  const bool met = peers.gather("connect", &mine, sizeof mine, all.data(), diagnostics);
  bool good = met && std::ranges::all_of(all, [&](const Introduction& one) {
                return one.wants != 0 && std::strcmp(one.boot, mine.boot) == 0;
              });
  good = good && (peers.rank == 0 || made->map(all.front().flags, false, peers.size));
  good = good && made->map_to(peers.device);
  bool connected = false;
  const bool agreed = met && all_agree(peers, "connected", good, connected, diagnostics);
  if (peers.rank == 0 && mine.wants != 0) ::shm_unlink(name.c_str());
  if (!agreed) return false;
  SharedBuffer probe;
  if (!connected) return true;
  if (!try_share(peers, 1, probe, connected, diagnostics)) return false;
  if (connected) flags = std::move(made);
  return true;
}

bool share_memory(const PeerRank& peers, std::size_t bytes, SharedBuffer& buffer,
                  Diagnostics& diagnostics) {
  bool are_shared = false;
  if (!try_share(peers, bytes, buffer, are_shared, diagnostics)) return false;
  if (are_shared) return true;
  Diagnostic d;
  d.code = Code::kDriverCall;
  d.message = "plan: a rank has no " + std::to_string(bytes) +
              " bytes of device memory that the others can reach";
  diagnostics.add(std::move(d));
  return false;
}

}  // namespace lacuna::group
