// Tables, bars and numbers for people, to the character.
#include "tools/common/table.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "tools/tune/progress.hpp"

namespace lacuna::tests {
namespace {

using tools::print_bar;
using tools::print_bytes;
using tools::print_table;
using tools::print_time_us;

TEST(Table, NumbersStandRightAndWordsLeft) {
  const tools::Table table{.head = {"name", "us", "note"},
                           .rows = {{"a", "7.5", "tiles × keys"}, {"longer", "12", ""}}};
  EXPECT_EQ(print_table(table, false),
            "  name     us  note\n"
            "  a       7.5  tiles × keys\n"
            "  longer   12\n");
  EXPECT_TRUE(print_table(table, true).starts_with("\x1b[1m  name     us  note\x1b[0m\n"));
}

TEST(Table, WithoutAHeadItHasOnlyRows) {
  const tools::Table table{.head = {}, .rows = {{"×", "|"}, {"ab", "|"}}, .indent = ""};
  EXPECT_EQ(print_table(table, true), "×   |\nab  |\n") << "a letter of two bytes is one wide";
}

TEST(Table, RowsMayHaveMoreOrFewerCellsThanTheHead) {
  const tools::Table table{.head = {"name", "us"}, .rows = {{"a", "7", "left dense"}, {"b"}}};
  EXPECT_EQ(print_table(table, false),
            "  name  us\n"
            "  a      7  left dense\n"
            "  b\n");
}

TEST(Bar, HasFortyCellsAtMost) {
  const auto bar = [](std::size_t full) {
    return "[" + std::string(full, '#') + std::string(40 - full, '.') + "]";
  };
  for (const auto& [share, full] : {std::pair{0.0, 0u},
                                    {0.5, 20u},
                                    {0.99, 40u},
                                    {1.0, 40u},
                                    {-1.0, 0u},
                                    {7.0, 40u},
                                    {0.0124, 0u},
                                    {0.0126, 1u}})
    EXPECT_EQ(print_bar(share), bar(full)) << share;
}

TEST(Numbers, HaveThreeDigitsAndTheUnitThatFits) {
  for (const auto& [time_us, text] : {std::pair{0.5, "0.50 us"},
                                      {9.0, "9.00 us"},
                                      {10.0, "10.0 us"},
                                      {99.0, "99.0 us"},
                                      {100.0, "100 us"},
                                      {999.0, "999 us"},
                                      {1e3, "1.00 ms"},
                                      {1234.5, "1.23 ms"},
                                      {5e5, "500 ms"},
                                      {1e6, "1.00 s"},
                                      {6e7, "60.0 s"}})
    EXPECT_EQ(print_time_us(time_us), text);
  constexpr std::uint64_t kKibi = 1024;
  for (const auto& [bytes, text] : {std::pair{std::uint64_t{0}, "0 B"},
                                    {kKibi - 1, "1023 B"},
                                    {kKibi, "1.00 KiB"},
                                    {96 * kKibi, "96.0 KiB"},
                                    {500 * kKibi, "500 KiB"},
                                    {kKibi * kKibi, "1.00 MiB"},
                                    {3 * kKibi * kKibi / 2, "1.50 MiB"},
                                    {kKibi * kKibi * kKibi, "1.00 GiB"},
                                    {5 * kKibi * kKibi * kKibi, "5.00 GiB"}})
    EXPECT_EQ(print_bytes(bytes), text);
  EXPECT_EQ(tools::print_scientific(0.0234), "2.34e-02");
}

TEST(ProgressLine, SaysHowFarAndTheBest) {
  const std::string half = print_bar(0.5);
  EXPECT_EQ(tools::progress_line("bsfa", 2, 4, ""), "bsfa " + half + " 2 of 4");
  EXPECT_EQ(tools::progress_line("bsfa", 2, 4, "7 us"), "bsfa " + half + " 2 of 4, best 7 us");
  EXPECT_EQ(tools::progress_line("bsfa", 0, 0, ""), "bsfa " + print_bar(1) + " 0 of 0");
}

}  // namespace
}  // namespace lacuna::tests
