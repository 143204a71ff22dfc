// lacuna check: every error of every spec, with its place and the way out.
#include "compiler/diag/printable.hpp"
#include "compiler/target/plan.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

struct CheckOptions {
  std::vector<std::string> specs;
  LoweringOptions lowering;
};

constexpr const char* kCheckDescription =
    R"(Report every error of a spec: text, fields, formulas, and the limits of the hardware.

Examples:
  lacuna check specs/bsfa.json
  lacuna check specs/*.json --arch sm_80,sm_120a
  echo '{"version": 1, "name": "dense"}' | lacuna check -

See also: explain, emit)";

/// All branches, or the one attend that there is.
void plan_all(const SpecDocument& document, const BuildOptions& build, const Target& target,
              Diagnostics& diagnostics) {
  for (const SpecDocument& branch : branch_documents(document))
    make_plan(branch, build, target, diagnostics);
}

/// Places the spec on each architecture that was asked for, all of whose errors count. Where none
/// was asked for, it has to fit on one at least; the errors are those of the roomiest.
Diagnostics check_targets(const SpecDocument& document, const LoweringOptions& options) {
  const BuildOptions build = build_options(document.spec, options);
  Diagnostics all;
  for (const Target& target : targets_of(options.archs)) {
    plan_all(document, build, target, all);
  }
  if (!options.archs.empty()) return all;

  int most_smem_bytes = -1;
  for (const Target& target : all_targets()) {
    if (target.kind != TargetKind::kCuda) continue;
    Diagnostics found;
    plan_all(document, build, target, found);
    if (!found.has_errors()) return found;
    if (target.smem_bytes_per_block <= most_smem_bytes) continue;
    most_smem_bytes = target.smem_bytes_per_block;
    all = std::move(found);
  }
  return all;
}

bool check_one(const std::string& path, const CheckOptions& options, Session& session) {
  const auto document = load_spec(path, session);
  if (!document) return false;
  const Diagnostics found = check_targets(*document, options.lowering);
  session.report(found, document->source);
  if (found.has_errors()) return false;
  session.print(printable(path) + ": good\n");
  return true;
}

void run_check(const CheckOptions& options, Session& session) {
  session.document["specs"] = nlohmann::ordered_json::array();
  for (const std::string& path : without_schemas(options.specs, session)) {
    const bool good = check_one(path, options, session);
    session.document["specs"].push_back({{"spec", path}, {"good", good}});
  }
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = app.add_subcommand("check", kCheckDescription);
  verb->add_option("spec", options->specs, "Spec files; - is standard input")->required();
  add_lowering_options(*verb, options->lowering, "Architectures it has to fit (any one)");
  verb->callback([options, &session] { run_check(*options, session); });
}

}  // namespace lacuna::tools
