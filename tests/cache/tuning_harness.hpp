// What the tests of the tuning database share.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "cache/tuning/tuning.hpp"
#include "tests/cache/harness.hpp"

namespace lacuna::cache {

inline TuningRecord record_number(int number) {
  TuningRecord record;
  record.hardware = "machine-1";
  record.variant = "abc";
  record.problem = "rows=1 group=1 n_q=512 n_k=512";
  record.density = "1";
  record.config = "q64 k" + std::to_string(number);
  record.median_us = 100 + number;
  record.spread = 0.25;
  record.rung = 2;
  record.spec = "dense";
  record.library = "0.1";
  record.compiler = "LLVM";
  return record;
}

inline TuningDatabase database_in(const Scratch& scratch) {
  return {scratch.path("cache"), scratch.path("locks")};
}

/// Of the records of record_number(), below a scratch directory.
inline constexpr const char* kFolder = "cache/tuning/machine-1/abc";

inline std::vector<std::string> segments_in(const Scratch& scratch) {
  return files_below(scratch.path("cache/tuning"), ".jsonl");
}

inline std::string only_segment(const Scratch& scratch) {
  const std::vector<std::string> all = segments_in(scratch);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? "" : all.front();
}

/// A file that others cannot write, wherever it is.
inline void write_private(const std::string& path, const std::string& bytes) {
  write_whole(path, bytes);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
}

}  // namespace lacuna::cache
