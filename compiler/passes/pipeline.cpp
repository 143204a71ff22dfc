// The pipeline, and the manager that runs it.
#include <algorithm>
#include <vector>

#include "compiler/passes/pass.hpp"

namespace lacuna {
namespace {

constexpr Pass kPipeline[] = {
    // First: a parameterless `1 < 2` is no reason for later passes to keep anything.
    {"fold_expressions", fold_expressions},
    // After folding, when trivial expressions show; before anything is derived from them.
    {"drop_trivial", drop_trivial},
    // After the expressions that read nothing any more are gone; before work is done on dead ops.
    {"eliminate_dead_ops", eliminate_dead_ops},
    // Needs the final masks.
    {"classify_tiles", classify_tiles},
    // Knows what the classifiers leave open, and who makes the lists that are left.
    {"ask_pairs", ask_pairs},
    // Before any choice is made: what the target cannot do has no tiles to choose.
    {"legalize_for_target", legalize_for_target},
    // Knows whether there is a gate, whose meaning depends on the tiles.
    {"choose_tiles", choose_tiles},
    // Last: the budget of a block follows from its tiles.
    {"place_smem", place_smem},
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Longest common subsequence; programs have tens of lines.
std::string diff_lines(const std::vector<std::string_view>& a,
                       const std::vector<std::string_view>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t j = b.size(); j-- > 0;) {
      common[i][j] =
          a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string text;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (i < a.size() && (j == b.size() || common[i + 1][j] >= common[i][j + 1])) {
      text += "-" + std::string(a[i++]) + "\n";
    } else {
      text += "+" + std::string(b[j++]) + "\n";
    }
  }
  return text;
}

/// A broken rule after a pass is a mistake of that pass, not of the user; say whose.
void verify_after(std::string_view pass, const Program& program, Diagnostics& diagnostics) {
  Diagnostics found;
  verify_program(program, found);
  for (Diagnostic& d : found.items) {
    d.notes.push_back("internal error: pass " + std::string(pass) + " broke this rule");
    diagnostics.add(std::move(d));
  }
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : kPipeline) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

Program run_passes(Program program, std::span<const Pass> passes, const PassContext& context,
                   const PassObserver& observer) {
  verify_program(program, context.diagnostics);
  for (const Pass& pass : passes) {
    if (context.diagnostics.has_errors()) break;
    if (observer) {
      Program before = program;
      program = pass.run(std::move(program), context);
      observer(pass.name, before, program);
    } else {
      program = pass.run(std::move(program), context);
    }
    verify_after(pass.name, program, context.diagnostics);
  }
  return program;
}

std::string describe_pass(std::string_view pass, const Program& before, const Program& after) {
  const std::string a = print_program(before), b = print_program(after);
  if (a == b) return std::string(pass) + " (unchanged)\n";
  return std::string(pass) + "\n" + diff_lines(lines_of(a), lines_of(b));
}

Diagnostic at_field(const SpecDocument& document, std::string_view pointer, Code code,
                    Severity severity, std::string message) {
  std::string place(pointer);
  while (!place.empty() && !document.spans.contains(place)) {
    place.resize(place.find_last_of('/'));
  }
  // A field that is not in the spec has no place, and pointing at the whole file would not help.
  const auto span = place.empty() ? document.spans.end() : document.spans.find(place);
  return {code,
          severity,
          std::move(message),
          std::move(place),
          span == document.spans.end() ? Span{} : span->second,
          {},
          {}};
}

}  // namespace lacuna
