// One line of the tuning database: a JSON object whose members are the fields of a record, and when
// the record was added.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/tuning/record.hpp"

namespace lacuna::cache {

std::string print_tuning_line(const TuningRecord& record);  ///< without the newline
/// Nothing if the line is not an intact record of this version.
std::optional<TuningRecord> parse_tuning_line(std::string_view line);

/// What no stamp exceeds: 2^53 us is the year 2255.
inline constexpr std::int64_t kLatestStamp_us = std::int64_t{1} << 53;

struct StoredRecord {
  TuningRecord record;
  /// Microseconds since the epoch by the writer's clock, but later than all that the writer has
  /// seen of this variant; 0: a line that does not say.
  std::int64_t added_us = 0;
};

std::string print_stored_line(const StoredRecord& stored);  ///< without the newline
std::optional<StoredRecord> parse_stored_line(std::string_view text);

/// Can a folder have this name?
bool is_file_name(std::string_view text);

}  // namespace lacuna::cache
