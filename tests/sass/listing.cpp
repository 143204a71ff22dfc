#include "tests/sass/listing.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>
#include <map>

namespace lacuna::sass {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The first word of `text`, which loses it.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text = trimmed(text.substr(end));
  return word;
}

/// ".L_x_2" of "`(.L_x_2)"; empty: no label.
std::string_view label_in(std::string_view operands) {
  const std::size_t begin = operands.find("`(");
  const std::size_t end = operands.find(')', begin);
  if (begin == operands.npos || end == operands.npos) return {};
  return operands.substr(begin + 2, end - begin - 2);
}

/// A kernel under construction: where labels stand, and who named one.
struct Draft {
  Kernel kernel;
  std::map<std::string, std::size_t, std::less<>> labels;
  std::vector<std::string> wanted;  ///< one for each instruction

  /// "/*0050*/  @!P0 BRA `(.L_x_1) ;"
  void add_instruction(std::string_view line) {
    std::string_view rest = trimmed(line.substr(line.find("*/") + 2));
    rest = trimmed(rest.substr(0, rest.find(';')));
    Instruction instruction;
    if (rest.starts_with('@')) instruction.guard = take_word(rest);
    instruction.opcode = take_word(rest);
    instruction.operands = rest;
    // BSSY names the place where threads meet again, which is no jump.
    const bool jumps = instruction.is("BRA");
    wanted.emplace_back(jumps ? label_in(rest) : std::string_view());
    kernel.code.push_back(std::move(instruction));
  }

  Kernel finished() {
    for (std::size_t n = 0; n < kernel.code.size(); ++n) {
      const auto label = labels.find(wanted[n]);
      if (label != labels.end()) kernel.code[n].target = label->second;
    }
    return std::move(kernel);
  }
};

/// Where execution may go on behind instruction n.
std::vector<std::size_t> successors(const Code& code, std::size_t n) {
  std::vector<std::size_t> result;
  const Instruction& instruction = code[n];
  if (instruction.target != kNowhere) result.push_back(instruction.target);
  const bool always =
      instruction.guard.empty() && (instruction.opcode == "BRA" || instruction.is("EXIT"));
  if (!always && n + 1 < code.size()) result.push_back(n + 1);
  return result;
}

/// Where execution may go, by instruction: on or, if `backwards`, back.
std::vector<std::vector<std::size_t>> steps_of(const Code& code, bool backwards) {
  std::vector<std::vector<std::size_t>> steps(code.size());
  for (std::size_t n = 0; n < code.size(); ++n) {
    for (const std::size_t next : successors(code, n)) {
      if (next < code.size()) steps[backwards ? next : n].push_back(backwards ? n : next);
    }
  }
  return steps;
}

std::vector<std::size_t> reached(const Code& code, std::size_t from, const Predicate& stops,
                                 bool backwards) {
  const auto steps = steps_of(code, backwards);
  std::vector<char> is_reached(code.size());
  std::vector<std::size_t> open = {from}, found;
  while (!open.empty()) {
    const std::size_t n = open.back();
    open.pop_back();
    for (const std::size_t next : steps[n]) {
      if (is_reached[next] || stops(code[next])) continue;
      is_reached[next] = 1;
      found.push_back(next);
      open.push_back(next);
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

bool Instruction::is(std::string_view family) const {
  return opcode.starts_with(family) &&
         (opcode.size() == family.size() || opcode[family.size()] == '.');
}

std::string Instruction::text() const {
  return guard + (guard.empty() ? "" : " ") + opcode + " " + operands;
}

std::vector<int> registers_of(const Instruction& instruction) {
  std::vector<int> numbers;
  const std::string& text = instruction.operands;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {
    if (text[n] != 'R' || (n > 0 && is_word(text[n - 1]))) continue;
    int number = 0;
    const auto [end, failed] =
        std::from_chars(text.data() + n + 1, text.data() + text.size(), number);
    if (failed == std::errc()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<Kernel> parse_listing(std::string_view text) {
  std::vector<Draft> drafts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    constexpr std::string_view kSection = ".text.";
    if (line.starts_with(kSection) && line.ends_with(':')) {
      drafts.emplace_back().kernel.name =
          line.substr(kSection.size(), line.size() - kSection.size() - 1);
    }
    if (drafts.empty()) continue;
    if (line.starts_with(".L_") && line.ends_with(':'))
      drafts.back().labels.emplace(line.substr(0, line.size() - 1),
                                   drafts.back().kernel.code.size());
    if (line.starts_with("/*") && line.find(';') != line.npos) drafts.back().add_instruction(line);
  }
  std::vector<Kernel> kernels;
  for (Draft& draft : drafts) kernels.push_back(draft.finished());
  return kernels;
}

Loop find_loop(const Code& code, std::initializer_list<IsKind> kinds) {
  Loop found;
  for (std::size_t last = 0; last < code.size(); ++last) {
    const std::size_t first = code[last].target;
    if (first == kNowhere || first > last) continue;
    if (found.exists() && last - first >= found.last - found.first) continue;
    const auto begin = code.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = code.begin() + static_cast<std::ptrdiff_t>(last);
    if (std::ranges::all_of(kinds, [&](IsKind kind) { return std::any_of(begin, end, kind); }))
      found = {first, last};
  }
  return found;
}

std::vector<std::size_t> shortest_way(const Code& code, std::size_t from, std::size_t to) {
  std::vector<std::size_t> before(code.size(), kNowhere);
  std::deque<std::size_t> open = {from};
  before[from] = from;
  while (!open.empty() && before[to] == kNowhere) {
    const std::size_t n = open.front();
    open.pop_front();
    for (const std::size_t next : successors(code, n)) {
      if (before[next] != kNowhere) continue;
      before[next] = n;
      open.push_back(next);
    }
  }
  if (before[to] == kNowhere) return {};
  std::vector<std::size_t> way = {to};
  while (way.back() != from) way.push_back(before[way.back()]);
  std::ranges::reverse(way);
  return way;
}

std::vector<std::size_t> reached_behind(const Code& code, std::size_t from,
                                        const Predicate& stops) {
  return reached(code, from, stops, false);
}

std::vector<std::size_t> reached_before(const Code& code, std::size_t from,
                                        const Predicate& stops) {
  return reached(code, from, stops, true);
}

}  // namespace lacuna::sass
