#include "tests/sass/nvdisasm.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace lacuna::sass {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places() {
  if (const char* named = std::getenv("LACUNA_NVDISASM")) return {named};
  std::vector<fs::path> paths = {
      LACUNA_SOURCE_DIR "/build/wheels/nvidia/cu13/bin/nvdisasm",
      "/usr/local/cuda/bin/nvdisasm",
  };
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    paths.push_back(fs::path(folder) / "nvdisasm");
  return paths;
}

/// A file with this content, as long as the object lives.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    std::string pattern = (fs::temp_directory_path() / "lacuna-sass-XXXXXX").string();
    const int handle = mkstemp(pattern.data());
    if (handle < 0) return;
    close(handle);
    path_ = pattern;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() {
    if (!path_.empty()) std::remove(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string find_nvdisasm(std::string& reason) {
  for (const fs::path& path : places()) {
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  reason =
      "no nvdisasm: `tools/start test` installs it, or install the Python wheel "
      "nvidia-cuda-nvdisasm and name the program in LACUNA_NVDISASM";
  return "";
}

std::string disassemble(const std::string& nvdisasm, const std::string& cubin) {
  const TemporaryFile file(cubin);
  const std::string command = "'" + nvdisasm + "' -c '" + file.path() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::string text;
  if (output == nullptr) return text;
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), output.get()))
    text.append(buffer.data(), got);
  return text;
}

}  // namespace lacuna::sass
