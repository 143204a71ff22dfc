#include "tests/tools/command.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

namespace lacuna::tests {
namespace {

namespace fs = std::filesystem;

/// In the child: standard streams from and to files, then the command. Does not return.
[[noreturn]] void become_lacuna(const std::vector<std::string>& arguments,
                                const std::map<std::string, std::string>& variables,
                                const std::string& output, const ScratchDirectory& scratch) {
  const auto redirect = [](const std::string& path, int flags, int descriptor) {
    const int file = ::open(path.c_str(), flags, 0600);
    if (file < 0 || ::dup2(file, descriptor) < 0) ::_exit(126);
  };
  redirect(scratch.file("in"), O_RDONLY, STDIN_FILENO);
  redirect(output, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  redirect(scratch.file("err"), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  ::setenv("LACUNA_CACHE_DIR", scratch.file("cache").c_str(), 1);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv = {const_cast<char*>("lacuna")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(LACUNA_BINARY_DIR "/bin/lacuna", argv.data());
  ::_exit(127);
}

/// Not yet waited for and no zombie.
bool is_running(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

/// Whether a process waits for a signal, which it then has blocked, in a thread of its own.
bool is_awaited(pid_t child, int signal) {
  const std::string status = read_bytes("/proc/" + std::to_string(child) + "/status");
  const std::size_t threads = status.find("Threads:\t"), blocked = status.find("SigBlk:");
  if (threads == std::string::npos || blocked == std::string::npos) return false;
  return std::stoi(status.substr(threads + 9)) > 1 &&
         (std::stoull(status.substr(blocked + 7), nullptr, 16) >> (signal - 1) & 1) != 0;
}

/// Whether a process has what tells a verb of a signal.
bool is_listening(pid_t child) {
  std::error_code ignored;
  const fs::path files = "/proc/" + std::to_string(child) + "/fd";
  for (fs::directory_iterator file(files, ignored), end; file != end; file.increment(ignored))
    if (fs::read_symlink(file->path(), ignored) == "anon_inode:[eventfd]") return true;
  return false;
}

CommandResult run_and_meanwhile(const std::vector<std::string>& arguments, const std::string& input,
                                const std::map<std::string, std::string>& variables,
                                const std::string& output,
                                const std::function<void(pid_t)>& meanwhile) {
  const ScratchDirectory scratch;
  scratch.write("in", input);
  const std::string out = output.empty() ? scratch.file("out") : output;
  const pid_t child = ::fork();
  if (child == 0) become_lacuna(arguments, variables, out, scratch);
  meanwhile(child);
  int status = 0;
  ::waitpid(child, &status, 0);
  CommandResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (output.empty()) result.out = read_bytes(out);
  result.err = read_bytes(scratch.file("err"));
  return result;
}

}  // namespace

CommandResult run_lacuna(const std::vector<std::string>& arguments, const std::string& input,
                         const std::map<std::string, std::string>& variables,
                         const std::string& output) {
  const auto nothing = [](pid_t) {};
  return run_and_meanwhile(arguments, input, variables, output, nothing);
}

CommandResult run_lacuna_and_signal(const std::vector<std::string>& arguments, int signal,
                                    std::chrono::nanoseconds delay) {
  return run_and_meanwhile(arguments, "", {}, "", [signal, delay](pid_t child) {
    while (is_running(child) && !is_listening(child))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(delay);
    ::kill(child, signal);
  });
}

CommandResult run_lacuna_and_signal_after(std::chrono::nanoseconds delay,
                                          const std::vector<std::string>& arguments, int signal) {
  return run_and_meanwhile(arguments, "", {}, "", [signal, delay](pid_t child) {
    while (is_running(child) && !is_awaited(child, signal))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(delay);
    ::kill(child, signal);
  });
}

nlohmann::json parse_document(const CommandResult& result) {
  nlohmann::json document = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_TRUE(document.is_object()) << result.out << result.err;
  if (!document.is_object()) return nlohmann::json::object();
  EXPECT_EQ(document.value("version", 0), 1);
  EXPECT_TRUE(document["diagnostics"].is_array());
  return document;
}

std::string without_notes(const std::string& text) {
  const bool noted = text.starts_with("lacuna: no CPU compiler: ");
  return noted ? text.substr(text.find('\n') + 1) : text;
}

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (fs::temp_directory_path() / "lacuna-tools-XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  if (made == nullptr) throw std::runtime_error("cannot make a directory like " + pattern);
  path_ = made;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchDirectory::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(file(name), std::ios::binary) << bytes;
  return file(name);
}

std::vector<std::string> ScratchDirectory::names() const {
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(path_)) {
    all.push_back(entry.path().filename().string());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string source_file(const std::string& name) {
  return std::string(LACUNA_SOURCE_DIR) + "/" + name;
}

}  // namespace lacuna::tests
