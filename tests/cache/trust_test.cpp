// One rule for every level of a store: nothing is used that others could have put there.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cache/harness.hpp"

namespace lacuna::cache {
namespace {

constexpr uid_t kSomebodyElse = 65534;

/// A store with one entry whose folders and file can be spoilt.
class Trust : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Store(options_in(scratch_)).publish(key_, kernel_for(key_)));
  }

  std::string at(const std::string& name) const { return scratch_.path("cache/" + name); }

  /// Nothing is read, listed, removed or written there; one sentence says why.
  void expect_folder_refused(const std::string& reason) const {
    std::vector<std::string> warnings;
    Store store(options_in(scratch_, &warnings));
    EXPECT_FALSE(store.load(key_).has_value());
    EXPECT_FALSE(store.publish(key_, kernel_for(key_)));
    EXPECT_FALSE(store.on_disk());
    EXPECT_EQ(store.clear(), 0U);
    EXPECT_TRUE(store.list().empty());
    EXPECT_EQ(warnings,
              std::vector<std::string>{"cache directory " + scratch_.path("cache") + ": " + reason +
                                       "; compiled kernels are kept in memory only"});
    EXPECT_EQ(files_below(scratch_.path(), ".lacuna").size(), 1U) << "it is where it was";
  }

  /// It is taken for damaged, and built anew.
  void expect_entry_refused() const {
    Store store(options_in(scratch_));
    const std::vector<EntryInfo> listed = store.list();
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_FALSE(listed[0].intact);
    EXPECT_FALSE(store.load(key_).has_value());
    EXPECT_EQ(store.counters().rejected, 1U);
    EXPECT_TRUE(store.publish(key_, kernel_for(key_)));
    EXPECT_TRUE(store.load(key_).has_value());
  }

  void expect_usable() const { EXPECT_TRUE(Store(options_in(scratch_)).load(key_).has_value()); }

  const Scratch scratch_;
  const Key key_ = key_number(1);
  const std::string shard_ = "v1/sm_90a/" + key_.sha256.substr(0, 2);
  const std::vector<std::string> folders_ = {"v1", "v1/sm_90a", shard_};
};

TEST_F(Trust, FoldersThatOthersCanWrite) {
  for (const std::string& folder : folders_) {
    for (const mode_t mode : {mode_t{0770}, mode_t{0707}, mode_t{01777}}) {
      ASSERT_EQ(::chmod(at(folder).c_str(), mode), 0);
      char shown[8];
      std::snprintf(shown, sizeof shown, "%04o", mode);
      expect_folder_refused(folder + " can be written by others (mode " + shown +
                            ", expected 0700)");
    }
    ASSERT_EQ(::chmod(at(folder).c_str(), 0755), 0);
    expect_usable();
  }
}

TEST_F(Trust, FoldersThatAreSymbolicLinks) {
  for (const std::string& folder : folders_) {
    const std::string elsewhere = scratch_.path("elsewhere");
    ASSERT_EQ(::rename(at(folder).c_str(), elsewhere.c_str()), 0);
    ASSERT_EQ(::symlink(elsewhere.c_str(), at(folder).c_str()), 0);
    expect_folder_refused(folder + " is a symbolic link");
    ASSERT_EQ(::unlink(at(folder).c_str()), 0);
    ASSERT_EQ(::rename(elsewhere.c_str(), at(folder).c_str()), 0);
  }
  expect_usable();
}

TEST_F(Trust, FoldersOfSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  for (const std::string& folder : folders_) {
    ASSERT_EQ(::chown(at(folder).c_str(), kSomebodyElse, kSomebodyElse), 0);
    expect_folder_refused(folder + " is owned by uid 65534, not by uid 0");
    ASSERT_EQ(::chown(at(folder).c_str(), 0, 0), 0);
  }
}

