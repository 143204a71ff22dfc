#include "runtime/cuda/device_headers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/emit/emit.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

std::vector<DeviceHeader> read_directory(const std::string& root, std::string& problem) {
  std::vector<DeviceHeader> headers;
  std::error_code failed;
  for (auto it = fs::recursive_directory_iterator(root, failed);
       !failed && it != fs::recursive_directory_iterator(); it.increment(failed)) {
    if (it->path().extension() != ".cuh") continue;
    std::ifstream file(it->path(), std::ios::binary);
    headers.push_back({it->path().lexically_relative(root).generic_string(),
                       {std::istreambuf_iterator<char>(file), {}}});
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
