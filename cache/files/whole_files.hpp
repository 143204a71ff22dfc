// Files that are complete whenever they are visible: written under a temporary name, flushed to the
// disk, renamed. A writer that dies leaves its temporary file, which is swept later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna::cache {

/// Reads a file to its end, `most_bytes` at most. Returns an errno value.
int read_file(int file, std::size_t most_bytes, std::string& bytes);

/// Writes `name` in `folder`, by way of a temporary file in `temporary_folder` on the same file
/// system. Returns an errno value; after a failure nothing is left behind. Raises no signal.
int publish_file(int temporary_folder, int folder, const std::string& name,
                 const std::string& bytes);

/// 0 if a file can be made in the folder, else an errno value.
int try_to_write(int folder);

/// 16 hexadecimal digits that nobody else has.
std::string random_digits();

/// Names in a folder, in no particular order: with `hidden`, those that begin with a dot, else the
/// others.
std::vector<std::string> names_in(int folder, bool hidden);

/// Removes a file if it belongs to this user.
bool remove_own_file(int folder, const std::string& name);

enum class Sweep : std::uint8_t {
  kAbandoned,  ///< not written to for an hour, by another host for a day: their writers are gone
  kAll,
};
/// Removes temporary files of a folder; returns the bytes freed.
std::uint64_t sweep_temporary_files(int folder, Sweep sweep);

}  // namespace lacuna::cache
