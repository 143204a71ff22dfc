// The tuning database: which configurations of a variant were measured, and how fast they were.
//
// <cache directory>/tuning/<hardware>/<variant>/ holds segments: files of JSON lines that are
// complete when they appear and are never changed. Each writer adds segments of its own; of several
// lines about the same thing the one that was added last counts, in whichever segment it is. So
// segments can be merged into a new one, and then removed, beside writers and readers of any host,
// without a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::cache {

enum class TuningStatus : std::uint8_t { kOk, kWrong, kSpill, kCrash, kHang };
std::string_view name_of(TuningStatus);

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

std::string print_tuning_line(const TuningRecord& record);  ///< without the newline
/// Nothing if the line is not an intact record of this version.
std::optional<TuningRecord> parse_tuning_line(std::string_view line);

/// "LLVM" of "LLVM 19.1.7, znver4", "interpreter", "NVRTC": a measurement with one says nothing
/// about another.
std::string_view compiler_kind(std::string_view compiler);

/// Longer lines are no records.
inline constexpr std::size_t kLongestTuningLine = std::size_t{1} << 16;
/// Of one variant, and of a file to import: 40,000 and 160,000 records.
inline constexpr std::size_t kMostVariantBytes = std::size_t{1} << 24;
inline constexpr std::size_t kMostImportBytes = std::size_t{1} << 26;

struct TuningRecords {
  std::vector<TuningRecord> records;  ///< those that count, in the order in which they were added
  std::vector<std::string> warnings;  ///< what was skipped and why, one for each file
};

class TuningDatabase {
 public:
  /// `directory`: of the cache; "": nothing is found and nothing can be written. `lock_directory`:
  /// as choose_lock_directory() says, "": without locks; they only save work.
  TuningDatabase(std::string directory, std::string lock_directory);

  std::string path_of(const std::string& hardware, const std::string& variant) const;

  /// Records of one variant, of all variants if it is empty. Never waits, and looks at no other
  /// variant's files. What is not there is empty.
  TuningRecords read(const std::string& hardware, const std::string& variant = "") const;

  /// Adds a segment for each variant of the records; "" or what is wrong. What this has returned ""
  /// for is found from then on, whoever else writes or merges.
  std::string append(const std::vector<TuningRecord>& records) const;

  /// Merges the segments of a variant into one. "" also if there is nothing to do, or another
  /// process of this node is at it; else what is wrong.
  std::string compact(const std::string& hardware, const std::string& variant) const;

  /// "" if records of this hardware can be added; else what is wrong.
  std::string check_writable(const std::string& hardware) const;

  /// All hardware there are records of, sorted.
  std::vector<std::string> hardware() const;

 private:
  std::string directory_, lock_directory_;
};

/// Leaves of each variant the last records that one segment can hold, so that append() takes what
/// is left. Returns what was dropped, a sentence for each variant.
std::vector<std::string> drop_what_is_too_much(std::vector<TuningRecord>& records);

/// The records of a text of lines; `origin` names it in warnings.
TuningRecords parse_tuning(std::string_view text, const std::string& origin);

/// The same of an open file, kMostImportBytes at most. Returns an errno value.
int read_tuning_file(int file, const std::string& origin, TuningRecords& found);

}  // namespace lacuna::cache
