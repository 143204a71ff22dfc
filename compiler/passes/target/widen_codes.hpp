// Keys and values of e4m3 for kernels that cannot read codes.
#pragma once

#include "compiler/ir/program.hpp"

namespace lacuna {

/// Has something to read codes that loads tiles of 16-bit keys, or attend one of k and v alone?
bool needs_wide_rows(const Program& program);

/// The program with k and v of 16 bits, which are made of the codes first.
Program widen_codes(const Program& program);

}  // namespace lacuna
