// Records by what they are about: of several, the one that was added last counts. In whichever
// order and how often records are put in, the same ones come out; merging segments rests on that.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cache/tuning/line.hpp"

namespace lacuna::cache {

class TuningTable {
 public:
  void put(StoredRecord stored);
  /// In the order in which they were added.
  std::vector<StoredRecord> stored() const;
  std::vector<TuningRecord> records() const;

 private:
  std::map<std::string, StoredRecord> latest_;  ///< by subject
};

/// What the lines of a text held besides records.
struct ForeignLines {
  std::size_t count = 0;
  std::size_t first = 0;  ///< number of the first, from 1
};
/// "records.jsonl:5: not a tuning record of this version, skipped"
std::string warning_of(const ForeignLines& foreign, const std::string& origin);

/// Called with the record of each line and the line's number.
using OnRecord = std::function<void(StoredRecord stored, std::size_t number)>;
ForeignLines read_lines(std::string_view text, const OnRecord& on_record);

/// The records of a text of lines; `origin` names it in warnings.
TuningRecords parse_tuning(std::string_view text, const std::string& origin);

/// The same of an open file, kMostImportBytes at most. Returns an errno value.
int read_tuning_file(int file, const std::string& origin, TuningRecords& found);

}  // namespace lacuna::cache
