// lacuna bench: how fast a spec is at a shape, on a value set.
#include "tools/group/bench.hpp"

#include <algorithm>
#include <cstdio>
#include <ranges>

#include "compiler/diag/printable.hpp"
#include "compiler/passes/check_request.hpp"
#include "tools/common/progress_line.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/spread.hpp"
#include "tools/common/table.hpp"
#include "tools/inputs/calibration.hpp"
#include "tools/inputs/params.hpp"
#include "tools/measure/gemm_rate.hpp"
#include "tools/measure/measure.hpp"
#include "tools/measure/random_problem.hpp"
#include "tools/measure/value_source.hpp"
#include "tools/run/dense_twin.hpp"
#include "tools/run/tile_work.hpp"
#include "tools/verbs/verbs.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/measure/kernel_times.hpp"
#include "tools/run/kernels.hpp"
#include "tools/run/report.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

struct BenchOptions {
  std::string spec;
  LaunchShape shape{1, 4, 4, 4096, 4096};
  LoweringOptions lowering;
  LaunchOptions launch;
  GroupOptions group;
  std::vector<std::string> params;
  CalibrationOptions calibration;
  std::optional<double> density;
  ValueSet values;
  std::uint64_t seed = 1;
  double seconds = 2;
};

constexpr const char* kBenchDescription =
    R"(Time a spec at a shape, next to dense attention, on random normal values or others.

Examples:
  lacuna bench specs/bsfa.json --shape b=1,h=32,n=16384
  lacuna bench specs/sparge.json --shape h=32,n=32768 --param tau=0.7 --json
  lacuna bench specs/external-mask.json --shape h=8,n=8192 --density 0.25
  lacuna bench specs/dense.json --shape h=32,n=8192 --values rising
  lacuna bench specs/bsfa.json --shape h=32,h_kv=8,n=4096 --values layer5.safetensors
  lacuna bench specs/dense.json --shape h=32,h_kv=8,n=32768 --gpus 2 --layout striped

The launches of all subjects take turns, so that they meet the same clocks and temperatures. On a GPU
several sets of tensors rotate, larger together than its L2 cache. TFLOP/s count 2 * (head_dim + head_dim_v)
for each pair of tokens of the visible tiles (of the visited ones: effective), half of it where a tile needs
the mask. Of a spec with branches no tiles are counted, and no rate is said.
On a GPU also: the kernels of the spec's launch, timed in launches of their own; and TFLOP/s as a
percentage of what cuBLAS reaches on bf16 matrices of 8192 x 8192, measured last for half a second, if
there is a cuBLAS (LACUNA_CUBLAS_PATH names it).
With --gpus the problem is computed by one rank, and then by a group of N, threads of this process
with the GPUs cuda:0 and on (through NCCL; LACUNA_NCCL_PATH names it), or on the CPU. Work is dealt by
the mask, and where a predictor decides, by the tiles that one rank counted.
See also: run, explain --shape)";

constexpr double kStagesShare = 0.25;  ///< of --seconds, besides

/// One thing that is timed; its launches use one set of tensors after the other.
struct Subject {
  std::string name;
  v1::Kernel kernel;
  AlignedBuffer workspace;
  std::vector<v1::LaunchArgs> args;
  bool keeps_selection = false;
  std::vector<lacuna_selection> selections{};
  std::vector<double> times_us{};
};

/// Everything that one benchmark holds in memory.
struct Bench {
  const SpecDocument& document;
  const BenchOptions& options;
  const v1::Engine& engine;
  const Place& place;
  Inputs inputs;  ///< of the first set
  std::vector<Tensors> sets;
  Extras extras;
  std::vector<AlignedBuffer> selection_memory;
  std::vector<Subject> subjects;  ///< the spec's first, dense last
  RunResult report;
  DeviceErrors errors;
  std::string values_name{};
  std::vector<KernelTimes> kernels{};
  GemmRate gemm{};
};

Subject make_subject(Bench& bench, const std::string& name, const std::string& text) {
  Subject subject{
      name, prepare_spec(bench.engine, text, bench.document.source.path, bench.inputs), {}, {}};
  subject.workspace = place_workspace(subject.kernel, bench.inputs, bench.place, bench.errors);
  for (Tensors& tensors : bench.sets) {
    v1::LaunchArgs args = arguments(bench.inputs, tensors, subject.workspace, bench.place);
    add_extras(bench.extras, bench.place, args);
    subject.args.push_back(std::move(args));
  }
  return subject;
}

