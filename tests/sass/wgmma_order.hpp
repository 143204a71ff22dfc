// The order of instructions that the protocol of the wgmma family relies on
// (templates/attend/wgmma/layout/wgmma_shape.cuh), checked in the main loop of a kernel's machine
// code. The assembler moves what has no data dependency, and makes asynchronous products wait for
// one another where it cannot follow them: the result is right then, and late.
#pragma once

#include "compiler/target/plan.hpp"
#include "tests/sass/listing.hpp"

namespace lacuna::sass {

/// What a step of the main loop consists of, for one thread.
struct StepFacts {
  int scores = 0;          ///< as many as exponentials
  int groups = 1;          ///< of scores, each a product with K that is waited for by itself
  int key_products = 0;    ///< wgmmas of one group
  int value_products = 0;  ///< wgmmas of the product with V; ahead: of that of one part
  int parts = 1;           ///< of a step, each multiplied with V or left out
  bool has_gate = false;   ///< a step may be without exponentials and without the product with V
  /// The gate is decided behind the exponentials of its step
  /// (templates/attend/wgmma/consumers/late_decision.cuh): all tiles are weighed.
  bool decides_late = false;
  /// The gate decides about a step under the product with K of the next one, and what counts is
  /// weighed and multiplied with V part by part; the loop holds two steps (tile_gate_order.hpp).
  bool looks_ahead = false;
  bool ping_pong = false;  ///< warpgroups issue their products one after the other
};

/// Of a plan of the wgmma family with 16-bit operands.
StepFacts step_facts(const Plan& plan);

/// What is not as it has to be, a sentence each; empty: all is well.
std::vector<std::string> violations(const Code& code, const StepFacts& facts);

/// Where in a loop the assembler takes a warp for divergent, a sentence each. Of violations, what
/// any step may be asked.
std::vector<std::string> gatherings(const Code& code, const Loop& loop);

}  // namespace lacuna::sass
