// What the tests of the kernel store share: scratch directories, kernels that know their key, and
// child processes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "cache/store.hpp"

namespace lacuna::cache {

/// A new private directory, removed with all its contents at the end.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path(const std::string& name = "") const;

 private:
  std::string path_;
};

Key key_number(int number);

/// Two "kernels": each an ELF header for a GPU, then the key it was built from, then padding.
Entry kernel_for(const Key& key, std::size_t padding_bytes = 200);

/// The property all tests defend: never a wrong kernel.
bool is_kernel_of(const Entry& entry, const Key& key);

/// Options with all state below `scratch`; warnings are appended to `warnings` if given.
StoreOptions options_in(const Scratch& scratch, std::vector<std::string>* warnings = nullptr);

/// Absolute path of a key's entry in a store made with options_in(scratch).
std::string file_of(const Scratch& scratch, const Key& key);

std::string read_whole(const std::string& path);
void write_whole(const std::string& path, const std::string& bytes);
bool exists(const std::string& path);  ///< symbolic links are not followed
void age(const std::string& path, int hours);

/// All files below a directory whose name contains `part`.
std::vector<std::string> files_below(const std::string& directory, const std::string& part);

/// Appends a byte to a file: a counter that processes share. The count is the file's size.
void count_up(const std::string& path);
int count_of(const std::string& path);

/// Runs `body` in a child process; its result is the exit status. Children must not use GoogleTest.
pid_t start_child(const std::function<int()>& body);
/// The exit status, or 128 + the signal that ended the child.
int wait_for_child(pid_t child);

/// In a child: complain and end with status 1 unless `condition`.
void require(bool condition, const char* what);

/// Exit status of a child that cannot do its part on this machine; the reason is on stderr.
inline constexpr int kSkipped = 77;

/// In a child: a file system of its own at `path`, `options` as in "size=64k". False: not allowed.
bool mount_private_tmpfs(const std::string& path, const char* options);

}  // namespace lacuna::cache