/// Also computes the row LSE for specs that ask for it.
Subject make_dense_subject(Bench& bench) {
  DenseKernel dense =
      prepare_dense(bench.engine, bench.document, bench.inputs, bench.place, bench.errors);
  const auto args = [&](Tensors& tensors, Buffer* lse) {
    return dense_arguments(dense, bench.inputs, tensors, bench.place, bench.errors, lse);
  };
  if (wants_previous_lse(bench.document))
    dense.kernel.launch(args(bench.sets.front(), &bench.extras.previous_lse));
  std::vector<v1::LaunchArgs> sets;
  for (Tensors& tensors : bench.sets) sets.push_back(args(tensors, nullptr));
  return {"dense", dense.kernel, std::move(dense.workspace), std::move(sets)};
}

/// Launches whose tiles were decided before the clock starts, a mask for each set.
void add_attend_subject(Bench& bench) {
  Subject subject = make_subject(bench, "attend", reusing_twin(bench.document.spec));
  const std::size_t bytes = subject.kernel.selection_bytes(shape_of(bench.inputs));
  if (bytes == 0) return;  // a predictor that keeps every tile was dropped
  subject.keeps_selection = true;
  for (std::size_t set = 0; set < bench.sets.size(); ++set) {
    bench.selection_memory.push_back(place_bytes(bytes, bench.place, bench.errors));
    subject.selections.push_back(
        {sizeof(lacuna_selection), bench.selection_memory.back().data(), bytes, /*calls=*/0});
  }
  for (std::size_t set = 0; set < bench.sets.size(); ++set) {
    subject.args[set].selection = &subject.selections[set];
    subject.kernel.launch(subject.args[set]);
  }
  bench.subjects.push_back(std::move(subject));
}

void launch(Subject& subject, std::size_t set) {
  if (subject.keeps_selection) {
    subject.selections[set].calls = 1;
    subject.args[set].selection = &subject.selections[set];
  }
  subject.kernel.launch(subject.args[set]);
}

double time_launch_us(Bench& bench, Subject& subject, std::size_t set) {
  const double time_us = time_once_us(
      bench.place, [&] { launch(subject, set); }, bench.errors.diagnostics);
  bench.errors.check();
  return time_us;
}

/// All subjects one after the other, until the time is up; in alternating order, so that none
/// always follows the same one, which would lower its clock by the power it draws.
void time_subjects(Bench& bench, ProgressLine& progress) {
  for (Subject& subject : bench.subjects) time_launch_us(bench, subject, 0);
  const auto in_turn = [&bench](std::size_t run) {
    const auto time = [&](Subject& subject) {
      subject.times_us.push_back(time_launch_us(bench, subject, run % bench.sets.size()));
    };
    if (run % 2 == 0) {
      std::ranges::for_each(bench.subjects, time);
    } else {
      std::ranges::for_each(std::views::reverse(bench.subjects), time);
    }
  };
  const auto done = [&](double share) {
    progress.show(share, "launches of " + bench.document.spec.name + " and of dense attention");
  };
  repeat_for(bench.options.seconds, in_turn, done);
}

void time_spec_kernels(Bench& bench) {
  const Subject& subject = bench.subjects.front();
  bench.kernels = time_kernels(subject.kernel, subject.args, bench.place,
                               kStagesShare * bench.options.seconds, bench.errors);
}

/// Fills the bench: tensors, kernels, one reporting launch.
void set_up(Bench& bench) {
  const auto& spec = bench.document.spec;
  const v1::Kernel kernel = prepare_spec(bench.engine, bench.document.source.text,
                                         bench.document.source.path, bench.inputs);
  bench.report.workspace_bytes = kernel.workspace_bytes(shape_of(bench.inputs));
  if (spec.external_mask)
    bench.inputs.tile_mask =
        random_tile_mask(bench.options.shape, kernel.tile().q, kernel.tile().k,
                         bench.options.density.value_or(1), bench.options.seed);
  const std::size_t sets = count_sets(bench.inputs, bench.place);
  for (std::size_t set = 0; set < sets; ++set)
    bench.sets.push_back(place_tensors(bench.inputs, bench.place, bench.errors));
  bench.extras = place_extras(bench.document, kernel, bench.inputs, bench.place, bench.errors);

  Subject dense = make_dense_subject(bench);
  bench.subjects.push_back(make_subject(bench, spec.name, bench.document.source.text));
  // Branches have tiles of their own: dense attention's tell its rate.
  const Subject& reported = spec.branches.empty() ? bench.subjects.back() : dense;
  bench.report.tile_q = reported.kernel.tile().q;
  bench.report.tile_k = reported.kernel.tile().k;
  launch_with_report(reported.kernel, reported.args.front(), bench.place, bench.inputs,
                     bench.report, bench.errors);
  if (!spec.branches.empty())
    launch_with_branch_reports(bench.subjects.back().kernel, bench.subjects.back().args.front(),
                               bench.place, bench.document, bench.inputs, bench.report,
                               bench.errors);
  if (spec.predictor) add_attend_subject(bench);
  bench.subjects.push_back(std::move(dense));
}

