#include "tools/common/table.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace lacuna::tools {
namespace {

constexpr std::size_t kColumnGap = 2;

/// Characters on the screen: UTF-8 continuation bytes take no room.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

bool is_number(const std::string& cell) {
  return cell.empty() || std::isdigit(static_cast<unsigned char>(cell.front())) != 0;
}

struct Column {
  std::size_t width = 0;
  bool right = true;  ///< every cell is a number
};

std::vector<Column> measure(const Table& table) {
  std::vector<Column> columns(table.head.size());
  for (std::size_t c = 0; c < table.head.size(); ++c) columns[c].width = width_of(table.head[c]);
  for (const auto& row : table.rows) {
    columns.resize(std::max(columns.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) {
      columns[c].width = std::max(columns[c].width, width_of(row[c]));
      columns[c].right &= is_number(row[c]);
    }
  }
  return columns;
}

std::string print_row(const std::vector<std::string>& row, const std::vector<Column>& columns,
                      const std::string& indent) {
  std::string line = indent;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const std::string padding(columns[c].width - width_of(row[c]), ' ');
    line += columns[c].right ? padding + row[c] : row[c] + padding;
    line.append(kColumnGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string print_number(double value, const char* unit) {
  std::array<char, 48> buffer{};
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::snprintf(buffer.data(), buffer.size(), "%.*f %s", digits, value, unit);
  return buffer.data();
}

}  // namespace

std::string print_table(const Table& table, bool color) {
  const std::vector<Column> columns = measure(table);
  std::string text;
  if (!table.head.empty()) {
    const std::string line = print_row(table.head, columns, table.indent);
    text += color ? "\x1b[1m" + line + "\x1b[0m\n" : line + "\n";
  }
  for (const auto& row : table.rows) text += print_row(row, columns, table.indent) + "\n";
  return text;
}

std::string print_bar(double share) {
  constexpr int kCells = 40;
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * kCells));
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(kCells - full), '.') + "]";
}

std::string print_scientific(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.2e", value);
  return buffer.data();
}

std::string print_bytes(std::uint64_t bytes) {
  constexpr double kKibi = 1024;
  const auto value = static_cast<double>(bytes);
  if (value < kKibi) return std::to_string(bytes) + " B";
  if (value < kKibi * kKibi) return print_number(value / kKibi, "KiB");
  if (value < kKibi * kKibi * kKibi) return print_number(value / (kKibi * kKibi), "MiB");
  return print_number(value / (kKibi * kKibi * kKibi), "GiB");
}

std::string print_time_us(double time_us) {
  if (time_us < 1e3) return print_number(time_us, "us");
  if (time_us < 1e6) return print_number(time_us / 1e3, "ms");
  return print_number(time_us / 1e6, "s");
}

}  // namespace lacuna::tools
