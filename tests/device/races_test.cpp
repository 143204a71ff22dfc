// What counts as a race, and what puts accesses in order.
#include "tests/device/emulation/races/races.hpp"

#include <gtest/gtest.h>

#include <array>

namespace emulation {
namespace {

constexpr int kWarp = 32;

class RacesOf : public testing::Test {
 protected:
  void write(int thread, std::size_t address = 0, Part part = Part::kSelf) {
    races_.note(thread, part, Access::kWrite, address, 4, &here_);
  }
  void read(int thread, std::size_t address = 0, Part part = Part::kSelf) {
    races_.note(thread, part, Access::kRead, address, 4, &here_);
  }
  void add(int thread) { races_.note(thread, Part::kSelf, Access::kAtomic, 0, 4, &here_); }
  bool has_race() { return !races_.report().empty(); }

  std::array<unsigned char, 64> smem_ = {};
  Races races_{2 * kWarp, smem_};
  char here_ = 0;
};

TEST_F(RacesOf, TwoThreadsInNoOrder) {
  write(0);
  read(40);
  EXPECT_NE(races_.report().find("byte 0: thread 40 reads"), std::string::npos);
  EXPECT_NE(races_.report().find("what thread 0 writes"), std::string::npos);
}

TEST_F(RacesOf, AWriteAfterARead) {
  read(3);
  read(40);
  races_.meet(0, kWarp);
  write(2);  // after thread 3, but not after thread 40
  EXPECT_NE(races_.report().find("what thread 40 reads"), std::string::npos);
}

TEST_F(RacesOf, OthersBytesAndOwnAccessesAreNone) {
  write(0, 0);
  write(1, 4);
  read(0, 0);
  write(0, 0);
  read(5, 8);
  read(50, 8);
  EXPECT_FALSE(has_race());
}

TEST_F(RacesOf, MeetingsPutThreadsInOrder) {
  write(0);
  races_.meet(0, kWarp);
  read(31);
  races_.meet(0, 2 * kWarp);
  write(63);
  EXPECT_FALSE(has_race());
  write(0);  // not behind thread 63
  EXPECT_TRUE(has_race());
}

TEST_F(RacesOf, ArrivalsOrderWhatWasBeforeThem) {
  Races::Arrivals barrier;
  write(0, 0);
  races_.release(0, barrier);
  write(0, 4);
  races_.acquire(40, Races::told(barrier));
  read(40, 0);
  EXPECT_FALSE(has_race());
  read(40, 4);
  EXPECT_TRUE(has_race());
}

TEST_F(RacesOf, OrderIsHandedOn) {
  Races::Arrivals first, second;
  write(0);
  races_.release(0, first);
  races_.acquire(20, Races::told(first));
  races_.release(20, second);
  races_.acquire(40, Races::told(second));
  write(40);
  EXPECT_FALSE(has_race());
}

TEST_F(RacesOf, ACopyIsUnderWayUntilItIsWaitedFor) {
  write(0, 0, Part::kCopies);
  races_.begin_group(0, Part::kCopies);
  write(0, 8, Part::kCopies);
  races_.begin_group(0, Part::kCopies);
  races_.finish_groups(0, Part::kCopies, 1);
  read(0, 0);
  EXPECT_FALSE(has_race());
  read(0, 8);
  EXPECT_NE(races_.report().find("what thread 0's copy writes"), std::string::npos);
}

TEST_F(RacesOf, AnEngineArrivesForItsWorkAlone) {
  Races::Arrivals barrier;
  write(0, 0);
  write(0, 8, Part::kLoads);
  races_.release_work(0, Part::kLoads, 1, barrier);
  races_.acquire(40, Races::told(barrier));
  read(40, 8);
  EXPECT_FALSE(has_race());
  read(40, 0);
  EXPECT_TRUE(has_race());
}

TEST_F(RacesOf, WorkBeginsBehindWhatItsThreadKnows) {
  write(40, 0);
  races_.fence(40);
  races_.meet(0, 2 * kWarp);
  read(0, 0, Part::kProducts);
  EXPECT_FALSE(has_race());
  write(40, 0);  // while the product reads
  EXPECT_NE(races_.report().find("what thread 0's product reads"), std::string::npos);
}

TEST_F(RacesOf, WarpInstructionsOrderReadsAlone) {
  read(1, 0);
  write(1, 8);
  races_.meet_after_reads(0, kWarp);
  write(0, 0);
  EXPECT_FALSE(has_race());
  read(0, 8);
  EXPECT_TRUE(has_race());
}

TEST_F(RacesOf, LanesMayAgreeOnAValue) {
  for (int lane = 0; lane < kWarp; ++lane) {
    write(lane);
    smem_[0] = 7;
  }
  EXPECT_FALSE(has_race());
  write(0);
  smem_[0] = 8;
  EXPECT_TRUE(has_race());
}

TEST_F(RacesOf, AtomicsAreInOrderWithEachOther) {
  add(0);
  add(40);
  EXPECT_FALSE(has_race());
  read(0);
  EXPECT_TRUE(has_race());
}

TEST_F(RacesOf, EnginesReadBehindAFenceOfTheWriter) {
  write(0, 0);
  races_.fence(0);
  races_.fence(40);
  races_.meet(0, 2 * kWarp);
  read(40, 0, Part::kProducts);
  EXPECT_FALSE(has_race());
  write(0, 8);  // behind its fence
  races_.meet(0, 2 * kWarp);
  read(40, 8);
  EXPECT_FALSE(has_race());
  read(40, 8, Part::kStores);
  EXPECT_NE(races_.report().find("what thread 0 writes"), std::string::npos);
  EXPECT_NE(races_.report().find("without a fence between proxies"), std::string::npos);
}

TEST_F(RacesOf, BarriersAreNotLookedAt) {
  races_.exempt(0, 8);
  write(0);
  write(40);
  EXPECT_FALSE(has_race());
}

}  // namespace
}  // namespace emulation
