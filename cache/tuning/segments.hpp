// The segments of one variant: files in one folder that are complete when they appear and are never
// changed.
//
// A segment is removed only by whoever has read all of it and published another that holds the same
// records. So a record that was published is in some segment at any time, whoever else merges, and
// after death at any moment; it may be in several, which TuningTable does not mind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/tuning/table.hpp"

namespace lacuna::cache {

struct SegmentReading {
  TuningTable table;
  std::vector<std::string> whole;  ///< names of those that were read and hold nothing but records
  std::vector<std::string> warnings;  ///< one for each file that cannot be used or holds more
};

/// `shown` is the path of the folder in warnings. Reads the latest segments first, and
/// kMostVariantBytes at most.
SegmentReading read_segments(int folder, const std::string& shown);

/// How many there are, and when the last record was added that any of them holds.
struct SegmentNames {
  std::size_t count = 0;
  std::int64_t last_us = 0;
};
SegmentNames list_segments(int folder);

/// Returns an errno value.
int publish_segment(int folder, const std::vector<StoredRecord>& records);

/// Publishes what all readable segments hold as one, then removes those. Returns an errno value.
int merge_segments(int folder, const std::string& shown);

}  // namespace lacuna::cache
