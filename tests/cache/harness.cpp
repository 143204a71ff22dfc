#include "tests/cache/harness.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lacuna::cache {

namespace fs = std::filesystem;

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "lacuna-cache-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) std::abort();
  path_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Scratch::path(const std::string& name) const {
  return name.empty() ? path_ : path_ + "/" + name;
}

Key key_number(int number) {
  return make_key({.source_sha256 = sha256_hex("source " + std::to_string(number)),
                   .options = {"--std=c++17", "-default-device"},
                   .target = "sm_90a"});
}

Entry kernel_for(const Key& key, std::size_t padding_bytes) {
  std::string cubin(64, '\0');
  std::memcpy(cubin.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  cubin[18] = static_cast<char>(190);
  cubin += "kernel of " + key.text + std::string(padding_bytes, 'x');
  return {key.text, R"({"registers": 168})", "ptxas info: 168 registers", {cubin, cubin + "y"}};
}

bool is_kernel_of(const Entry& entry, const Key& key) {
  return entry.key_text == key.text && !entry.cubins.empty() &&
         entry.cubins[0].compare(64, key.text.size() + 10, "kernel of " + key.text) == 0;
}

StoreOptions options_in(const Scratch& scratch, std::vector<std::string>* warnings) {
  StoreOptions options;
  options.directory = scratch.path("cache");
  options.lock_directory = scratch.path("locks");
  options.launch_grace = std::chrono::hours(1);  // however slow the machine
  if (warnings) {
    options.warn = [warnings](const std::string& message) { warnings->push_back(message); };
  }
  return options;
}

std::string file_of(const Scratch& scratch, const Key& key) {
  return scratch.path("cache/v1/" + key.target + "/" + key.sha256.substr(0, 2) + "/" + key.sha256 +
                      ".lacuna");
}

std::string read_whole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_whole(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

void age(const std::string& path, int hours) {
  const struct timespec then[2] = {{::time(nullptr) - hours * 3600L, 0},
                                   {::time(nullptr) - hours * 3600L, 0}};
  if (::utimensat(AT_FDCWD, path.c_str(), then, AT_SYMLINK_NOFOLLOW) != 0) std::abort();
}

std::vector<std::string> files_below(const std::string& directory, const std::string& part) {
  std::vector<std::string> found;
  std::error_code absent;
  for (const auto& item : fs::recursive_directory_iterator(directory, absent)) {
    if (item.path().filename().string().find(part) != std::string::npos) {
      found.push_back(item.path().string());
    }
  }
  return found;
}

void count_up(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, "+", 1) != 1) std::abort();
  ::close(file);
}

int count_of(const std::string& path) { return static_cast<int>(read_whole(path).size()); }

pid_t start_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int wait_for_child(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "child: expected %s\n", what);
  ::_exit(1);
}

bool mount_private_tmpfs(const std::string& path, const char* options) {
  fs::create_directories(path);
  fs::permissions(path, fs::perms::owner_all);
  const std::string all = std::string("mode=0700,") + options;
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", 0, all.c_str()) == 0;
}

}  // namespace lacuna::cache
