#include "tools/tune/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

#include "cache/files/file_descriptor.hpp"
#include "cache/tuning/line.hpp"
#include "cache/tuning/table.hpp"
#include "compiler/diag/printable.hpp"
#include "compiler/spec/json/json_limits.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/io/file_io.hpp"

namespace lacuna::tools {
namespace {

std::optional<std::string> read_text(const std::string& path, Session& session) {
  Diagnostics diagnostics;
  auto text = read_file(path, diagnostics, kMostJsonBytes);
  session.report(diagnostics, {path, ""});
  return text;
}

/// "-" is standard input. Nothing if it cannot be read, which has then been reported.
std::optional<cache::TuningRecords> read_records(const std::string& path, Session& session) {
  const cache::FileDescriptor file = open_to_read(path);
  cache::TuningRecords found;
  const int error = file.valid() ? cache::read_tuning_file(file.get(), path, found) : errno;
  if (error == 0) return found;
  Diagnostics diagnostics;
  diagnostics.add(
      {.code = Code::kFileUnreadable, .message = "cannot be read: " + reason_of(error)});
  session.report(diagnostics, {path, ""});
  return std::nullopt;
}

std::string print_count(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " record" : " records");
}

}  // namespace

void import_tuning(const std::string& path, const cache::TuningDatabase& database,
                   Session& session) {
  const auto file = read_records(path, session);
  if (!file) return;
  for (const std::string& warning : file->warnings) session.note(warning);
  if (file->records.empty()) {
    session.fail(ExitCode::kInput, path + ": no tuning records to import");
    return;
  }
  std::vector<cache::TuningRecord> fresh;
  std::set<std::string> present;
  std::set<std::pair<std::string, std::string>> variants;
  for (const auto& record : file->records) variants.emplace(record.hardware, record.variant);
  for (const auto& [hardware, variant] : variants)
    for (const auto& record : database.read(hardware, variant).records)
      present.insert(cache::print_tuning_line(record));
  for (const auto& record : file->records)
    if (!present.contains(cache::print_tuning_line(record))) fresh.push_back(record);
  const std::size_t present_count = file->records.size() - fresh.size();
  for (const std::string& warning : cache::drop_what_is_too_much(fresh))
    session.note(path + ": " + warning);
  if (const std::string problem = database.append(fresh); !problem.empty()) {
    session.fail(ExitCode::kEnvironment, problem);
    return;
  }
  session.document["imported"] = fresh.size();
  session.document["present"] = present_count;
  session.print(print_count(fresh.size()) + " imported, " + std::to_string(present_count) +
                " present before\n");
}

void export_tuning(const std::string& path, const cache::TuningDatabase& database,
                   Session& session) {
  std::string text;
  std::size_t count = 0;
  for (const std::string& hardware : database.hardware()) {
    const cache::TuningRecords file = database.read(hardware);
    for (const std::string& warning : file.warnings) session.note(warning);
    for (const auto& record : file.records) text += cache::print_tuning_line(record) + "\n";
    count += file.records.size();
  }
  if (count == 0) {
    session.fail(ExitCode::kInput, "nothing to export: there are no tuning records");
    return;
  }
  Diagnostics diagnostics;
  write_file(path, text, diagnostics);
  session.report(diagnostics, {path, ""});
  if (diagnostics.has_errors()) return;
  session.document["exported"] = count;
  session.print(print_count(count) + " exported to " + printable(path) + "\n");
}

std::vector<LaunchShape> load_shapes(const std::string& path, const LaunchShape& usual,
                                     Session& session) {
  const auto text = read_text(path, session);
  if (!text) return {};
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const auto is_text = [](const nlohmann::json& item) { return item.is_string(); };
  if (!json.is_array() || json.empty() || !std::ranges::all_of(json, is_text)) {
    session.fail(ExitCode::kInput,
                 path + R"(: expected an array of shapes, as in ["b=1,h=32,n=8192"])");
    return {};
  }
  std::vector<LaunchShape> shapes;
  for (const auto& item : json) {
    LaunchShape shape = usual;
    const std::string error = parse_shape(item.get<std::string>(), shape);
    if (!error.empty()) {
      session.fail(ExitCode::kInput,
                   path + ": shape " + std::to_string(shapes.size() + 1) + ": " + error);
      return {};
    }
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace lacuna::tools
