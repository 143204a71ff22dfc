// Plans made of a program's text, without a spec.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/emit/emit.hpp"
#include "compiler/lower/lower.hpp"
#include "compiler/target/target.hpp"

namespace lacuna {

inline Plan plan_of_text(const std::string& text, const char* target = "sm_90a") {
  Diagnostics diagnostics;
  Plan plan;
  plan.target = find_target(target).value();
  plan.program = parse_program({"made.ir", text}, diagnostics);
  verify_program(plan.program, diagnostics);
  EXPECT_EQ(render(diagnostics, {"made.ir", text}), "");
  const Attend& attend = attend_of(plan.program);
  plan.attend.tile_q.value = attend.tile_q;
  plan.attend.tile_k.value = attend.tile_k;
  plan.attend.stages.value = 2;
  plan.attend.warps.value = attend.tile_q / 16;
  plan.attend.smem_bytes.value = 40960;
  plan.attend.reuse.value = 1;
  return plan;
}

inline std::vector<std::string> kernel_names(const Plan& plan, bool only_deciding = false) {
  std::vector<std::string> names;
  for (const KernelLaunch& launch : emit_launch_program(plan).launches) {
    if (launch.decides || !only_deciding) names.push_back(launch.name);
  }
  return names;
}

/// The text with one piece replaced, which must be there.
inline std::string with(std::string text, const std::string& piece, const std::string& other) {
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), other);
}

}  // namespace lacuna
