// What earlier versions wrote: one file for all variants of a hardware, tuning/<hardware>.jsonl. It
// is turned into segments by whoever reads first, and kept as <hardware>.jsonl.<...>.imported.
#pragma once

#include <string>
#include <vector>

#include "cache/tuning/table.hpp"

namespace lacuna::cache {

/// Turns the single file `path` + ".jsonl" into segments below the folder `path`, once. Where that
/// cannot be written its records go into `table`.
void take_single_file(int root, const std::string& directory, const std::string& path,
                      TuningTable& table, std::vector<std::string>& warnings);

/// "box-2" of "box-2.jsonl"; "" if the name is not that of such a file.
std::string hardware_of_single_file(const std::string& name);

}  // namespace lacuna::cache
