#include "tools/group/bench.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>

#include "runtime/group/layout.hpp"
#include "tools/common/spread.hpp"
#include "tools/common/table.hpp"
#include "tools/group/plan_table.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "lacuna/group.hpp"
#include "tools/group/rank_times.hpp"
#include "tools/run/kernels.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kFewestRuns = 3, kMostRuns = 200;
constexpr double kMostError = 1e-2;  ///< relative L1, of results that only rounding may part

/// A rank's part of [batch, heads, tokens, head_dim].
Array part_of(const Array& whole, group::Range heads, const std::vector<group::Range>& tokens) {
  const auto row = static_cast<std::size_t>(whole.shape[3] * size_bytes(whole.type));
  Array part{
      whole.type, {whole.shape[0], heads.count(), group::token_count(tokens), whole.shape[3]}, {}};
  for (std::int64_t b = 0; b < whole.shape[0]; ++b) {
    for (std::int64_t h = heads.begin; h < heads.end; ++h) {
      for (const group::Range& range : tokens) {
        const auto first =
            static_cast<std::size_t>((b * whole.shape[1] + h) * whole.shape[2] + range.begin);
        part.bytes.append(whole.bytes, first * row, static_cast<std::size_t>(range.count()) * row);
      }
    }
  }
  return part;
}

/// What one rank alone computes, how long it takes, and the tiles that it visits.
struct Alone {
  Array o;
  LaunchTimes times;
  std::size_t launches = 1;  ///< of a sample
  std::vector<float> work;
  std::int32_t tile_q = 1;
};

/// A NaN, which only one of two results has, is the largest difference of all.
double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

/// Sums and differences of absolute values, of the ranks whose results have other bits.
struct Difference {
  double error = 0, magnitude = 0, largest = 0;
  bool equal = true;

  void add(const Array& got, const Array& expected) {
    if (got.bytes == expected.bytes) return;
    equal = false;
    const std::vector<float> a = to_f32(got), b = to_f32(expected);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      error += d, magnitude += std::abs(static_cast<double>(b[i]));
      largest = larger(largest, d);
    }
  }
  double relative() const { return magnitude > 0 ? error / magnitude : error; }
};

struct GroupBench {
  const SpecDocument& document;
  const Inputs& inputs;
  const GroupBenchOptions& options;
  Session& session;
  bool on_gpu = false;
  LaunchShape shape{};
  Alone alone{};

  // Of the ranks, each of which writes its own.
  std::vector<LaunchTimes> times{};
  std::vector<ordered_json> traces{};
  std::vector<Difference> differences{};
  std::string plan{};  ///< rank 0's
  std::size_t workspace_bytes = 0;
  std::vector<std::exception_ptr> failures{};
};

std::vector<float> work_of(const Array& counts) {
  const std::vector<float> numbers = to_f32(counts);
  const auto entries = static_cast<std::size_t>(counts.shape[0]);
  const std::size_t tiles = entries == 0 ? 0 : numbers.size() / 3 / entries;
  std::vector<float> work(tiles, 0);
  for (std::size_t at = 0; at < numbers.size() / 3; ++at) work[at % tiles] += numbers[3 * at + 1];
  return work;
}

/// By one launch; of branches, each of which has tiles of its own, none are counted.
void count_tiles(GroupBench& bench, const v1::Kernel& kernel, v1::LaunchArgs args,
                 const Place& place, DeviceErrors& errors) {
  if (!bench.document.spec.branches.empty()) return;
  const std::int64_t q_tiles = (bench.shape.n_q + bench.alone.tile_q - 1) / bench.alone.tile_q;
  Buffer counts = place_zeros(ArrayType::kI32, {bench.shape.n_b, bench.shape.n_h, q_tiles, 3},
                              place, errors.diagnostics);
  errors.check();
  args.counts = tensor_of(counts, place);
  kernel.launch(args);
  bench.alone.work = work_of(fetch(counts, place, errors.diagnostics));
}

