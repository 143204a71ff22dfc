// The meeting place of ranks that are threads: what they post stays until all have read it.
#include "runtime/group/links/loopback.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace lacuna::group {
namespace {

constexpr double kTimeoutS = 60;
constexpr std::size_t kLargeBytes = std::size_t{32} << 20;

/// Exchanges as one rank of three; returns what is said.
std::string exchange_as(const std::shared_ptr<Loopback>& loopback, int rank,
                        const std::vector<Message>& messages) {
  Communicator ranks;
  Diagnostics diagnostics;
  if (join_loopback(loopback, rank, kTimeoutS, ranks, diagnostics))
    ranks.exchange(ranks.state.get(), messages, nullptr, diagnostics);
  return diagnostics.items.empty() ? "" : diagnostics.items.front().message;
}

/// Rank 2 breaks the group while rank 1 still copies what rank 0 sends: rank 0 frees that memory
/// as soon as it is told.
TEST(Loopback, NoRankLeavesWhileOthersReadWhatItPosted) {
  const auto loopback = std::make_shared<Loopback>(3);
  std::vector<unsigned char> sent(kLargeBytes, 7), received(kLargeBytes);
  std::string errors[3];
  std::thread sender([&] {
    errors[0] = exchange_as(loopback, 0, {{sent.data(), kLargeBytes, 1, true}});
    std::ranges::fill(sent, 0);
  });
  std::thread receiver([&] {
    errors[1] = exchange_as(loopback, 1, {{received.data(), kLargeBytes, 0, false}});
  });
  std::thread misfit([&] {
    unsigned char byte = 0;
    errors[2] = exchange_as(loopback, 2, {{&byte, 1, 0, false}});
  });
  sender.join(), receiver.join(), misfit.join();
  EXPECT_TRUE(std::ranges::all_of(received, [](unsigned char byte) { return byte == 7; }));
  for (const std::string& error : errors)
    EXPECT_NE(error.find("rank 2 expects 1 bytes of rank 0, which sends none"), std::string::npos)
        << error;
}

}  // namespace
}  // namespace lacuna::group
