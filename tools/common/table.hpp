// A table of text for people: columns as wide as their widest cell, two spaces between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna::tools {

struct Table {
  std::vector<std::string> head;  ///< empty: no head line
  std::vector<std::vector<std::string>> rows;
  std::string indent = "  ";
};

/// One line for each row; the head is bold on a terminal. Columns of numbers are right-aligned.
std::string print_table(const Table& table, bool color);

/// "[######..............]" of 40 cells; `share` is clamped to 0 ... 1.
std::string print_bar(double share);

/// "2.34e-02"
std::string print_scientific(double value);

/// "96.0 KiB", "1.5 MiB", "640 B".
std::string print_bytes(std::uint64_t bytes);

/// 1234.5 us -> "1.23 ms".
std::string print_time_us(double time_us);

}  // namespace lacuna::tools
