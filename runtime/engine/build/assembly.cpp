#include "runtime/engine/build/assembly.hpp"

#include <algorithm>

namespace lacuna {

std::vector<std::string> assembly_complaints(const Plan& plan, const Compilation& compilation) {
  const bool is_wgmma = plan.attend.family.value == AttendFamily::kWgmma;
  std::vector<std::string> complaints;
  for (const KernelLaunch& launch : emit_launch_program(plan).launches) {
    const auto found = std::ranges::find(compilation.kernels, launch.entry, &KernelResources::name);
    const bool attends = launch.name == "attend" || launch.is_packed;
    if (!attends || found == compilation.kernels.end()) continue;
    if (found->spill_bytes == 0 && (!is_wgmma || found->stack_bytes == 0)) continue;
    complaints.push_back(found->name + ": expected no local memory, got " +
                         std::to_string(found->stack_bytes) + " bytes of stack and " +
                         std::to_string(found->spill_bytes) + " bytes of spills");
  }
  if (!is_wgmma) return complaints;
  std::vector<std::string> of_products = find_ptxas_complaints(compilation.log);
  complaints.insert(complaints.begin(), of_products.begin(), of_products.end());
  return complaints;
}

bool check_assembly(const Plan& plan, const Compilation& compilation, Diagnostics& diagnostics) {
  if (plan.attend.family.value != AttendFamily::kWgmma) return true;
  std::vector<std::string> notes = assembly_complaints(plan, compilation);
  if (notes.empty()) return true;
  Diagnostic d;
  d.code = Code::kAssembly;
  d.message =
      "the assembler undid what kernel " + plan.program.name + " relies on for " + plan.target.name;
  d.notes = std::move(notes);
  diagnostics.add(std::move(d));
  return false;
}

}  // namespace lacuna
