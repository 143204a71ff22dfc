#include "tests/device/emulation/warp.hpp"

#include "tests/device/emulation/block.hpp"

namespace emulation {
namespace {

struct Exchange {
  std::uint32_t given;
  int source;
  std::uint32_t received = 0;
};

void combine_exchanges(Operands lanes) {
  for (void* lane : lanes) {
    auto& exchange = *static_cast<Exchange*>(lane);
    const auto source = static_cast<std::size_t>(exchange.source % kWarpLanes);
    exchange.received = static_cast<const Exchange*>(lanes[source])->given;
  }
}

struct Vote {
  bool given;
  std::uint32_t result = 0;
};

void combine_votes(Operands lanes) {
  std::uint32_t result = 0;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    result |= std::uint32_t{static_cast<const Vote*>(lanes[lane])->given} << lane;
  }
  for (void* lane : lanes) static_cast<Vote*>(lane)->result = result;
}

}  // namespace

void check_lanes(std::uint32_t mask) {
  if (mask != ~std::uint32_t{0}) throw Fault("a warp instruction of some lanes only");
}

int lane_index() { return thread_index() % kWarpLanes; }

std::uint32_t exchange_bits(std::uint32_t bits, int source) {
  Exchange exchange{bits, source};
  meet_warp(combine_exchanges, &exchange);
  return exchange.received;
}

void meet_in_order() {
  meet_warp([](Operands) { order_warp(); }, nullptr);
}

std::uint32_t ballot(bool vote) {
  Vote mine{vote};
  meet_warp(combine_votes, &mine);
  return mine.result;
}

}  // namespace emulation
