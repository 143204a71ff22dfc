#include <limits>
#include <optional>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan_values.hpp"
#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {
namespace {

bool is_inside(const Span& span, std::string_view text) {
  if (span.line < 1 || span.column < 1 || span.length < 0) return false;
  std::size_t start = 0;
  for (int line = 1; line < span.line; ++line) {
    start = text.find('\n', start);
    if (start == std::string_view::npos) return false;
    ++start;
  }
  const std::size_t end = start + static_cast<std::size_t>(span.column - 1 + span.length);
  return end <= text.size();
}

/// What is wrong with a text has a place in it; what is wrong with a plan need not have one.
void check_diagnostics(const Diagnostics& diagnostics, const SourceText& source,
                       bool has_places = true) {
  for (const Diagnostic& d : diagnostics.items)
    require(is_inside(d.span, source.text) || (!has_places && d.span == Span{}),
            "a span outside of the text: " + d.message);
  require(render(diagnostics, source).empty() == diagnostics.items.empty(), "nothing is rendered");
  render(diagnostics, source, true);
  render_json(diagnostics, source);
}

/// Launch values of ordinary and of absurd shapes.
void check_launch(const LaunchProgram& launch) {
  print_launch_program(launch);
  std::vector<std::int32_t> values(launch.values.size());
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const LaunchShape& shape : {LaunchShape{1, 2, 1, 300, 1000}, LaunchShape{2, 4, 4, 1, 4096},
                                   LaunchShape{kMost, kMost, kMost, kMost, kMost}})
    evaluate_launch_values(launch, shape, values.data());
}

void lower(const SpecDocument& document, const Target& target, int head_dim, DType dtype) {
  Diagnostics diagnostics;
  const Plan plan =
      make_plan(document, {.head_dim = head_dim, .dtype = dtype}, target, diagnostics);
  check_diagnostics(diagnostics, document.source, false);
  if (diagnostics.has_errors()) return;
  print_plan(plan);
  Diagnostics rules;
  verify_program(plan.program, rules);
  require(!rules.has_errors(), "the passes broke a rule: " + render(rules, document.source));
  check_launch(emit_launch_program(plan));
  if (target.kind != TargetKind::kCuda) return;
  const CudaSource source = emit_cuda(plan, document);
  require(!source.kernels.empty(), "no kernel");
  require(source_text(source).find('\0') == std::string::npos, "a NUL in the source");
}

/// A document without errors, or nothing.
std::optional<SpecDocument> read_twice(std::string_view text) {
  const SourceText source{"fuzz.json", std::string(text)};
  Diagnostics diagnostics;
  SpecDocument document = read_spec(source, diagnostics);
  check_diagnostics(diagnostics, source);
  if (diagnostics.has_errors()) return std::nullopt;
  Diagnostics again;
  const SpecDocument copy = read_spec({"copy.json", print_spec(document.spec)}, again);
  require(!again.has_errors(), "not read again: " + render(again, copy.source));
  require(copy.spec == document.spec, "read again as another: " + copy.source.text);
  return document;
}

}  // namespace

bool read_and_print_spec(std::string_view text) { return read_twice(text).has_value(); }

bool run_spec(std::string_view text) {
  const std::optional<SpecDocument> document = read_twice(text);
  if (!document) return false;
  const auto target = [](const char* name) { return find_target(name).value(); };
  for (const SpecDocument& attend : branch_documents(*document)) {
    lower(attend, target("sm_80"), 64, DType::kF16);
    lower(attend, target("sm_90a"), 128, DType::kBF16);
    lower(attend, target("sm_120a"), 256, DType::kBF16);
    lower(attend, target("cpu"), 64, DType::kF32);
  }
  return true;
}

}  // namespace lacuna::fuzz
