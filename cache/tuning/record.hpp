// A record of the tuning database: one configuration of a variant, and how fast it was; and how
// much of records is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::cache {

enum class TuningStatus : std::uint8_t { kOk, kWrong, kSpill, kCrash, kHang };
/// By the number of a status.
inline constexpr std::array<std::string_view, 5> kTuningStatusNames{"ok", "wrong", "spill", "crash",
                                                                    "hang"};
constexpr std::string_view name_of(TuningStatus status) {
  return kTuningStatusNames[static_cast<std::size_t>(status)];
}

/// Texts are opaque here; runtime/tune gives them their meaning.
struct TuningRecord {
  std::string hardware;  ///< names a folder: letters, digits, '-', '_' and '.'
  std::string variant;  ///< hash of the spec without tiles, head dim, dtype; names a folder as well
  std::string problem;  ///< bucket of the sizes
  std::string density;  ///< bucket of the share of tiles that is visited
  std::string config;
  TuningStatus status = TuningStatus::kOk;
  double median_us = 0, spread = 0;  ///< spread: (90 % - 10 %) / median
  int rung = 0;         ///< how often halving has let it through: the higher, the better measured
  std::string best;     ///< of a finished search, on the winner's record alone: hash of the space
  double budget_s = 0;  ///< of that search, if time was up before it was through; else 0
  std::string
      inputs;         ///< parameters that were not the spec's defaults, values that were not normal
  std::string spec;   ///< name, for people
  std::string shape;  ///< that was measured, for people
  std::string detail;                     ///< why it is not ok
  std::string library, driver, compiler;  ///< versions
  bool operator==(const TuningRecord&) const = default;
};

/// "LLVM" of "LLVM 19.1.7, znver4", "interpreter", "NVRTC": a measurement with one says nothing
/// about another.
constexpr std::string_view compiler_kind(std::string_view compiler) {
  return compiler.substr(0, compiler.find(' '));
}

/// Longer lines are no records.
inline constexpr std::size_t kLongestTuningLine = std::size_t{1} << 16;
/// Of one variant, and of a file to import: 40,000 and 160,000 records.
inline constexpr std::size_t kMostVariantBytes = std::size_t{1} << 24;
inline constexpr std::size_t kMostImportBytes = std::size_t{1} << 26;

struct TuningRecords {
  std::vector<TuningRecord> records;  ///< those that count, in the order in which they were added
  std::vector<std::string> warnings;  ///< what was skipped and why, one for each file
};

}  // namespace lacuna::cache
