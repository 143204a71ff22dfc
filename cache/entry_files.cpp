#include "cache/entry_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>

#include "cache/files/trust.hpp"

namespace lacuna::cache {
namespace {

constexpr std::string_view kRoot = "v1";
constexpr std::string_view kSuffix = ".lacuna";
constexpr std::int64_t kTouchAfter_s = 86'400;
constexpr std::size_t kLargestEntry_bytes = std::size_t{1} << 30;

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_plain_name(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text.size() < 64 && std::all_of(text.begin(), text.end(), is_plain);
}

std::string target_path(std::string_view target) {
  return std::string(kRoot) + "/" + std::string(target);
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> names_at(int directory, const std::string& path) {
  const Opened folder = open_folder(directory, path, false);
  return folder.is_open() ? names_in(folder.descriptor.get(), false) : std::vector<std::string>();
}

/// The entries of one shard.
void scan_shard(int directory, const std::string& target, const std::string& path,
                std::vector<EntryFile>& entries) {
  const Opened folder = open_folder(directory, path, false);
  if (!folder.is_open()) return;
  for (const std::string& name : names_in(folder.descriptor.get(), false)) {
    const std::string sha256 = name.substr(0, 64);
    EntryFile entry{std::string(path).append("/").append(name), target, sha256};
    struct stat status {};
    if (name != sha256 + std::string(kSuffix) || !is_sha256(sha256) ||
        ::fstatat(folder.descriptor.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    entry.bytes = static_cast<std::uint64_t>(status.st_size);
    entry.modified_ns =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::string entry_path(const Key& key) {
  if (!is_plain_name(key.target) || !is_sha256(key.sha256)) return "";
  return target_path(key.target) + "/" + key.sha256.substr(0, 2) + "/" + key.sha256 +
         std::string(kSuffix);
}

std::string distrust_of_store(int directory) {
  return open_folder(directory, std::string(kRoot), false).distrust;
}

ReadResult read_entry(int directory, const std::string& path, const std::string* key_text,
                      bool touch) {
  ReadResult result;
  const Opened file = open_file(directory, path);
  if (!file.is_open()) {
    result.absent = file.is_absent() || file.is_on_the_way;
    result.distrust = file.is_on_the_way ? file.distrust : "";
    result.decoded.damage = result.absent ? "" : file.reason();
    return result;
  }
  std::string bytes;
  if (file.status.st_size > static_cast<std::int64_t>(kLargestEntry_bytes)) {
    result.decoded.damage = "larger than any entry";
  } else if (read_file(file.descriptor.get(), kLargestEntry_bytes, bytes) != 0) {
    result.decoded.damage = "cannot be read";
  } else {
    result.decoded = decode_entry(bytes, key_text);
  }
  if (touch && result.decoded.damage.empty() &&
      ::time(nullptr) - file.status.st_mtim.tv_sec > kTouchAfter_s) {
    ::futimens(file.descriptor.get(), nullptr);  // eviction order only: may fail
  }
  return result;
}

std::string write_entry(int directory, const Key& key, const std::string& bytes) {
  const auto problem = [](const std::string& reason) { return "cannot be written: " + reason; };
  const std::string path = entry_path(key);
  if (path.empty()) return problem(std::generic_category().message(EINVAL));
  const Opened shard = open_folder(directory, folder_of(path), true);
  if (!shard.is_open()) return problem(shard.reason());
  const Opened target = open_folder(directory, target_path(key.target), false);
  if (!target.is_open()) return problem(target.reason());
  const int error =
      publish_file(target.descriptor.get(), shard.descriptor.get(), name_of(path), bytes);
  return error == 0 ? "" : problem(std::generic_category().message(error));
}

bool remove_entry(int directory, const std::string& path) {
  const Opened folder = open_folder(directory, folder_of(path), false);
  return folder.is_open() && remove_own_file(folder.descriptor.get(), name_of(path));
}

std::uint64_t sweep_targets(int directory, const std::string& target, Sweep sweep) {
  std::vector<std::string> targets{target};
  if (target.empty()) targets = names_at(directory, std::string(kRoot));
  std::uint64_t freed_bytes = 0;
  for (const std::string& name : targets) {
    const Opened folder = open_folder(directory, target_path(name), false);
    if (folder.is_open()) freed_bytes += sweep_temporary_files(folder.descriptor.get(), sweep);
  }
  return freed_bytes;
}

std::vector<EntryFile> scan_entries(int directory) {
  std::vector<EntryFile> entries;
  for (const std::string& target : names_at(directory, std::string(kRoot))) {
    for (const std::string& shard : names_at(directory, target_path(target)))
      scan_shard(directory, target, target_path(target) + "/" + shard, entries);
  }
  return entries;
}

}  // namespace lacuna::cache
