#include "runtime/cuda/device_headers.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/emit/emit.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// Far above what headers need: what is beyond is not the folder that was meant.
constexpr int kMostEntries = 10000;
constexpr std::uintmax_t kMostHeaderBytes = 1 << 20;

/// "" or why the text of a header cannot be had.
std::string read_header(const fs::path& path, std::string& text) {
  std::error_code failed;
  const bool is_file = fs::is_regular_file(path, failed);
  if (!is_file || fs::file_size(path, failed) > kMostHeaderBytes)
    return path.string() + " is no file of at most 1 MiB";
  std::ifstream file(path, std::ios::binary);
  text.assign(std::istreambuf_iterator<char>(file), {});
  return file.is_open() && !file.bad() ? "" : path.string() + " cannot be read";
}

std::vector<DeviceHeader> read_directory(const std::string& root, std::string& problem) {
  std::vector<DeviceHeader> headers;
  std::error_code failed;
  int entries = 0;
  for (auto it = fs::recursive_directory_iterator(root, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    if (++entries > kMostEntries) {
      problem = "more than " + std::to_string(kMostEntries) + " files in it";
      return {};
    }
    if (it->path().extension() != ".cuh") continue;
    DeviceHeader header{it->path().lexically_relative(root).generic_string(), ""};
    problem = read_header(it->path(), header.text);
    if (!problem.empty()) return {};
    headers.push_back(std::move(header));
  }
  if (failed) {
    problem = failed.message();
    return {};
  }
  if (headers.empty()) problem = "no .cuh file in it";
  return headers;
}

}  // namespace

std::vector<DeviceHeader> device_headers(const std::string& template_path,
                                         Diagnostics& diagnostics) {
  std::vector<DeviceHeader> headers;
  if (template_path.empty()) {
    for (const EmbeddedHeader& header : embedded_headers()) {
      headers.push_back({header.name, header.text});
    }
  } else {
    std::string problem;
    headers = read_directory(template_path, problem);
    if (!problem.empty()) {
      Diagnostic d;
      d.code = Code::kTemplatePath;
      d.message = "template path: expected a directory with .cuh headers, got " + template_path +
                  " (" + problem + ")";
      diagnostics.add(std::move(d));
    }
  }
  std::sort(headers.begin(), headers.end(),
            [](const DeviceHeader& a, const DeviceHeader& b) { return a.name < b.name; });
  return headers;
}

}  // namespace lacuna
