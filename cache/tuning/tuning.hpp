// The tuning database: which configurations of a variant were measured, and how fast they were.
//
// <cache directory>/tuning/<hardware>/<variant>/ holds segments: files of JSON lines that are
// complete when they appear and are never changed. Each writer adds segments of its own; of several
// lines about the same thing the one that was added last counts, in whichever segment it is. So
// segments can be merged into a new one, and then removed, beside writers and readers of any host,
// without a lock.
#pragma once

#include <string>
#include <vector>

#include "cache/tuning/record.hpp"

namespace lacuna::cache {

class TuningDatabase {
 public:
  /// `directory`: of the cache; "": nothing is found and nothing can be written. `lock_directory`:
  /// as choose_lock_directory() says, "": without locks; they only save work.
  TuningDatabase(const std::string& directory, std::string lock_directory);

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

}  // namespace lacuna::cache
