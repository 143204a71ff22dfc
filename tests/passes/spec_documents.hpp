// Specs made by hand, for tests that do not read JSON.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "compiler/expr/text/parse.hpp"
#include "compiler/passes/pass.hpp"

namespace lacuna {

/// A causal spec, with a tile gate if asked for.
inline SpecDocument make_document(bool has_gate = false) {
  SpecDocument document;
  document.source = {"made.json", ""};
  VariantSpec& spec = document.spec;
  spec.name = "made";
  spec.params.push_back(
      {{"threshold", ExprType::kF32, {ParamAxis::kHeads}, false}, -100, 100, 0, true, "", ""});
  const auto symbols = spec.param_symbols();
  spec.attention.mask = parse_expr("k <= q + n_k - n_q", Site::kMask, symbols).expr;
  if (has_gate) {
    spec.gate = GateSpec{.scope = GateScope::kTile,
                         .skip = parse_expr("tile_max < threshold", Site::kGate, symbols).expr,
                         .exempt = {},
                         .skips_v_load = true,
                         .skips_exp = true,
                         .skips_pv = true};
  }
  return document;
}

/// All diagnostics as text, without places.
inline std::string text_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.items) {
    text += std::string(name_of(d.severity)) + " " + d.pointer + ": " + d.message + "\n";
    for (const std::string& note : d.notes) text += "note: " + note + "\n";
    for (const std::string& help : d.helps) text += "help: " + help + "\n";
  }
  return text;
}

/// A spec read from JSON, from what follows its version and name.
inline SpecDocument read_document(const std::string& fields) {
  Diagnostics diagnostics;
  const SourceText source{"made.json", "{\"version\": 1, \"name\": \"made\", " + fields + "}"};
  SpecDocument document = read_spec(source, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << render(diagnostics, source);
  return document;
}

inline Target target(const char* name) { return find_target(name).value(); }

}  // namespace lacuna
