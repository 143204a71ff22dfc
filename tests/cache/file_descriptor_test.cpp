// Who closes a descriptor, and how often.
#include "cache/files/file_descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace lacuna::cache {
namespace {

int open_one() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int value) { return ::fcntl(value, F_GETFD) != -1; }

TEST(FileDescriptor, IsClosedByItsOwner) {
  const int value = open_one();
  {
    const FileDescriptor owner(value);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), value);
  }
  EXPECT_FALSE(is_open(value));
}

TEST(FileDescriptor, NothingIsLeftWhereItWasMovedFrom) {
  FileDescriptor first(open_one());
  const int value = first.get();
  FileDescriptor second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.get(), value);
  second = FileDescriptor(open_one());
  EXPECT_FALSE(is_open(value));
  const int kept = second.release();
  EXPECT_FALSE(second.valid());
  second = FileDescriptor();
  EXPECT_TRUE(is_open(kept));
  ::close(kept);
}

}  // namespace
}  // namespace lacuna::cache
