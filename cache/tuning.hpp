// The tuning database: which configurations of a variant were measured, and how fast they were.
//
// One file of JSON lines for each kind of hardware, <cache directory>/tuning/<hardware>.jsonl; of
// several lines about the same thing the last one counts. Files only grow, by whole lines, until
// they hold far more history than facts; what is not a record of this version is left where it is.
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
  std::string hardware;  ///< names the file: letters, digits, '-', '_' and '.'
  std::string variant;   ///< hash of the spec without tiles, head dim, dtype
  std::string problem;   ///< bucket of the sizes
  std::string density;   ///< bucket of the share of tiles that is visited
  std::string config;
  TuningStatus status = TuningStatus::kOk;
  double median_us = 0, spread = 0;  ///< spread: (90 % - 10 %) / median
  int rung = 0;         ///< how often halving has let it through: the higher, the better measured
  std::string best;     ///< of a finished search, on the winner's record alone: hash of the space
  double budget_s = 0;  ///< of that search, if time was up before it was through; else 0
  std::string inputs;   ///< parameters that were not the spec's defaults
  std::string spec;     ///< name, for people
  std::string shape;    ///< that was measured, for people
  std::string detail;   ///< why it is not ok
  std::string library, driver, compiler;  ///< versions
  bool operator==(const TuningRecord&) const = default;
};

std::string print_tuning_line(const TuningRecord& record);  ///< without the newline
/// Nothing if the line is not an intact record of this version.
std::optional<TuningRecord> parse_tuning_line(std::string_view line);
/// Do both speak of the same measurement? Then the later one counts.
bool same_subject(const TuningRecord& a, const TuningRecord& b);

struct TuningFile {
  std::vector<TuningRecord> records;  ///< those that count, in the order of their lines
  std::vector<std::string> foreign;   ///< lines that are no records, as they are
  std::vector<std::string> warnings;  ///< one for each of those, or why the file cannot be read
  std::size_t superseded = 0;         ///< records that a later line replaced
};

class TuningDatabase {
 public:
  /// `directory`: of the cache; "": nothing is found and nothing can be written. `lock_directory`:
  /// as choose_lock_directory() says, "": without locks.
  TuningDatabase(std::string directory, std::string lock_directory);

  std::string path_of(const std::string& hardware) const;

  /// Never waits. A file that is not there is empty. With `variant`, only that variant's records
  /// are looked at and nothing is said about other lines.
  TuningFile read(const std::string& hardware, const std::string& variant = "") const;

  /// Appends whole lines, one for each record; "" or what is wrong. Processes may append at once.
  std::string append(const std::vector<TuningRecord>& records) const;

  /// Rewrites a file that is mostly history without its superseded lines; foreign ones stay. ""
  /// also if there is nothing to do, or somebody else holds the lock; else what is wrong.
  std::string compact(const std::string& hardware) const;

  /// "" if records of this hardware can be appended; else what is wrong.
  std::string check_writable(const std::string& hardware) const;

  /// All hardware there is a file for, sorted.
  std::vector<std::string> hardware() const;

 private:
  std::string directory_, lock_directory_;
};

/// Every record and every line that is none of a text of lines; `origin` names it in warnings.
TuningFile parse_tuning(std::string_view text, const std::string& origin,
                        const std::string& variant = "");

}  // namespace lacuna::cache
