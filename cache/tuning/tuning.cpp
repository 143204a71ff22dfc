// The folders of the tuning database. What is promised to processes that write at once, or die
// while they do, is in README.md.
#include "cache/tuning/tuning.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <system_error>

#include "cache/files/directories.hpp"
#include "cache/files/locks.hpp"
#include "cache/files/trust.hpp"
#include "cache/files/whole_files.hpp"
#include "cache/tuning/line.hpp"
#include "cache/tuning/segments.hpp"
#include "cache/tuning/single_file.hpp"

namespace lacuna::cache {
namespace {

constexpr const char* kFolder = "tuning";
/// Segments of a variant from which on a writer merges them: reading opens each.
constexpr std::size_t kMostSegments = 64;
constexpr const char* kNoDirectory = "there is no cache directory: set LACUNA_CACHE_DIR";

std::string message_of(int error) { return std::generic_category().message(error); }

std::string tuning_folder(const std::string& hardware) {
  return std::string(kFolder) + "/" + hardware;
}

std::string tuning_folder(const std::string& hardware, const std::string& variant) {
  return tuning_folder(hardware) + "/" + variant;
}

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string problem_in(const std::string& directory, const std::string& what) {
  return "cache directory " + directory + ": " + what;
}

/// Why the record could not be read back; "" if it could.
std::string find_unwritable(const TuningRecord& record) {
  if (!is_file_name(record.hardware) || !is_file_name(record.variant))
    return "a tuning record of hardware \"" + record.hardware + "\" and variant \"" +
           record.variant + "\": no names of folders";
  const std::size_t bytes = print_tuning_line(record).size() + 64;
  if (bytes > kLongestTuningLine)
    return "a tuning record of " + std::to_string(bytes) + " bytes: expected " +
           std::to_string(kLongestTuningLine) + " at most";
  return "";
}

/// Names below a folder; none if it is not there or cannot be trusted.
std::vector<std::string> names_below(int root, const std::string& path) {
  const Opened folder = open_folder(root, path, false);
  return folder.is_open() ? names_in(folder.descriptor.get(), false) : std::vector<std::string>();
}

/// Others may merge at once; on this node they need not. Returns an errno value.
int merge_alone(int folder, const std::string& path, const std::string& directory,
                const std::string& lock_directory) {
  const NodeLock lock = NodeLocks(lock_directory, directory).try_acquire(path);
  return lock.is_busy() ? 0 : merge_segments(folder, directory + "/" + path);
}

/// Adds the records of one variant. Returns what is wrong.
std::string append_variant(int root, const std::string& directory, const std::string& path,
                           std::vector<StoredRecord> records, const std::string& lock_directory) {
  const Opened folder = open_folder(root, path, true);
  if (!folder.is_open()) {
    return folder.distrust.empty()
               ? directory + "/" + path + ": cannot be written: " + folder.reason()
               : problem_in(directory, folder.distrust);
  }
  const SegmentNames present = list_segments(folder.descriptor.get());
  std::int64_t stamp = std::max(now_us(), present.last_us + 1);
  for (StoredRecord& stored : records) stored.added_us = std::min(stamp++, kLatestStamp_us);
  const int error = publish_segment(folder.descriptor.get(), records);
  if (error != 0) return directory + "/" + path + ": cannot be written: " + message_of(error);
  // The records are safe: whether merging succeeds is another matter.
  if (present.count >= kMostSegments)
    merge_alone(folder.descriptor.get(), path, directory, lock_directory);
  return "";
}

}  // namespace

TuningDatabase::TuningDatabase(const std::string& directory, std::string lock_directory)
    : directory_(directory.empty() ? "" : absolute_path(directory)),
      lock_directory_(std::move(lock_directory)) {}

std::string TuningDatabase::path_of(const std::string& hardware, const std::string& variant) const {
  return directory_ + "/" + tuning_folder(hardware, variant);
}

TuningRecords TuningDatabase::read(const std::string& hardware, const std::string& variant) const {
  TuningRecords result;
  if (directory_.empty()) return result;
  const Opened root = open_root(directory_, false);
  const auto warn = [&](const Opened& opened) {
    if (!opened.distrust.empty())
      result.warnings.push_back(problem_in(directory_, opened.distrust));
  };
  warn(root);
  if (!root.is_open()) return result;
  const int at = root.descriptor.get();
  const Opened tuning = open_folder(at, kFolder, false);
  warn(tuning);
  if (!tuning.is_open()) return result;
  TuningTable table;
  take_single_file(at, directory_, tuning_folder(hardware), table, result.warnings);
  std::vector<std::string> variants{variant};
  if (variant.empty()) variants = names_below(at, tuning_folder(hardware));
  for (const std::string& name : variants) {
    const Opened folder = open_folder(at, tuning_folder(hardware, name), false);
    warn(folder);
    if (!folder.is_open()) continue;
    SegmentReading reading = read_segments(folder.descriptor.get(), path_of(hardware, name));
    for (StoredRecord& stored : reading.table.stored()) table.put(std::move(stored));
    std::ranges::move(reading.warnings, std::back_inserter(result.warnings));
  }
  result.records = table.records();
  std::erase_if(result.records, [&](const TuningRecord& record) {
    return record.hardware != hardware || (!variant.empty() && record.variant != variant);
  });
  return result;
}

std::string TuningDatabase::check_writable(const std::string& hardware) const {
  if (directory_.empty()) return kNoDirectory;
  const Opened root = open_root(directory_, true);
  if (!root.is_open()) return problem_in(directory_, root.reason());
  const Opened folder = open_folder(root.descriptor.get(), tuning_folder(hardware), true);
  if (!folder.distrust.empty()) return problem_in(directory_, folder.distrust);
  if (folder.is_open()) sweep_temporary_files(folder.descriptor.get(), Sweep::kAbandoned);
  const int error = folder.is_open() ? try_to_write(folder.descriptor.get()) : folder.error;
  if (error == 0) return "";
  return directory_ + "/" + tuning_folder(hardware) + ": cannot be written: " + message_of(error);
}

std::string TuningDatabase::append(const std::vector<TuningRecord>& records) const {
  if (directory_.empty()) return kNoDirectory;
  std::map<std::string, std::vector<StoredRecord>> by_folder;
  for (const TuningRecord& record : records) {
    if (std::string problem = find_unwritable(record); !problem.empty()) return problem;
    by_folder[tuning_folder(record.hardware, record.variant)].push_back({record, 0});
  }
  const Opened root = open_root(directory_, true);
  if (!root.is_open()) return problem_in(directory_, root.reason());
  for (auto& [path, group] : by_folder) {
    std::string problem =
        append_variant(root.descriptor.get(), directory_, path, std::move(group), lock_directory_);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string TuningDatabase::compact(const std::string& hardware, const std::string& variant) const {
  const Opened root = open_root(directory_, false);
  if (!root.is_open()) return "";
  const std::string path = tuning_folder(hardware, variant);
  const Opened folder = open_folder(root.descriptor.get(), path, false);
  if (!folder.is_open()) return "";
  const int error = merge_alone(folder.descriptor.get(), path, directory_, lock_directory_);
  if (error == 0) return "";
  return directory_ + "/" + path + ": cannot be merged: " + message_of(error);
}

std::vector<std::string> TuningDatabase::hardware() const {
  std::vector<std::string> names;
  if (directory_.empty()) return names;
  const Opened root = open_root(directory_, false);
  if (!root.is_open()) return names;
  for (const std::string& name : names_below(root.descriptor.get(), kFolder)) {
    const std::string hardware = hardware_of_single_file(name);
    const bool is_folder = open_folder(root.descriptor.get(), tuning_folder(name), false).is_open();
    if (is_folder || !hardware.empty()) names.push_back(is_folder ? name : hardware);
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

std::vector<std::string> drop_what_is_too_much(std::vector<TuningRecord>& records) {
  constexpr std::size_t kStampBytes = 32;  // the member `added_us`, and the newline
  std::map<std::string, std::size_t> left_bytes, dropped;
  std::vector<TuningRecord> kept;
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    const std::string path = record->hardware + "/" + record->variant;
    const std::size_t bytes = print_tuning_line(*record).size() + kStampBytes;
    std::size_t& left = left_bytes.try_emplace(path, kMostVariantBytes).first->second;
    // Once one is dropped, those before it are: what is kept are the last ones.
    if (bytes > left) {
      left = 0;
      ++dropped[path];
    } else {
      left -= bytes;
      kept.push_back(std::move(*record));
    }
  }
  std::ranges::reverse(kept);
  records = std::move(kept);
  std::vector<std::string> warnings;
  warnings.reserve(dropped.size());
  for (const auto& [path, count] : dropped)
    warnings.push_back(path + ": the first " + std::to_string(count) + " records beyond " +
                       std::to_string(kMostVariantBytes >> 20) + " MiB skipped");
  return warnings;
}

}  // namespace lacuna::cache
