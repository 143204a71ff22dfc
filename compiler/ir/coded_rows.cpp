#include "compiler/ir/coded_rows.hpp"

namespace lacuna {

bool is_coded(const Program& program, int value) {
  if (program.kv != KvFormat::kE4M3 || value < 0) return false;
  const auto* input = std::get_if<Input>(&definition_of(program, value).op);
  return input != nullptr && (input->name == "k" || input->name == "v");
}

bool prepares_codes(const Program& program) {
  return program.kv == KvFormat::kE4M3 && !makes_keys(program);
}

bool attends_to_codes(const Program& program) {
  const Attend& attend = attend_of(program);
  return is_coded(program, attend.k) || is_coded(program, attend.v);
}

}  // namespace lacuna
