// Keys and values of e4m3: which ops read codes, and which read 16-bit rows that an op before them
// has made of these.
#pragma once

#include "compiler/ir/program.hpp"

namespace lacuna {

/// Is the value k or v as the caller passes it, and of e4m3?
bool is_coded(const Program& program, int value);

/// Do kernels before attend read codes, other than those that copy them, as means or in another
/// order?
bool prepares_codes(const Program& program);

/// Does attend itself read codes? Means, tokens in another order and integers are made before it.
bool attends_to_codes(const Program& program);

}  // namespace lacuna