/// On the first device. Its memory is free again when this returns.
void measure_alone(GroupBench& bench, const v1::Engine& engine) {
  DeviceErrors errors;
  const auto place = open_place(engine.device(), errors.diagnostics);
  errors.check();
  const v1::Kernel kernel =
      prepare_spec(engine, bench.document.source.text, bench.document.source.path, bench.inputs);
  bench.alone.tile_q = kernel.tile().q;
  Tensors tensors = place_tensors(bench.inputs, *place, errors);
  AlignedBuffer workspace = place_workspace(kernel, bench.inputs, *place, errors);
  v1::LaunchArgs args = arguments(bench.inputs, tensors, workspace, *place);
  count_tiles(bench, kernel, args, *place, errors);
  const auto time = [&](std::size_t launches) {
    const double time_us = time_sample_us(
        *place, launches, [&] { kernel.launch(args); }, [] {}, errors.diagnostics);
    errors.check();
    return time_us;
  };
  LaunchTimes& times = bench.alone.times;
  for (std::size_t run = 0; run < kFewestRuns; ++run) times.single_us.push_back(time(1));
  bench.alone.launches = launches_of_sample(spread_of(times.single_us).median_us);
  const double limit_us = bench.options.seconds * 1e6;
  double spent_us = 0;
  while (times.sample_us.size() < kFewestRuns ||
         (spent_us < limit_us && times.sample_us.size() < kMostRuns)) {
    times.sample_us.push_back(time(bench.alone.launches));
    spent_us += times.sample_us.back() * static_cast<double>(bench.alone.launches);
  }
  bench.alone.o = fetch(tensors.o, *place, errors.diagnostics);
  errors.check();
}

v1::GroupProblem problem_of(const GroupBench& bench, const group::Layout& layout) {
  v1::GroupProblem problem;
  const LaunchShape& s = bench.shape;
  problem.shape = {s.n_b, s.n_h, s.n_h_kv, s.n_q, s.n_k};
  problem.layout = static_cast<v1::Layout>(layout.kind);
  problem.stripe = layout.stripe;
  if (const auto scheme = scheme_of(bench.options.group))
    problem.scheme = static_cast<v1::Scheme>(static_cast<int>(*scheme) + 1);
  if (bench.document.spec.predictor) problem.work = bench.alone.work;
  return problem;
}

/// Queries that stripes are made of: tiles of attend and of the predictor.
std::int32_t unit_of(const GroupBench& bench) {
  std::int32_t unit = bench.alone.tile_q;
  for (const SpecDocument& attend : branch_documents(bench.document)) {
    if (attend.spec.predictor)
      unit = std::lcm(unit, static_cast<std::int32_t>(attend.spec.predictor->tile_q));
  }
  return unit;
}

void run_rank(GroupBench& bench, int rank, const v1::Loopback* loopback, const v1::UniqueId* id,
              std::barrier<>& all) {
  LaunchOptions launch = bench.options.launch;
  launch.device = bench.on_gpu ? "cuda:" + std::to_string(rank) : "cpu";
  const v1::Engine engine = create_engine(launch, bench.session);
  DeviceErrors errors;
  const auto place = open_place(engine.device(), errors.diagnostics);
  errors.check();
  const GroupOptions& options = bench.options.group;
  v1::GroupOptions joining;
  joining.rank = rank, joining.size = options.gpus;
  joining.loopback = loopback, joining.unique_id = id;
  joining.link_gb_s = options.link_gb_s, joining.tflops = options.tflops;
  joining.sm_margin = options.sm_margin, joining.max_ctas = options.max_ctas;
  if (const auto exchange = exchange_of(options))
    joining.exchange = static_cast<v1::Exchange>(static_cast<int>(*exchange) + 1);
  const v1::Group group = v1::Group::create(engine, joining);
  v1::CompileOptions compile;
  compile.head_dim = static_cast<std::int32_t>(bench.inputs.q.shape[3]);
  compile.dtype = dl_type(bench.inputs.q.type);
  compile.shape = shape_of(bench.inputs);
  const v1::GroupKernel kernel = group.compile(
      v1::Spec::parse(bench.document.source.text, bench.document.source.path), compile);
  const group::Layout layout = layout_of(options, bench.shape, unit_of(bench));
  const v1::GroupPlan plan = kernel.plan(problem_of(bench, layout));
  if (rank == 0) bench.plan = plan.json(), bench.workspace_bytes = plan.workspace_bytes();

  const group::Share share =
      shares_of(layout, bench.shape, options.gpus)[static_cast<std::size_t>(rank)];
  Inputs part = bench.inputs;
  part.q = part_of(bench.inputs.q, share.heads, share.q);
  part.k = part_of(bench.inputs.k, share.heads_kv, share.k);
  part.v = part_of(bench.inputs.v, share.heads_kv, share.k);
  Tensors tensors = place_tensors(part, *place, errors);
  AlignedBuffer workspace = place_bytes(plan.workspace_bytes(), *place, errors);
  const v1::LaunchArgs args = arguments(part, tensors, workspace, *place);
  const double sample_us =
      spread_of(bench.alone.times.sample_us).median_us * static_cast<double>(bench.alone.launches);
  const auto expected = static_cast<std::size_t>(bench.options.seconds * 1e6 * options.gpus /
                                                 std::max(sample_us, 1.0));
  const auto index = static_cast<std::size_t>(rank);
  const RankLaunches launches{group, plan, args, *place, all};
  bench.times[index] = time_launches(launches, std::clamp(expected, kFewestRuns, kMostRuns),
                                     bench.alone.launches, errors);
  bench.traces[index] = trace_launch(launches, errors);
  bench.differences[static_cast<std::size_t>(rank)].add(
      fetch(tensors.o, *place, errors.diagnostics), part_of(bench.alone.o, share.heads, share.q));
  errors.check();
}