TEST_F(Trust, EntriesThatOthersCouldHaveWritten) {
  const std::string entry = file_of(scratch_, key_);
  for (const mode_t mode : {mode_t{0666}, mode_t{0620}}) {
    ASSERT_EQ(::chmod(entry.c_str(), mode), 0);
    expect_entry_refused();
  }
  ASSERT_EQ(::rename(entry.c_str(), at("moved").c_str()), 0);
  ASSERT_EQ(::symlink(at("moved").c_str(), entry.c_str()), 0);
  expect_entry_refused();
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(entry.c_str(), kSomebodyElse, kSomebodyElse), 0);
  expect_entry_refused();
}

TEST_F(Trust, FoldersThatChangeAfterAHit) {
  for (const std::string& folder : folders_) {
    Store opened_to_others(options_in(scratch_));
    ASSERT_TRUE(opened_to_others.load(key_).has_value());
    ASSERT_EQ(::chmod(at(folder).c_str(), 0777), 0);
    EXPECT_FALSE(opened_to_others.load(key_).has_value()) << folder;
    EXPECT_FALSE(opened_to_others.on_disk());
    ASSERT_EQ(::chmod(at(folder).c_str(), 0700), 0);

    Store moved(options_in(scratch_));
    ASSERT_TRUE(moved.load(key_).has_value());
    const std::string elsewhere = scratch_.path("elsewhere");
    ASSERT_EQ(::rename(at(folder).c_str(), elsewhere.c_str()), 0);
    ASSERT_EQ(::symlink(elsewhere.c_str(), at(folder).c_str()), 0);
    EXPECT_FALSE(moved.load(key_).has_value()) << folder;
    EXPECT_FALSE(moved.on_disk());
    ASSERT_EQ(::unlink(at(folder).c_str()), 0);
    ASSERT_EQ(::rename(elsewhere.c_str(), at(folder).c_str()), 0);
  }
}

TEST_F(Trust, EntriesThatChangeAfterAHit) {
  const std::string entry = file_of(scratch_, key_);
  Store store(options_in(scratch_));
  ASSERT_TRUE(store.load(key_).has_value());
  ASSERT_EQ(::chmod(entry.c_str(), 0666), 0);
  EXPECT_FALSE(store.load(key_).has_value());
  ASSERT_TRUE(store.publish(key_, kernel_for(key_)));
  ASSERT_TRUE(store.load(key_).has_value());
  ASSERT_EQ(::rename(entry.c_str(), at("moved").c_str()), 0);
  ASSERT_EQ(::symlink(at("moved").c_str(), entry.c_str()), 0);
  EXPECT_FALSE(store.load(key_).has_value());
}

TEST_F(Trust, WhatRootHasPutThereServesEverybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs two users";
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  for (const std::string& folder : {std::string(), folders_[0], folders_[1], folders_[2]})
    ASSERT_EQ(::chmod(at(folder).c_str(), 0755), 0);
  ASSERT_EQ(::chmod(file_of(scratch_, key_).c_str(), 0644), 0);
  const pid_t child = start_child([this] {
    require(::setuid(kSomebodyElse) == 0, "another user");
    std::vector<std::string> warnings;
    Store store(options_in(scratch_, &warnings));
    require(store.load(key_).has_value(), "the entry of root");
    require(!store.publish(key_number(2), kernel_for(key_number(2))), "nothing can be added");
    require(warnings.size() == 1 && warnings[0].ends_with("cannot be written: Permission denied; "
                                                          "kernels are compiled again next time"),
            "why");
    return 0;
  });
  EXPECT_EQ(wait_for_child(child), 0);
}

TEST_F(Trust, TheDirectoryThatTheUserNamesMayBeALink) {
  ASSERT_EQ(::rename(at("").c_str(), scratch_.path("disk").c_str()), 0);
  ASSERT_EQ(::symlink(scratch_.path("disk").c_str(), scratch_.path("cache").c_str()), 0);
  expect_usable();
  ASSERT_EQ(::chmod(scratch_.path("disk").c_str(), 0777), 0);
  EXPECT_FALSE(Store(options_in(scratch_)).on_disk()) << "what it leads to is checked";
}

}  // namespace
}  // namespace lacuna::cache
