#include "cache/tuning/table.hpp"

#include <algorithm>

#include "cache/files/whole_files.hpp"

namespace lacuna::cache {
namespace {

std::string subject_of(const TuningRecord& record) {
  std::string subject;
  for (const std::string_view part :
       {std::string_view(record.hardware), std::string_view(record.variant),
        std::string_view(record.problem), std::string_view(record.density),
        std::string_view(record.config), compiler_kind(record.compiler)})
    subject.append(part).push_back('\n');
  return subject;
}

/// A total order, so that every reader of two records agrees on the later one.
bool is_later(const StoredRecord& a, const StoredRecord& b) {
  if (a.added_us != b.added_us) return a.added_us > b.added_us;
  return print_tuning_line(a.record) > print_tuning_line(b.record);
}

}  // namespace

void TuningTable::put(StoredRecord stored) {
  const auto [at, is_new] = latest_.try_emplace(subject_of(stored.record), stored);
  if (!is_new && is_later(stored, at->second)) at->second = std::move(stored);
}

std::vector<StoredRecord> TuningTable::stored() const {
  std::vector<StoredRecord> all;
  all.reserve(latest_.size());
  for (const auto& [subject, stored] : latest_) all.push_back(stored);
  std::ranges::stable_sort(all, {}, &StoredRecord::added_us);
  return all;
}

std::vector<TuningRecord> TuningTable::records() const {
  std::vector<TuningRecord> all;
  for (StoredRecord& stored : stored()) all.push_back(std::move(stored.record));
  return all;
}

std::string warning_of(const ForeignLines& foreign, const std::string& origin) {
  std::string text = origin + ":" + std::to_string(foreign.first) +
                     ": not a tuning record of this version, skipped";
  if (foreign.count > 1)
    text += ", as are " + std::to_string(foreign.count - 1) + " of the lines after it";
  return text;
}

ForeignLines read_lines(std::string_view text, const OnRecord& on_record) {
  ForeignLines foreign;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    if (auto stored = line.front() == '{' ? parse_stored_line(line) : std::nullopt) {
      on_record(std::move(*stored), number);
    } else if (foreign.count++ == 0) {
      foreign.first = number;
    }
  }
  return foreign;
}

TuningRecords parse_tuning(std::string_view text, const std::string& origin) {
  TuningTable table;
  const ForeignLines foreign = read_lines(text, [&table](StoredRecord stored, std::size_t number) {
    stored.added_us = static_cast<std::int64_t>(number);
    table.put(std::move(stored));
  });
  TuningRecords result{table.records(), {}};
  if (foreign.count > 0) result.warnings.push_back(warning_of(foreign, origin));
  return result;
}

int read_tuning_file(int file, const std::string& origin, TuningRecords& found) {
  std::string text;
  if (const int error = read_file(file, kMostImportBytes + 1, text); error != 0) return error;
  const bool is_cut = text.size() > kMostImportBytes;
  if (is_cut) text.resize(text.rfind('\n') + 1);
  found = parse_tuning(text, origin);
  if (is_cut)
    found.warnings = {origin + ": all but the first " + std::to_string(kMostImportBytes >> 20) +
                      " MiB skipped"};
  return 0;
}

}  // namespace lacuna::cache