void run_ranks(GroupBench& bench, const v1::Engine& first) {
  const int ranks = bench.options.group.gpus;
  std::optional<v1::Loopback> loopback;
  v1::UniqueId id{};
  if (bench.on_gpu) {
    id = v1::Group::unique_id(first);
  } else {
    loopback.emplace(ranks);
  }
  std::barrier all(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        run_rank(bench, rank, loopback ? &*loopback : nullptr, bench.on_gpu ? &id : nullptr, all);
      } catch (...) {
        bench.failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
      all.arrive_and_drop();  // others do not wait for a rank that has failed
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : bench.failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// Of each sample the time of its slowest rank.
std::vector<double> slowest(const std::vector<LaunchTimes>& ranks,
                            std::vector<double> LaunchTimes::*kind) {
  std::vector<double> slowest = ranks.front().*kind;
  for (const LaunchTimes& rank : ranks) {
    for (std::size_t run = 0; run < slowest.size(); ++run)
      slowest[run] = std::max(slowest[run], (rank.*kind)[run]);
  }
  return slowest;
}

ordered_json times_json(const std::vector<double>& sample_us, std::size_t launches,
                        const std::vector<double>& single_us) {
  const Spread spread = spread_of(sample_us);
  return {{"median_us", spread.median_us}, {"low_us", spread.low_us},
          {"high_us", spread.high_us},     {"runs", sample_us.size()},
          {"launches", launches},          {"single_us", spread_of(single_us).median_us}};
}

/// When each part of a launch began and ended on each rank.
std::string print_traces(const std::vector<ordered_json>& traces, bool color) {
  Table table{.head = {""}, .rows = {}};
  for (std::size_t rank = 0; rank < traces.size(); ++rank)
    table.head.push_back("rank " + std::to_string(rank));
  std::size_t most = 0;
  for (const ordered_json& trace : traces) most = std::max(most, trace.size());
  for (std::size_t n = 0; n < most; ++n) {
    std::vector<std::string> row = {""};
    for (const ordered_json& trace : traces)
      row.push_back(n < trace.size()
                        ? trace[n][0].get<std::string>() + " " + print_time_us(trace[n][1])
                        : "");
    table.rows.push_back(std::move(row));
  }
  return most == 0 ? "" : "\nOne launch, behind others:\n" + print_table(table, color);
}

std::string number_text(const char* pattern, double value) {
  char text[32];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// What the ranks have measured together.
struct Measured {
  Spread alone, group;
  double efficiency = 0;
  Difference difference;
  ordered_json plan, taken;  ///< rank 0's, and of its schemes the one that was taken
};

Measured sum_up(const GroupBench& bench) {
  Measured sum{.alone = spread_of(bench.alone.times.sample_us),
               .group = spread_of(slowest(bench.times, &LaunchTimes::sample_us)),
               .difference = {},
               .plan = ordered_json::parse(bench.plan),
               .taken = {}};
  sum.efficiency = sum.alone.median_us / (sum.group.median_us * bench.options.group.gpus);
  for (const Difference& d : bench.differences) {
    sum.difference.error += d.error, sum.difference.magnitude += d.magnitude;
    sum.difference.largest = larger(sum.difference.largest, d.largest);
    sum.difference.equal = sum.difference.equal && d.equal;
  }
  for (const ordered_json& scheme : sum.plan["schemes"]) {
    if (scheme["scheme"] == sum.plan["scheme"]) sum.taken = scheme;
  }
  return sum;
}

ordered_json group_json(const GroupBench& bench, const Measured& sum) {
  const LaunchTimes& alone = bench.alone.times;
  const std::size_t launches = bench.alone.launches;
  return {{"ranks", bench.options.group.gpus},
          {"one", times_json(alone.sample_us, launches, alone.single_us)},
          {"all", times_json(slowest(bench.times, &LaunchTimes::sample_us), launches,
                             slowest(bench.times, &LaunchTimes::single_us))},
          {"efficiency", sum.efficiency},
          {"sent_bytes", sum.taken["sent_bytes_total"]},
          {"least_bytes", sum.taken["least_bytes_total"]},
          {"imbalance", sum.taken["imbalance"]},
          {"workspace_bytes", bench.workspace_bytes},
          {"same_bits", sum.difference.equal},
          {"relative_l1", sum.difference.relative()},
          {"largest_difference", sum.difference.largest},
          {"trace", bench.traces},
          {"plan", sum.plan}};
}

std::string print_measured(const GroupBench& bench, const Measured& sum, bool color) {
  Table table{.head = {"", "median", "10 %", "90 %"}, .rows = {}};
  const auto add = [&](const std::string& name, const Spread& time) {
    table.rows.push_back({name, print_time_us(time.median_us), print_time_us(time.low_us),
                          print_time_us(time.high_us)});
  };
  add("one", sum.alone);
  add("group", sum.group);
  const auto bytes = [&](const char* name) {
    return print_bytes(sum.taken[name].get<std::uint64_t>());
  };
  return print_group_plan(sum.plan, color) + "\n" + print_table(table, color) +
         print_traces(bench.traces, color) + "\n  Efficiency " +
         number_text("%.3f", sum.efficiency) + ", imbalance " +
         number_text("%.1f %%", 100 * sum.taken["imbalance"].get<double>()) + "\n  Sent       " +
         bytes("sent_bytes_total") + ", the least is " + bytes("least_bytes_total") +
         "\n  Results    " +
         (sum.difference.equal
              ? "the same bits as of one"
              : "relative L1 difference to one " + print_scientific(sum.difference.relative())) +
         "\n";
}

void report(GroupBench& bench) {
  const Measured sum = sum_up(bench);
  bench.session.document["group"] = group_json(bench, sum);
  bench.session.print(print_measured(bench, sum, bench.session.color_stdout()));
  if (!(sum.difference.relative() <= kMostError) || !std::isfinite(sum.difference.largest))
    bench.session.fail(ExitCode::kNumerics, "the group's results are not those of one rank");
}

}  // namespace

void bench_group(const SpecDocument& document, const Inputs& inputs,
                 const GroupBenchOptions& options, Session& session) {
  guard_device(session, [&] {
    const v1::Engine first = create_engine(options.launch, session);
    const auto ranks = static_cast<std::size_t>(options.group.gpus);
    GroupBench bench{document, inputs, options, session};
    bench.on_gpu = first.device() != "cpu";
    bench.shape = {
        static_cast<std::int32_t>(inputs.q.shape[0]), static_cast<std::int32_t>(inputs.q.shape[1]),
        static_cast<std::int32_t>(inputs.k.shape[1]), static_cast<std::int32_t>(inputs.q.shape[2]),
        static_cast<std::int32_t>(inputs.k.shape[2])};
    bench.times.resize(ranks);
    bench.traces.resize(ranks);
    bench.differences.resize(ranks);
    bench.failures.resize(ranks);
    measure_alone(bench, first);
    run_ranks(bench, first);
    session.document["device"] = first.device_name();
    report(bench);
  });
}

}  // namespace lacuna::tools
