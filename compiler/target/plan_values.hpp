// Every value of a plan as text, from one table: print_plan and `explain` show it.
#pragma once

#include "compiler/target/plan_value.hpp"

namespace lacuna {

/// Those that the plan has, in the order in which people read them. A new value is a member of
/// AttendPlan and a row of the table in plan_values.cpp.
std::vector<PlanValue> plan_values(const Plan& plan);

/// Text form of a plan, one line for each value: `attend.tile_q = 128  (spec)`.
std::string print_plan(const Plan& plan);

}  // namespace lacuna
