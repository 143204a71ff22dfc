// Words of the spec language that more than one kernel configures itself with; the same names as in
// compiler/spec/spec.hpp.
#pragma once

namespace lacuna {

/// What the weights of an estimate are divided by.
enum class Normalise { kNone, kSoftmax, kLse, kPreviousLse, kRowMax };

/// A step of a predictor: the only one or a last one that does without another; the one before the
/// last; a last one that looks within what that one kept, or keeps it, too.
enum class Step { kOnly, kBefore, kWithin, kUnion };

/// How the batch entries of a launch lie in memory; compiler/ir/program.hpp.
enum class BatchLayout { kUniform, kSequences, kPages };

/// Tokens that share one scale: a tile, the rows of a warp, or what one thread of an mma holds.
enum class QuantGroup { kBlock, kWarp, kThread };

}  // namespace lacuna
