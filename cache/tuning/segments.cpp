#include "cache/tuning/segments.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <functional>
#include <set>
#include <system_error>

#include "cache/files/trust.hpp"
#include "cache/files/whole_files.hpp"

namespace lacuna::cache {
namespace {

constexpr std::string_view kSegmentSuffix = ".jsonl";
constexpr int kStampDigits = 16;  ///< so that names sort by time
/// Listings after which a reader takes what it has, should others never stop merging.
constexpr int kMostPasses = 16;

/// "0001764000000000.0123456789abcdef.jsonl": the last record in it was added then.
std::string segment_name(std::int64_t last_us) {
  char stamp[32];
  std::snprintf(stamp, sizeof stamp, "%0*lld", kStampDigits, static_cast<long long>(last_us));
  return std::string(stamp) + "." + random_digits() + std::string(kSegmentSuffix);
}

/// The latest first.
std::vector<std::string> segment_names(int folder) {
  std::vector<std::string> names = names_in(folder, false);
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSegmentSuffix); });
  std::ranges::sort(names, std::greater());
  return names;
}

/// Reads segments of one folder into one table.
class SegmentReader {
 public:
  SegmentReader(int folder, const std::string& shown) : folder_(folder), shown_(shown) {}

  void read_new(const std::vector<std::string>& names) {
    std::size_t left_bytes = kMostVariantBytes;
    for (const std::string& name : names)
      if (seen_.insert(name).second) read_one(name, left_bytes);
  }
  SegmentReading finish() {
    if (beyond_ > 0) {
      warn(std::to_string(beyond_) + (beyond_ == 1 ? " file" : " files") + " beyond " +
           std::to_string(kMostVariantBytes >> 20) + " MiB skipped");
    }
    return std::move(reading_);
  }

 private:
  void warn(const std::string& what) { reading_.warnings.push_back(shown_ + ": " + what); }

  /// A segment that has vanished is no error: somebody has merged its records into a newer one.
  void read_one(const std::string& name, std::size_t& left_bytes) {
    const Opened file = open_file(folder_, name);
    if (file.is_absent()) return;
    if (!file.is_open()) {
      warn(file.distrust.empty() ? name + " cannot be read: " + file.reason() : file.distrust);
      return;
    }
    const auto bytes = static_cast<std::size_t>(file.status.st_size);
    std::string text;
    if (bytes > left_bytes) {
      ++beyond_;
      return;
    }
    left_bytes -= bytes;
    if (const int error = read_file(file.descriptor.get(), bytes, text); error != 0) {
      warn(name + " cannot be read: " + std::generic_category().message(error));
      return;
    }
    const ForeignLines foreign = read_lines(
        text, [this](StoredRecord stored, std::size_t) { reading_.table.put(std::move(stored)); });
    if (foreign.count > 0) {
      reading_.warnings.push_back(warning_of(foreign, shown_ + "/" + name));
    } else if (file.status.st_uid == ::geteuid()) {
      reading_.whole.push_back(name);
    }
  }

  int folder_;
  std::string shown_;
  std::set<std::string> seen_;
  std::size_t beyond_ = 0;  ///< segments that exceeded the limit of bytes
  SegmentReading reading_;
};

}  // namespace

/// Listing a folder is not atomic: while segments are merged, a listing may miss the old ones and
/// the new one. So the folder is listed until two listings agree: a segment that vanished between
/// them would be missing in the second.
SegmentReading read_segments(int folder, const std::string& shown) {
  SegmentReader reader(folder, shown);
  std::vector<std::string> before;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    std::vector<std::string> names = segment_names(folder);
    reader.read_new(names);
    if (pass > 0 && names == before) break;
    before = std::move(names);
  }
  return reader.finish();
}

SegmentNames list_segments(int folder) {
  const std::vector<std::string> names = segment_names(folder);
  SegmentNames listed{names.size(), 0};
  for (const std::string& name : names) {
    std::int64_t stamp = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + kStampDigits, stamp);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + kStampDigits)
      listed.last_us = std::max(listed.last_us, stamp);
  }
  return listed;
}

int publish_segment(int folder, const std::vector<StoredRecord>& records) {
  std::string lines;
  std::int64_t last_us = 0;
  for (const StoredRecord& stored : records) {
    lines += print_stored_line(stored) + "\n";
    last_us = std::max(last_us, stored.added_us);
  }
  if (lines.size() > kMostVariantBytes) return EFBIG;  // readers would skip it
  const int error = publish_file(folder, folder, segment_name(last_us), lines);
  // Some file systems cannot flush a folder; the file is there all the same.
  if (error == 0) ::fsync(folder);
  return error;
}

int merge_segments(int folder, const std::string& shown) {
  sweep_temporary_files(folder, Sweep::kAbandoned);
  const SegmentReading reading = read_segments(folder, shown);
  if (reading.whole.size() < 2) return 0;
  const int error = publish_segment(folder, reading.table.stored());
  if (error != 0) return error;
  for (const std::string& name : reading.whole) remove_own_file(folder, name);
  return 0;
}

}  // namespace lacuna::cache
