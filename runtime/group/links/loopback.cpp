#include "runtime/group/links/loopback.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

namespace lacuna::group {
namespace {

/// One rank's membership of the group. When it is destroyed, the other ranks see that this one has
/// left, or the reason that it gave before.
struct Member {
  std::shared_ptr<Loopback> loopback;
  int rank = 0;
  double timeout_s = 0;

  Member(std::shared_ptr<Loopback> place, int number, double timeout)
      : loopback(std::move(place)), rank(number), timeout_s(timeout) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() {
    const std::scoped_lock lock(loopback->mutex);
    loopback->has_left[static_cast<std::size_t>(rank)] = true;
    if (loopback->left.empty()) loopback->left = "rank " + std::to_string(rank) + " has left it";
    loopback->changed.notify_all();
  }

  /// The first reason stays.
  void fail(const std::string& reason) const {
    const std::scoped_lock lock(loopback->mutex);
    if (loopback->broken.empty()) loopback->broken = reason;
    loopback->changed.notify_all();
  }
};

Member& member_of(void* state) { return *static_cast<Member*>(state); }

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string missing_ranks(const Loopback& loopback) {
  std::string ranks;
  for (int rank = 0; rank < loopback.size; ++rank) {
    if (!loopback.is_there[static_cast<std::size_t>(rank)])
      ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  return ranks;
}

bool refuse(Loopback& loopback, const std::string& reason, Diagnostics& diagnostics) {
  if (loopback.broken.empty()) loopback.broken = reason;
  loopback.changed.notify_all();
  add_lost("the group is lost: " + loopback.broken, diagnostics);
  return false;
}

/// Returns when all ranks are here, each for the same call. `post`: null leaves the one before.
bool meet(Member& member, const char* what, const Loopback::Post* post, Diagnostics& diagnostics) {
  Loopback& loopback = *member.loopback;
  std::unique_lock lock(loopback.mutex);
  if (!loopback.broken.empty() || !loopback.left.empty())
    return refuse(loopback, loopback.left, diagnostics);
  if (loopback.arrived == 0) {
    loopback.what = what;
    std::fill(loopback.is_there.begin(), loopback.is_there.end(), false);
  }
  if (loopback.what != what) {
    return refuse(loopback,
                  "rank " + std::to_string(member.rank) + " calls " + what + " while others call " +
                      loopback.what,
                  diagnostics);
  }
  if (post != nullptr) loopback.posts[static_cast<std::size_t>(member.rank)] = *post;
  loopback.is_there[static_cast<std::size_t>(member.rank)] = true;
  const std::uint64_t round = loopback.round;
  if (++loopback.arrived == loopback.size) {
    loopback.arrived = 0;
    ++loopback.round;
    if (post != nullptr) loopback.readers = loopback.size;
    loopback.changed.notify_all();
    return true;
  }
  const bool moved =
      loopback.changed.wait_for(lock, std::chrono::duration<double>(member.timeout_s), [&] {
        return loopback.round != round || !loopback.broken.empty() || !loopback.left.empty();
      });
  if (loopback.round != round) return true;
  return refuse(loopback,
                moved ? loopback.left
                      : missing_ranks(loopback) + " did not come to " + what + " within " +
                            seconds_text(member.timeout_s),
                diagnostics);
}

/// Behind a meeting with posts, when this rank has read those of the others. Also where that ends
/// in an error no rank leaves before all have read: its caller may free what it has posted.
bool end_reading(Member& member, const char* what, Diagnostics& diagnostics) {
  Loopback& loopback = *member.loopback;
  {
    const std::scoped_lock lock(loopback.mutex);
    --loopback.readers;
    loopback.changed.notify_all();
  }
  if (meet(member, what, nullptr, diagnostics)) return true;
  std::unique_lock lock(loopback.mutex);
  loopback.changed.wait(lock, [&] { return loopback.readers == 0; });
  return false;
}

/// The n-th message that `from` sends to `to`; null if there are fewer.
const Message* nth_send(std::span<const Message> messages, int to, std::size_t n) {
  for (const Message& message : messages) {
    if (message.is_send && message.peer == to && n-- == 0) return &message;
  }
  return nullptr;
}

bool receive(const Member& member, std::span<const Message> messages, std::string& misfit) {
  const Loopback& loopback = *member.loopback;
  for (int peer = 0; peer < loopback.size; ++peer) {
    const auto sent = loopback.posts[static_cast<std::size_t>(peer)].messages;
    std::size_t n = 0;
    for (const Message& message : messages) {
      if (message.is_send || message.peer != peer) continue;
      const Message* source = nth_send(sent, member.rank, n++);
      if (source == nullptr || source->bytes != message.bytes) {
        misfit = "rank " + std::to_string(member.rank) + " expects " +
                 std::to_string(message.bytes) + " bytes of rank " + std::to_string(peer) +
                 ", which sends " + (source == nullptr ? "none" : std::to_string(source->bytes));
        return false;
      }
      std::memcpy(message.data, source->data, message.bytes);
    }
  }
  return true;
}

bool exchange(void* state, std::span<const Message> messages, void*, Diagnostics& diagnostics) {
  Member& member = member_of(state);
  const Loopback::Post post{messages, nullptr, 0};
  if (!meet(member, "exchange", &post, diagnostics)) return false;
  std::string misfit;
  if (!receive(member, messages, misfit)) member.fail(misfit);
  return end_reading(member, "end of exchange", diagnostics);
}

bool all_gather(void* state, const char* what, const void* mine, std::size_t bytes, void* all,
                Diagnostics& diagnostics) {
  Member& member = member_of(state);
  const Loopback::Post post{{}, mine, bytes};
  if (!meet(member, what, &post, diagnostics)) return false;
  for (int rank = 0; rank < member.loopback->size; ++rank) {
    const Loopback::Post& other = member.loopback->posts[static_cast<std::size_t>(rank)];
    std::memcpy(static_cast<unsigned char*>(all) + static_cast<std::size_t>(rank) * bytes,
                other.data, bytes);
  }
  return end_reading(member, what, diagnostics);
}

/// Waits for nobody: a rank without others learns that by what it calls next.
bool connect(void* state, bool wants, bool& connected, Diagnostics& diagnostics) {
  Loopback& loopback = *member_of(state).loopback;
  const std::scoped_lock lock(loopback.mutex);
  if (!loopback.by_copies) loopback.by_copies = wants;
  connected = *loopback.by_copies;
  if (connected == wants) return true;
  Diagnostic d;
  d.code = Code::kCallArgument;
  d.message = std::string("exchange: other ranks of this loopback exchange by ") +
              (connected ? "copies" : "messages");
  diagnostics.add(std::move(d));
  return false;
}

/// Every rank keeps the memory of all of them: one that fails may leave while others still write.
bool share(void* state, std::size_t bytes, SharedBuffer& buffer, Diagnostics& diagnostics) {
  Member& member = member_of(state);
  Loopback& loopback = *member.loopback;
  // Aligned as workspaces are.
  constexpr std::size_t kAlignment = 256;
  const std::shared_ptr<unsigned char[]> own(
      static_cast<unsigned char*>(
          ::operator new[](std::max(bytes, kAlignment), std::align_val_t(kAlignment))),
      [](unsigned char* memory) { ::operator delete[](memory, std::align_val_t(kAlignment)); });
  {
    const std::scoped_lock lock(loopback.mutex);
    loopback.buffers[static_cast<std::size_t>(member.rank)] = own;
  }
  if (!meet(member, "share", nullptr, diagnostics)) return false;
  auto all = std::make_shared<std::vector<std::shared_ptr<unsigned char[]>>>();
  {
    const std::scoped_lock lock(loopback.mutex);
    *all = loopback.buffers;
  }
  for (const auto& one : *all) buffer.of_rank.push_back(one.get());
  buffer.owner = std::move(all);
  return meet(member, "end of share", nullptr, diagnostics);
}

/// A flag that `rank` has of `setter`.
std::uint32_t& flag_at(Loopback& loopback, int rank, int setter, std::size_t flag) {
  const int pair = rank * loopback.size + setter;
  return loopback.flags[static_cast<std::size_t>(pair) * kFlags + flag];
}

bool set_flag(void* state, int peer, std::size_t flag, std::uint32_t value, void*,
              Diagnostics& diagnostics) {
  const Member& member = member_of(state);
  Loopback& loopback = *member.loopback;
  const std::scoped_lock lock(loopback.mutex);
  if (!loopback.broken.empty()) return refuse(loopback, "", diagnostics);
  flag_at(loopback, peer, member.rank, flag) = value;
  loopback.changed.notify_all();
  return true;
}

bool await_flag(void* state, int peer, std::size_t flag, std::uint32_t value, void*,
                Diagnostics& diagnostics) {
  const Member& member = member_of(state);
  Loopback& loopback = *member.loopback;
  std::unique_lock lock(loopback.mutex);
  const std::uint32_t& current = flag_at(loopback, member.rank, peer, flag);
  const auto has_left = [&] { return bool{loopback.has_left[static_cast<std::size_t>(peer)]}; };
  loopback.changed.wait_for(lock, std::chrono::duration<double>(member.timeout_s), [&] {
    return current >= value || !loopback.broken.empty() || has_left();
  });
  if (current >= value) return true;
  const std::string name = "rank " + std::to_string(peer);
  return refuse(loopback,
                has_left()
                    ? name + " has left it"
                    : name + " did not send its part within " + seconds_text(member.timeout_s),
                diagnostics);
}

bool synchronize(void* state, void*, Diagnostics& diagnostics) {
  Loopback& loopback = *member_of(state).loopback;
  const std::scoped_lock lock(loopback.mutex);
  return loopback.broken.empty() || refuse(loopback, "", diagnostics);
}

bool is_capturing(void*, void*) { return false; }

void abandon(void* state, const std::string& reason) {
  const Member& member = member_of(state);
  member.fail("rank " + std::to_string(member.rank) + ": " + reason);
}

}  // namespace

bool join_loopback(const std::shared_ptr<Loopback>& loopback, int rank, double timeout_s,
                   Communicator& communicator, Diagnostics& diagnostics) {
  const auto refuse_call = [&](const std::string& text) {
    Diagnostic d;
    d.code = Code::kCallArgument;
    d.message = text;
    diagnostics.add(std::move(d));
    return false;
  };
  {
    const std::scoped_lock lock(loopback->mutex);
    if (loopback->has_joined[static_cast<std::size_t>(rank)])
      return refuse_call("rank: " + std::to_string(rank) + " has joined this loopback already");
    loopback->has_joined[static_cast<std::size_t>(rank)] = true;
  }
  communicator = {rank,        loopback->size, std::make_shared<Member>(loopback, rank, timeout_s),
                  exchange,    all_gather,     connect,
                  share,       set_flag,       await_flag,
                  synchronize, is_capturing,   abandon};
  return true;
}

}  // namespace lacuna::group
