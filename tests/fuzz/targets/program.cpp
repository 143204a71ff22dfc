#include "compiler/ir/program.hpp"

#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {

bool run_program(std::string_view text) {
  const SourceText source{"fuzz.ir", std::string(text)};
  Diagnostics diagnostics;
  const Program program = parse_program(source, diagnostics);
  render(diagnostics, source);
  if (diagnostics.has_errors()) return false;
  const std::string printed = print_program(program);
  Diagnostics again;
  const Program copy = parse_program({"printed.ir", printed}, again);
  require(!again.has_errors(), "not read again: " + render(again, {"printed.ir", printed}));
  require(copy == program, "read again as another: " + printed);
  Diagnostics rules;
  verify_program(program, rules);
  render(rules, source);
  return true;
}

}  // namespace lacuna::fuzz
