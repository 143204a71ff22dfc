// lacuna tune: the fastest legal tiles of a spec on this machine, kept for every later compile.
#include <unistd.h>

#include <charconv>

#include "cache/files/directories.hpp"
#include "cache/store.hpp"
#include "compiler/diag/printable.hpp"
#include "compiler/passes/check_request.hpp"
#include "runtime/base/environment.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/inputs/params.hpp"
#include "tools/measure/random_problem.hpp"
#include "tools/measure/value_source.hpp"
#include "tools/tune/child/child.hpp"
#include "tools/tune/files.hpp"
#include "tools/tune/report.hpp"
#include "tools/tune/search.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

struct TuneOptions {
  std::vector<std::string> specs;
  std::string branch;
  LaunchShape shape{1, 32, 8, 8192, 8192};
  std::string shapes, import, output;
  LoweringOptions lowering;
  std::vector<std::string> params;
  std::optional<double> density;
  ValueSet values;
  std::uint64_t seed = 1;
  std::string device;
  int threads = 0;
  TuneLimits limits;
  bool is_child = false;
};

constexpr const char* kTuneDescription =
    R"(Find the fastest tiles, stages, key order, splits, place of queries and threads; keep them.

Examples:
  lacuna tune specs/dense.json --shape b=1,h=32,n=8192
  lacuna tune specs/*.json --shapes shapes.json --budget 30s
  lacuna tune specs/sparge.json --shape h=24,n=32768 --param tau=0.9 --json
  lacuna tune specs/bsfa.json --shape h=32,h_kv=8,n=16384 --values layer5.safetensors
  lacuna tune specs/nsa.json --branch selected --shape h=32,h_kv=2,n=16384
  lacuna tune --export h200.jsonl
  lacuna tune --import h200.jsonl

Every candidate runs in a process of its own and is held against the interpreter and against what is
used without tuning before it is timed. Records are kept beside the kernel cache; `run`, `bench` and
every program that compiles the spec take the nearest without a flag. A second tune of the same problem
does nothing; one that was stopped goes on where it was.
See also: explain, bench, cache path)";

/// "60s", "2m", "90" -> seconds; "" or what is wrong.
std::string parse_budget(const std::string& text, double& seconds) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const std::string unit(parsed.ptr, end);
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : 0;
  if (parsed.ec != std::errc() || scale == 0 || !(value > 0))
    return "expected a time like 60s or 2m, got \"" + text + "\"";
  seconds = value * scale;
  return "";
}

cache::TuningDatabase open_database() {
  return {cache::choose_directory(system_variable), cache::choose_lock_directory(system_variable)};
}

std::vector<LaunchShape> shapes_of(const TuneOptions& options, Session& session) {
  if (options.shapes.empty()) return {options.shape};
  return load_shapes(options.shapes, options.shape, session);
}

/// False: nothing further is to be tried.
bool tune_one(const SpecDocument& document, const LaunchShape& shape, const ValueSource& values,
              const TuneOptions& options, const cache::TuningDatabase& database,
              const Interrupts& interrupts, Session& session) {
  TuneTask task{document.source.text,
                document.source.path,
                build_options(document.spec, options.lowering),
                shape,
                options.params,
                options.density,
                options.values,
                options.seed,
                options.device,
                options.threads};
  const std::string misfit =
      check_fits(values, shape, task.build.head_dim, head_dim_v(document.spec, task.build));
  if (!misfit.empty()) {
    session.fail(ExitCode::kInput, misfit);
    return true;
  }
  // The child reads them too; what is wrong with them is told here.
  if (!load_params(options.params, "", document.spec, session)) return true;
  TuneProgress progress(!session.json && ::isatty(STDERR_FILENO) == 1);
  TuneSearch search(std::move(task), document, values.name, options.limits, database, interrupts,
                    progress, session);
  const auto findings = search.run();
  if (!findings) return session.exit_code != ExitCode::kEnvironment;
  session.document["tunings"].push_back(
      findings_json(*findings, document.spec.name, shape, values.name));
  session.print(
      print_findings(*findings, document.spec.name, shape, values.name, session.color_stdout()));
  return findings->state != TuneState::kInterrupted;
}

void tune_specs(const TuneOptions& options, const cache::TuningDatabase& database,
                Session& session) {
  const std::vector<LaunchShape> shapes = shapes_of(options, session);
  const auto values = open_values(options.values, session);
  if (!values) return;
  const Interrupts interrupts;
  session.document["tunings"] = ordered_json::array();
  const auto tune_all = [&] {
    for (const auto& [path, branch] : parts_of(options.specs, options.branch, session)) {
      const auto document = load_branch(path, branch, session);
      if (!document) continue;
      if (options.density && !document->spec.external_mask) {
        session.fail(ExitCode::kInput, printable(path) + ": " + kDensityIsForLists);
        continue;
      }
      for (const LaunchShape& shape : shapes)
        if (!tune_one(*document, shape, *values, options, database, interrupts, session)) return;
    }
  };
  tune_all();
  if (interrupts.arrived() && session.exit_code == ExitCode::kOk)
    session.exit_code = exit_code_of_signal(interrupts.signal());
}

void run_tune(const TuneOptions& options, Session& session) {
  if (options.is_child) {
    serve_tuning();
    return;
  }
  if (options.specs.empty() && options.import.empty() && options.output.empty())
    throw CLI::ValidationError("nothing to tune: name a spec, --import or --export");
  if (!check_output(options.output, session)) return;
  const cache::TuningDatabase database = open_database();
  if (!options.import.empty()) import_tuning(options.import, database, session);
  if (!options.specs.empty()) tune_specs(options, database, session);
  if (!options.output.empty()) export_tuning(options.output, database, session);
}

void add_problem_options(CLI::App& verb, TuneOptions& options) {
  add_shape_option(verb, options.shape);
  verb.add_option("--shapes", options.shapes, "A JSON array of such shapes, in place of --shape")
      ->type_name("FILE");
  verb.add_option("--head-dim", options.lowering.head_dim, "Head dim (the spec's first, else 128)")
      ->type_name("N");
  add_dtype_option(verb, options.lowering.dtype, "bf16, f16, f32 (the spec's first, else bf16)");
  verb.add_option("--param", options.params, "A number, or a tensor from a file; may be repeated")
      ->type_name("NAME=VALUE|NAME=@FILE")
      ->expected(1)
      ->take_all();
  verb.add_option("--density", options.density,
                  "Share of tiles in random lists, for \"mask\": \"external\" (1)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X");
  add_values_option(verb, options.values);
  verb.add_option("--seed", options.seed, "Of the random tensors (1)")->type_name("N");
}

void add_search_options(CLI::App& verb, TuneOptions& options) {
  verb.add_option_function<std::string>(
          "--budget",
          [&options](const std::string& text) {
            const std::string error = parse_budget(text, options.limits.budget_s);
            if (!error.empty()) throw CLI::ValidationError("--budget", error);
          },
          "Time for each spec and shape (60s)")
      ->type_name("TIME");
  verb.add_option("--watchdog", options.limits.watchdog_s,
                  "Seconds without an answer after which a candidate counts as hung, at least (30)")
      ->check(CLI::PositiveNumber)
      ->type_name("X");
  verb.add_flag("--exhaustive", options.limits.exhaustive,
                "Measure every legal configuration equally long, whatever the time");
  verb.add_option("--device", options.device, "cpu or cuda:N (first GPU, else CPU)")
      ->type_name("NAME");
  verb.add_option("--threads", options.threads, "CPU threads, in place of trying several")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
}

}  // namespace

void add_tune(CLI::App& app, Session& session) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* verb = app.add_subcommand("tune", kTuneDescription);
  verb->add_option("spec", options->specs, "Spec files; - is standard input");
  verb->add_option("--branch", options->branch,
                   "The branch to tune, of a spec with several (all that attend to tokens)")
      ->type_name("NAME");
  add_problem_options(*verb, *options);
  add_search_options(*verb, *options);
  verb->add_option("--import", options->import, "First add the records of this file")
      ->type_name("FILE");
  verb->add_option("--export", options->output, "In the end write all records to this file")
      ->type_name("FILE");
  verb->add_flag("--child", options->is_child)->group("");
  verb->callback([options, &session] { run_tune(*options, session); });
}

}  // namespace lacuna::tools
