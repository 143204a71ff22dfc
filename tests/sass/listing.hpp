// Machine code as nvdisasm prints it (`nvdisasm -c`): instructions and where their branches go.
// What a test asks of the assembler's work begins here.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna::sass {

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

struct Instruction {
  std::string guard;              ///< "@!P0", or empty
  std::string opcode;             ///< "HGMMA.64x128x16.F32.BF16"
  std::string operands;           ///< "R24, R180, gdesc[UR24], RZ, !UPT"
  std::size_t target = kNowhere;  ///< of a branch: index of an instruction

  /// Is it `family`, with whatever modifiers? "HGMMA" is "HGMMA.64x128x16.F32.BF16".
  bool is(std::string_view family) const;
  bool has(std::string_view operand) const { return operands.find(operand) != operands.npos; }
  /// The instruction as one line, for messages.
  std::string text() const;
};

/// Numbers of the registers (R0 to R254) that the operands name, in their order. Of the several
/// registers of a wide operand that is the first.
std::vector<int> registers_of(const Instruction& instruction);

/// The code of one kernel.
using Code = std::vector<Instruction>;

struct Kernel {
  std::string name;
  Code code;
};

/// One for each section ".text.NAME", in their order. Lines that are no instruction are skipped.
std::vector<Kernel> parse_listing(std::string_view text);

/// Instructions from `first` to `last`, which is a branch back to `first`.
struct Loop {
  std::size_t first = kNowhere, last = kNowhere;
  bool exists() const { return first != kNowhere; }
};

/// The shortest loop that holds an instruction of each kind.
using IsKind = bool (*)(const Instruction&);
Loop find_loop(const Code& code, std::initializer_list<IsKind> kinds);

/// A way from one instruction to another on which fewest are executed. Indices, both ends among
/// them; empty if there is none.
std::vector<std::size_t> shortest_way(const Code& code, std::size_t from, std::size_t to);

/// What may be executed behind instruction `from`, or before it, with none that `stops` in between.
/// Those that stop are not among them; `from` is if a loop leads back to it. Ascending.
using Predicate = std::function<bool(const Instruction&)>;
std::vector<std::size_t> reached_behind(const Code& code, std::size_t from, const Predicate& stops);
std::vector<std::size_t> reached_before(const Code& code, std::size_t from, const Predicate& stops);

}  // namespace lacuna::sass
