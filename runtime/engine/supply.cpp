#include "runtime/engine/supply.hpp"

#include <set>

#include "compiler/ir/names.hpp"
#include "runtime/engine/build/build.hpp"
#include "runtime/engine/build/metadata.hpp"

namespace lacuna {
namespace {

/// "head dim 128, bf16", and what else the kernel was made for where it is not as usual.
std::string variant_text(const KernelMetadata& made) {
  std::string text = "head dim " + std::to_string(made.head_dim);
  if (made.head_dim_v != 0) text += " (" + std::to_string(made.head_dim_v) + " of v and o)";
  text += ", " + made.dtype;
  if (made.batch != name_of(BatchLayout::kUniform)) text += ", batch " + made.batch;
  if (!made.kv.empty()) text += ", k and v of " + made.kv;
  return text;
}

/// What was added for the same spec, else for which specs anything was.
std::string added_text(const cache::Store& store, const std::string& spec) {
  std::set<std::string> of_spec, specs;
  for (const std::string& text : store.bundled_metadata()) {
    const auto metadata = read_metadata(text);
    if (!metadata) continue;
    specs.insert(metadata->spec);
    if (metadata->spec != spec) continue;
    of_spec.insert(metadata->target + ", " + variant_text(*metadata) + " (by lacuna " +
                   metadata->lacuna + ")");
  }
  if (specs.empty()) return "no kernels were added (lacuna_engine_add_kernels)";
  const std::set<std::string>& names = of_spec.empty() ? specs : of_spec;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : "; ") + name;
  return of_spec.empty() ? "kernels were added for other specs: " + list
                         : "kernels were added for " + spec + " on " + list;
}

/// The command that makes such a kernel.
std::string build_command(const KernelMetadata& wanted) {
  std::string command = "lacuna build SPEC --arch " + wanted.target + " --head-dim " +
                        std::to_string(wanted.head_dim);
  if (wanted.head_dim_v != 0) command += " --head-dim-v " + std::to_string(wanted.head_dim_v);
  command += " --dtype " + wanted.dtype;
  if (wanted.batch != name_of(BatchLayout::kUniform)) command += " --batch " + wanted.batch;
  if (!wanted.kv.empty()) command += " --kv " + wanted.kv;
  return command + " --bundle FILE";
}

void explain(const EngineState& engine, const Plan& plan, Diagnostic& d) {
  const KernelMetadata wanted = metadata_for(plan);
  d.notes.push_back("kernel " + wanted.spec + " on " + wanted.target + ", " + variant_text(wanted) +
                    ", is neither among the kernels that were added nor in the cache");
  d.notes.push_back(added_text(*engine.store, wanted.spec));
  d.helps.push_back("make it with this version of lacuna, on a machine with NVRTC: " +
                    build_command(wanted));
}

}  // namespace

std::shared_ptr<const Nvrtc> compiler_for(EngineState& engine, const Plan& plan,
                                          Diagnostics& diagnostics) {
  Diagnostics missing;
  if (engine.settings.forbid_compiling) {
    Diagnostic d;
    d.code = Code::kNoKernel;
    d.message = "kernel " + plan.program.name + " would have to be compiled, which is forbidden";
    missing.add(std::move(d));
  } else if (auto nvrtc = engine_nvrtc(engine, missing)) {
    return nvrtc;
  }
  explain(engine, plan, missing.items.front());
  for (Diagnostic& d : missing.items) diagnostics.add(std::move(d));
  return nullptr;
}

bool can_supply(EngineState& engine, const Plan& plan, const SpecDocument& document) {
  Diagnostics missing;
  if (!engine.settings.forbid_compiling && engine_nvrtc(engine, missing) != nullptr) return true;
  const cache::Key key = kernel_key(emit_cuda(plan, document), plan.target.name,
                                    engine.settings.template_path, missing);
  return engine.store->load(key).has_value();
}

}  // namespace lacuna