std::string format(const char* pattern, double value) {
  char text[32];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

double dense_time_us(const Bench& bench) {
  return spread_of(bench.subjects.back().times_us).median_us;
}

ordered_json spread_json(const std::string& name, const Spread& time, double dense_us) {
  return {{"name", name},
          {"median_us", time.median_us},
          {"low_us", time.low_us},
          {"high_us", time.high_us},
          {"of_dense", time.median_us / dense_us}};
}

/// The columns from the name to the 90 % that launches and kernels share.
std::vector<std::string> spread_cells(const std::string& name, const Spread& time) {
  return {name, print_time_us(time.median_us), print_time_us(time.low_us),
          print_time_us(time.high_us)};
}

/// The table of launches; the same goes into `document`.
Table report_launches(const Bench& bench, ordered_json& document) {
  const Work work = count_work(bench.document, bench.inputs, bench.report);
  const double operations =
      2.0 * static_cast<double>(bench.inputs.q.shape[3] + bench.inputs.v.shape[3]);
  const double dense_us = dense_time_us(bench);
  const bool has_gemm = bench.gemm.tflops > 0;
  Table table{.head = {"launch", "median", "10 %", "90 %", "TFLOP/s", "of dense time"}, .rows = {}};
  if (has_gemm) table.head.push_back("of GEMM");
  document["launches"] = ordered_json::array();
  for (const Subject& subject : bench.subjects) {
    const Spread time = spread_of(subject.times_us);
    const bool is_dense = &subject == &bench.subjects.back();
    const bool has_rate = is_dense || bench.document.spec.branches.empty();
    const double pairs = is_dense ? work.visible : work.visited;
    const double rate = operations * pairs / time.median_us * 1e-6;
    std::vector<std::string> cells = spread_cells(subject.name, time);
    cells.push_back(has_rate ? format("%.3g", rate) : "-");
    cells.push_back(format("%.3f", time.median_us / dense_us));
    ordered_json launch = spread_json(subject.name, time, dense_us);
    launch["runs"] = subject.times_us.size();
    if (has_rate) launch["effective_tflops"] = rate;
    if (has_gemm)
      cells.push_back(has_rate ? format("%.1f %%", 100 * rate / bench.gemm.tflops) : "-");
    if (has_gemm && has_rate) launch["of_gemm"] = rate / bench.gemm.tflops;
    table.rows.push_back(std::move(cells));
    document["launches"].push_back(std::move(launch));
  }
  if (has_gemm) document["gemm_tflops"] = bench.gemm.tflops;
  return table;
}

Table report_kernels(const Bench& bench, ordered_json& document) {
  const double dense_us = dense_time_us(bench);
  Table table{.head = {"kernel", "median", "10 %", "90 %", "of dense time"}, .rows = {}};
  document["kernels"] = ordered_json::array();
  for (const KernelTimes& kernel : bench.kernels) {
    const Spread time = spread_of(kernel.times_us);
    table.rows.push_back(spread_cells(kernel.name, time));
    table.rows.back().push_back(format("%.4f", time.median_us / dense_us));
    document["kernels"].push_back(spread_json(kernel.name, time, dense_us));
  }
  return table;
}

/// The tiles of the spec's launch, or of its branches; the same goes into `document`.
std::string report_parts(const Bench& bench, ordered_json& document) {
  const std::vector<BranchReport>& branches = bench.report.branches;
  if (branches.empty())
    document["tiles"] = tiles_json(bench.report.tiles);
  else
    document["branches"] = branches_json(branches);
  return visited_text(bench.report);
}

void print_results(const Bench& bench, Session& session) {
  const bool color = session.color_stdout();
  std::string text = bench.document.spec.name + " on " + bench.engine.device_name() + " at " +
                     print_shape(bench.options.shape) + ", values " + printable(bench.values_name) +
                     ": " + report_parts(bench, session.document) + "\n" +
                     print_table(report_launches(bench, session.document), color);
  if (!bench.kernels.empty())
    text += "\n" + print_table(report_kernels(bench, session.document), color);
  if (bench.gemm.tflops > 0)
    text += "\nGEMM: " + format("%.4g", bench.gemm.tflops) + " TFLOP/s by cuBLAS\n";
  session.document["workspace_bytes"] = bench.report.workspace_bytes;
  session.document["sets"] = bench.sets.size();
  session.print(text);
  if (!bench.gemm.missing.empty()) session.note(bench.gemm.missing);
}

void run_bench(const BenchOptions& options, Session& session) {
  const auto document = load_spec(options.spec, session);
  if (!document) return;
  if (options.density && !document->spec.external_mask) {
    session.fail(ExitCode::kInput, kDensityIsForLists);
    return;
  }
  const auto params = load_params(options.params, "", document->spec, session);
  if (!params) return;
  const BuildOptions build = build_options(document->spec, options.lowering);
  const LaunchShape& shape = options.shape;
  const auto source = open_values(options.values, session);
  if (!source) return;
  const int width = head_dim_v(document->spec, build);
  if (const std::string misfit = check_fits(*source, shape, build.head_dim, width); !misfit.empty())
    return session.fail(ExitCode::kInput, misfit);
  Inputs inputs = make_inputs(*source, shape, build.head_dim, build.dtype, options.seed, width);
  take_v_of_k(document->spec, width, inputs);
  inputs.params = *params;
  if (!add_calibration(options.calibration, document->spec, {shape.n_h, build.head_dim, shape.n_q},
                       inputs.params, session))
    return;
  if (options.group.gpus > 0) {
    session.document["spec"] = document->spec.name;
    session.document["shape"] = print_shape(options.shape);
    bench_group(*document, inputs, {options.group, options.launch, options.seconds}, session);
    return;
  }
  guard_device(session, [&] {
    const v1::Engine engine = create_engine(options.launch, session);
    DeviceErrors errors;
    const auto place = open_place(engine.device(), errors.diagnostics);
    errors.check();
    Bench bench{*document, options, engine, *place, std::move(inputs), {}, {}, {}, {}, {}, {}};
    bench.values_name = source->name;
    {
      ProgressLine progress(session);
      progress.show(0, "compiling and one launch");
      set_up(bench);
      time_subjects(bench, progress);
      progress.show(1, "kernels");
      time_spec_kernels(bench);
    }
    if (place->gpu) bench.gemm = measure_gemm_rate(*place);
    session.document["spec"] = document->spec.name;
    session.document["device"] = engine.device_name();
    session.document["shape"] = print_shape(options.shape);
    session.document["values"] = source->name;
    print_results(bench, session);
  });
}

}  // namespace

