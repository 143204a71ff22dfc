#include "tests/sass/wgmma_instructions.hpp"

namespace lacuna::sass {
namespace {

constexpr int kFragmentRegisters = 4;

std::set<int> row_of_registers(int first, int count) {
  std::set<int> registers;
  for (int n = 0; n < count; ++n) registers.insert(first + n);
  return registers;
}

}  // namespace

int columns_of(const Instruction& product) {
  const std::size_t columns = product.opcode.find('x');
  return columns == product.opcode.npos ? 0 : std::stoi(product.opcode.substr(columns + 1));
}

std::set<int> accumulators_of(const Instruction& product) {
  const std::vector<int> named = registers_of(product);
  if (named.empty()) return {};
  return row_of_registers(named[0], columns_of(product) / 2);
}

std::set<int> fragments_of(const Instruction& product) {
  // "R88, R180, gdesc[UR20], ...": the second operand.
  const std::vector<int> named = registers_of(product);
  const std::size_t second = product.operands.find(", ") + 2;
  if (product.operands.compare(second, 1, "R") != 0 || named.size() < 2) return {};
  return row_of_registers(named[1], kFragmentRegisters);
}

std::set<int> product_registers(const Instruction& product) {
  std::set<int> registers = accumulators_of(product);
  registers.merge(fragments_of(product));
  return registers;
}

}  // namespace lacuna::sass
