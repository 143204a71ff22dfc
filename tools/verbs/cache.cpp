// lacuna cache: what the store of compiled kernels holds, and keeping it small.
#include <cmath>

#include "cache/store.hpp"
#include "runtime/base/environment.hpp"
#include "tools/common/table.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

using cache::EntryInfo;
using cache::Store;
using nlohmann::ordered_json;

constexpr const char* kCacheDescription =
    R"help(The store of compiled kernels: list, verify, prune, clear, or print its path.

Examples:
  lacuna cache ls
  lacuna cache verify
  lacuna cache prune --max-bytes 256M
  lacuna cache clear
  du -sh "$(lacuna cache path)"

Deleting the directory is always safe. See also: doctor)help";

constexpr std::size_t kShownDigits = 12;  ///< of a key

std::unique_ptr<Store> open_store(Session& session) {
  cache::StoreOptions options;
  options.directory = cache::choose_directory(system_variable);
  options.warn = [&session](const std::string& message) { session.note("cache: " + message); };
  return std::make_unique<Store>(std::move(options));
}

/// Null if it is no JSON object. What lies deeper than the facts of a kernel is passed over:
/// copying and printing it would go as deep.
ordered_json metadata_of(const EntryInfo& entry) {
  constexpr int kDepth = 3;
  const auto keep = [](int depth, ordered_json::parse_event_t, ordered_json&) {
    return depth <= kDepth;
  };
  auto metadata = ordered_json::parse(entry.metadata, keep, /*allow_exceptions=*/false);
  return metadata.is_object() ? metadata : ordered_json();
}

ordered_json to_json(const EntryInfo& entry) {
  return {{"key", entry.sha256},           {"target", entry.target},
          {"bytes", entry.bytes},          {"modified_s", entry.modified_s},
          {"intact", entry.intact},        {"path", entry.path},
          {"metadata", metadata_of(entry)}};
}

std::string spec_of(const EntryInfo& entry) {
  const ordered_json metadata = metadata_of(entry);
  const auto spec = metadata.find("spec");
  return spec != metadata.end() && spec->is_string() ? spec->get<std::string>() : std::string();
}

void list(const std::vector<EntryInfo>& entries, Session& session) {
  Table table{.head = {"key", "target", "spec", "size", "state"}, .rows = {}, .indent = ""};
  std::uint64_t bytes = 0;
  session.document["entries"] = ordered_json::array();
  for (const EntryInfo& entry : entries) {
    session.document["entries"].push_back(to_json(entry));
    table.rows.push_back({entry.sha256.substr(0, kShownDigits), entry.target, spec_of(entry),
                          print_bytes(entry.bytes), entry.intact ? "intact" : "damaged"});
    bytes += entry.bytes;
  }
  session.document["bytes"] = bytes;
  if (!entries.empty()) session.print(print_table(table, session.color_stdout()));
  session.print(std::to_string(entries.size()) + " entries, " + print_bytes(bytes) + "\n");
}

void run_list(Session& session) { list(open_store(session)->list(), session); }

void run_verify(Session& session) {
  std::vector<EntryInfo> damaged;
  std::size_t intact = 0;
  for (EntryInfo& entry : open_store(session)->list()) {
    if (entry.intact) {
      ++intact;
    } else {
      damaged.push_back(std::move(entry));
    }
  }
  session.document["intact"] = intact;
  session.document["damaged"] = ordered_json::array();
  for (const EntryInfo& entry : damaged) session.document["damaged"].push_back(to_json(entry));
  session.print(std::to_string(intact) + " intact, " + std::to_string(damaged.size()) +
                " damaged\n");
  for (const EntryInfo& entry : damaged) {
    session.fail(ExitCode::kInput, entry.path + " is damaged; it will be rebuilt when needed");
  }
}

void report_freed(std::uint64_t bytes, Session& session) {
  session.document["freed_bytes"] = bytes;
  session.print("freed " + print_bytes(bytes) + "\n");
}

void run_path(Session& session) {
  const auto store = open_store(session);
  session.document["directory"] = store->directory();
  session.document["on_disk"] = store->on_disk();
  if (!store->on_disk()) {
    session.fail(ExitCode::kEnvironment, "no usable cache directory: kernels are kept in memory");
    return;
  }
  session.print_data(store->directory() + "\n");
}

}  // namespace

void add_cache(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("cache", kCacheDescription);
  verb->require_subcommand(1);
  verb->add_subcommand("ls", "List all entries")->callback([&session] { run_list(session); });
  verb->add_subcommand("verify", "Check every entry; exit 1 if one is damaged")
      ->callback([&session] { run_verify(session); });
  verb->add_subcommand("clear", "Remove all entries")->callback([&session] {
    report_freed(open_store(session)->clear(), session);
  });
  verb->add_subcommand("path", "Print the directory")->callback([&session] { run_path(session); });

  auto max_bytes = std::make_shared<std::uint64_t>(0);
  CLI::App* prune = verb->add_subcommand("prune", "Remove the least recently used entries");
  prune->add_option("--max-bytes", *max_bytes, "Size to shrink to: 4096, 256K, 64M, 1G")
      ->required()
      ->check([](const std::string& text) -> std::string {
        return text.starts_with('-') ? "expected a size from 0 on, got " + text : "";
      })
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES");
  prune->callback(
      [max_bytes, &session] { report_freed(open_store(session)->prune(*max_bytes), session); });
  for (CLI::App* action : verb->get_subcommands(nullptr)) action->fallthrough();
}

}  // namespace lacuna::tools