void add_bench(CLI::App& app, Session& session) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* verb = app.add_subcommand("bench", kBenchDescription);
  verb->add_option("spec", options->spec, "A spec file; - is standard input")->required();
  add_shape_option(*verb, options->shape);
  verb->add_option("--head-dim", options->lowering.head_dim,
                   "Head dim (the spec's first, else 128)")
      ->type_name("N");
  add_dtype_option(*verb, options->lowering.dtype, "bf16, f16, f32 (the spec's first, else bf16)");
  verb->add_option("--param", options->params, "A number, or a tensor from a file; may be repeated")
      ->type_name("NAME=VALUE|NAME=@FILE")
      ->expected(1)
      ->take_all();
  add_calibration_options(*verb, options->calibration);
  verb->add_option("--density", options->density,
                   "Share of tiles in random lists, for \"mask\": \"external\" (1)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X");
  add_values_option(*verb, options->values);
  verb->add_option("--seed", options->seed, "Of the random tensors (1)")->type_name("N");
  verb->add_option("--seconds", options->seconds,
                   "How long to measure launches; kernels take a quarter more (2)")
      ->check(CLI::PositiveNumber)
      ->type_name("X");
  verb->add_option("--device", options->launch.device, "cpu or cuda:N (first GPU, else CPU)")
      ->type_name("NAME");
  verb->add_option("--threads", options->launch.threads, "CPU threads (all)")->type_name("N");
  add_group_options(*verb, options->group);
  add_exchange_options(*verb, options->group);
  verb->callback([options, &session] { run_bench(*options, session); });
}

}  // namespace lacuna::tools
