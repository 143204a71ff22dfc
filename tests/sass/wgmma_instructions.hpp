// What the instructions of the wgmma family are for.
#pragma once

#include <set>

#include "tests/sass/listing.hpp"

namespace lacuna::sass {

/// An empty one, of nothing but RZ, only commits.
inline bool is_empty_product(const Instruction& i) {
  return i.is("HGMMA") && i.operands.starts_with("RZ");
}
inline bool is_product(const Instruction& i) { return i.is("HGMMA") && !is_empty_product(i); }
inline bool is_value_product(const Instruction& i) { return is_product(i) && i.has(".tnspB"); }
inline bool is_key_product(const Instruction& i) { return is_product(i) && !i.has(".tnspB"); }
inline bool commits(const Instruction& i) { return i.is("HGMMA") && i.has("gsb0"); }
inline bool is_arrive(const Instruction& i) { return i.is("WARPGROUP.ARRIVE"); }
inline bool is_wait(const Instruction& i) { return i.is("WARPGROUP.DEPBAR"); }
inline bool is_release(const Instruction& i) { return i.is("SYNCS.ARRIVE"); }
inline bool is_await(const Instruction& i) { return i.is("SYNCS.PHASECHK"); }
inline bool is_exponential(const Instruction& i) { return i.is("MUFU.EX2"); }
inline bool is_pack(const Instruction& i) { return i.is("F2FP"); }
/// Where the assembler cannot tell that a warp's lanes are together: it has them wait for one
/// another, or asks whether they have to.
inline bool gathers_warp(const Instruction& i) { return i.is("WARPSYNC") || i.is("BRA.DIV"); }
inline bool uses_local_memory(const Instruction& i) { return i.is("LDL") || i.is("STL"); }

/// Columns of a wgmma's result: 128 of "64x128x16".
int columns_of(const Instruction& product);

/// Registers that hold its result.
std::set<int> accumulators_of(const Instruction& product);

/// Those of A, if it is not in shared memory.
std::set<int> fragments_of(const Instruction& product);

/// Both.
std::set<int> product_registers(const Instruction& product);

}  // namespace lacuna::sass
