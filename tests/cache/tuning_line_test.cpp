// Lines of the tuning database: what is written is read, and no text does harm.
#include <pthread.h>

#include "cache/tuning/line.hpp"
#include "cache/tuning/table.hpp"
#include "tests/cache/tuning_harness.hpp"

namespace lacuna::cache {
namespace {

TEST(TuningLine, EveryFieldSurvives) {
  TuningRecord record = record_number(3);
  record.status = TuningStatus::kHang;
  record.best = "space";
  record.budget_s = 60;
  record.detail = "no \"answer\"\nat all";
  record.driver = "CUDA 13.0";
  record.inputs = "tau=0.5";
  record.shape = "b=1";
  const std::string line = print_tuning_line(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_tuning_line(line), record);
}

TEST(TuningLine, WhatIsNoRecordIsRefused) {
  const std::string good = print_tuning_line(record_number(1));
  EXPECT_TRUE(parse_tuning_line(good));
  EXPECT_FALSE(parse_tuning_line(good.substr(0, good.size() - 1))) << "cut";
  EXPECT_FALSE(parse_tuning_line("[]"));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    return parse_tuning_line(line);
  };
  EXPECT_FALSE(with("\"tuning\":1", "\"tuning\":2")) << "another version";
  EXPECT_FALSE(with("machine-1", "../machine")) << "not a file name";
  EXPECT_FALSE(with("\"abc\"", "\".abc\"")) << "not a file name";
  EXPECT_FALSE(with("\"ok\"", "\"fine\""));
  EXPECT_FALSE(with("101.0", "-1")) << "a time before its beginning";
  EXPECT_FALSE(with("101.0", "0")) << "ok, yet no time";
  EXPECT_FALSE(with("\"variant\"", "\"other\"")) << "a field is missing";
}

/// A thread of a host may have little.
bool is_record_on_small_stack(const std::string& line) {
  constexpr std::size_t kStack_bytes = std::size_t{1} << 18;
  struct Question {
    const std::string& line;
    bool answer;
  } question{line, false};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack_bytes);
  pthread_t thread{};
  const auto ask = [](void* asked) -> void* {
    auto& [text, answer] = *static_cast<Question*>(asked);
    answer = parse_tuning_line(text).has_value();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, ask, &question), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return question.answer;
}

TEST(TuningLine, NoDepthOfNestingMatters) {
  const auto nested = [](const std::string& open, const std::string& close, std::size_t depth) {
    std::string text;
    for (std::size_t n = 0; n < depth; ++n) text += open;
    text += "1";
    for (std::size_t n = 0; n < depth; ++n) text += close;
    return text;
  };
  std::string line = print_tuning_line(record_number(1));
  line.insert(1, "\"later\":" + nested("[", "]", 15'000) +
                     ",\"else\":" + nested("{\"a\":", "}", 5'000) + ",");
  EXPECT_EQ(parse_tuning_line(line), record_number(1)) << "members of later versions";
  for (const std::string& text :
       {nested("[", "]", 200'000), nested("[", "", 200'000), nested("{\"a\":", "}", 200'000),
        "{\"tuning\":" + nested("[", "]", 200'000) + "}", nested("[", "]", 30'000),
        "{\"tuning\":" + nested("[", "]", 30'000) + "}"})
    EXPECT_FALSE(is_record_on_small_stack(text));
}

TEST(TuningLine, LongLinesAreNoRecords) {
  TuningRecord record = record_number(1);
  record.detail = std::string(kLongestTuningLine - print_tuning_line(record).size() - 12, 'x');
  EXPECT_TRUE(parse_tuning_line(print_tuning_line(record)));
  record.detail += "y";
  EXPECT_FALSE(parse_tuning_line(print_tuning_line(record)));
  const Scratch scratch;
  EXPECT_EQ(database_in(scratch).append({record}),
            "a tuning record of 65601 bytes: expected 65536 at most");
}

TEST(TuningText, WhatIsNoRecordIsNamedOnceForTheFile) {
  const std::string good = print_tuning_line(record_number(1)) + "\n";
  const TuningRecords one = parse_tuning(good + "a note\n", "f");
  EXPECT_EQ(one.records, std::vector{record_number(1)});
  EXPECT_EQ(one.warnings,
            std::vector<std::string>{"f:2: not a tuning record of this version, skipped"});
  const TuningRecords many = parse_tuning("a\n" + good + "b\n\nc\n", "f");
  EXPECT_EQ(many.records.size(), 1u);
  EXPECT_EQ(many.warnings,
            std::vector<std::string>{"f:1: not a tuning record of this version, skipped, as are 2 "
                                     "of the lines after it"});
}

}  // namespace
}  // namespace lacuna::cache
