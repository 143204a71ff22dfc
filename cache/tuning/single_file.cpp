#include "cache/tuning/single_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cache/files/trust.hpp"
#include "cache/files/whole_files.hpp"
#include "cache/tuning/segments.hpp"

namespace lacuna::cache {
namespace {

constexpr std::string_view kSingleFileSuffix = ".jsonl";
/// Segments say more in each line, and have to be read in their turn.
constexpr std::size_t kMostBytes = kMostVariantBytes / 2;

/// The end of the file, kMostBytes at most: its last lines are those that count.
std::string read_end(const Opened& file, bool& is_cut) {
  const auto most = static_cast<off_t>(kMostBytes);
  is_cut = file.status.st_size > most;
  std::string text;
  if (is_cut) ::lseek(file.descriptor.get(), file.status.st_size - most, SEEK_SET);
  if (read_file(file.descriptor.get(), kMostBytes, text) != 0) return "";
  if (is_cut) text.erase(0, text.find('\n'));
  return text;
}

/// Stamps follow from the file alone: whoever imports it twice adds nothing, and the order of its
/// lines stays. It was written to last before anything that is measured from now on.
std::int64_t stamp_of_line(const Opened& file, std::size_t number) {
  const std::int64_t modified_us =
      std::int64_t{file.status.st_mtim.tv_sec} * 1'000'000 + file.status.st_mtim.tv_nsec / 1000;
  const auto most = static_cast<std::int64_t>(kMostBytes);
  return std::clamp<std::int64_t>(modified_us - most, 0, kLatestStamp_us - most) +
         static_cast<std::int64_t>(number);
}

bool publish_variants(int root, const std::string& path, const TuningTable& table) {
  std::map<std::string, std::vector<StoredRecord>> by_variant;
  for (StoredRecord& stored : table.stored())
    by_variant[stored.record.variant].push_back(std::move(stored));
  for (const auto& [variant, records] : by_variant) {
    const Opened folder = open_folder(root, path + "/" + variant, true);
    if (!folder.is_open() || publish_segment(folder.descriptor.get(), records) != 0) return false;
  }
  return true;
}

}  // namespace

void take_single_file(int root, const std::string& directory, const std::string& path,
                      TuningTable& table, std::vector<std::string>& warnings) {
  const std::string name = path + std::string(kSingleFileSuffix);
  const Opened file = open_file(root, name);
  if (!file.is_open()) {
    if (!file.distrust.empty())
      warnings.push_back("cache directory " + directory + ": " + file.distrust);
    return;
  }
  bool is_cut = false;
  const std::string text = read_end(file, is_cut);
  TuningTable found;
  const ForeignLines foreign = read_lines(text, [&](StoredRecord stored, std::size_t number) {
    stored.added_us = stamp_of_line(file, number);
    found.put(std::move(stored));
  });
  if (is_cut) {
    warnings.push_back(directory + "/" + name + ": all but the last " +
                       std::to_string(kMostBytes >> 20) + " MiB skipped");
  } else if (foreign.count > 0) {
    warnings.push_back(warning_of(foreign, directory + "/" + name));
  }
  if (!publish_variants(root, path, found)) {
    for (StoredRecord& stored : found.stored()) table.put(std::move(stored));
    return;
  }
  // Only now: whoever dies before it leaves the file to be imported again.
  const std::string imported = name + "." + random_digits() + ".imported";
  ::renameat(root, name.c_str(), root, imported.c_str());
}

std::string hardware_of_single_file(const std::string& name) {
  if (!name.ends_with(kSingleFileSuffix)) return "";
  return name.substr(0, name.size() - kSingleFileSuffix.size());
}

}  // namespace lacuna::cache
