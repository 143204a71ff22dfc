// lacuna calibrate: the parameters of a spec for one model layer, from samples and an error bound.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tools/calibrate/samples.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/inputs/params.hpp"
#include "tools/io/file_io.hpp"
#include "tools/verbs/verbs.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/calibrate/report.hpp"
#include "tools/calibrate/search.hpp"

namespace lacuna::tools {
namespace {

struct CalibrateOptions {
  std::string spec, branch, out, target;
  SampleOptions samples;
  SearchOptions search;
  LaunchOptions launch;
  std::vector<std::string> params;
};

constexpr const char* kCalibrateDescription =
    R"(Find the parameters of a spec on samples of one model layer, within an error bound.

Examples:
  lacuna calibrate specs/sparge.json --samples layer5.safetensors -o sparge.layer5.safetensors
  lacuna calibrate specs/bsfa.json --samples dir/*.safetensors --target rel_l1=0.02 --kept 16,32,64
  lacuna calibrate specs/sale.json --samples x.safetensors --tokens 0:8192 --held-out 8192:16384
  lacuna calibrate specs/nsa.json --branch selected --samples x.safetensors -o nsa.safetensors
  lacuna run specs/sparge.json --input y.safetensors --calibration sparge.layer5.safetensors

A sample holds q, k and v. The target bounds the relative L1 error of each head on each sample against
dense attention. The spec names the procedure of each parameter ("calibrate"); they are found in the
order of their declaration, each head on its own, all heads in one launch. Heads that cannot meet the
target compute everything. Ctrl-C and SIGTERM keep what has been found.
See also: run --calibration, viz calibration)";

/// Seconds since 1970: SOURCE_DATE_EPOCH, which makes files reproducible, or now.
std::time_t date_seconds() {
  const char* text = std::getenv("SOURCE_DATE_EPOCH");
  long long seconds = 0;
  if (text != nullptr && std::sscanf(text, "%lld", &seconds) == 1)
    return static_cast<std::time_t>(seconds);
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

std::string print_date(std::time_t seconds) {
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// "rel_l1=0.05" or "0.05".
std::string read_target(const std::string& text, double& target) {
  constexpr std::string_view kName = "rel_l1=";
  const std::string number = text.starts_with(kName) ? text.substr(kName.size()) : text;
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, target);
  const bool good = parsed.ec == std::errc() && parsed.ptr == end && target > 0 && target < 1;
  return good ? "" : "expected rel_l1=X with X between 0 and 1, got " + text;
}

/// What --param assigns must not be looked for.
bool check_params(const SpecDocument& document, const std::vector<ParamInput>& fixed,
                  Session& session) {
  std::string names, declared;
  for (const ParamSpec& param : document.spec.params) {
    declared += (declared.empty() ? "" : ", ") + param.symbol.name;
    if (param.calibrate == Calibrate::kNone) continue;
    names += param.symbol.name;
    for (const ParamInput& input : fixed) {
      if (input.name != param.symbol.name) continue;
      session.fail(ExitCode::kInput, "--param " + input.name +
                                         ": the spec says to calibrate it (\"calibrate\": \"" +
                                         std::string(name_of(param.calibrate)) + "\")");
      return false;
    }
  }
  if (!names.empty()) return true;
  session.fail(ExitCode::kInput,
               "spec " + document.spec.name + " has nothing to calibrate: " +
                   (declared.empty() ? "it declares no parameter"
                                     : "no parameter says how; give one of " + declared +
                                           " \"calibrate\": \"bisect\""));
  return false;
}

bool write_calibration(const std::string& path, const Calibration& calibration, Session& session) {
  Diagnostics diagnostics;
  write_file(path, print_calibration(calibration), diagnostics);
  session.report(diagnostics, {path, ""});
  return !diagnostics.has_errors();
}

/// Launches with what was found, on all samples: what is reported is measured.
void measure_results(Trial& trial, const SearchResult& result, Calibration& calibration) {
  for (std::size_t sample = 0; sample < trial.samples(); ++sample) {
    std::vector<HeadResult>& heads = calibration.results.emplace_back();
    for (const HeadMeasure& head :
         trial.launch(sample, launch_params(result.params, trial.heads(), trial.q_tiles(sample))))
      heads.push_back({head.visible > 0
                           ? static_cast<double>(head.computed) / static_cast<double>(head.visible)
                           : 1,
                       head.rel_l1});
  }
}

Calibration make_calibration(const SpecDocument& document, const std::vector<Sample>& samples,
                             Trial& trial, const SearchResult& result, double target) {
  Calibration calibration;
  calibration.spec = document.spec.name;
  calibration.spec_sha256 = spec_sha256(document.spec);
  calibration.dtype = name_of(samples.front().inputs.q.type);
  calibration.date = print_date(date_seconds());
  calibration.version = LACUNA_VERSION;
  calibration.heads = trial.heads();
  calibration.head_dim = samples.front().inputs.q.shape[3];
  calibration.tile_q = trial.tile().q;
  calibration.target_rel_l1 = target;
  calibration.complete = result.complete;
  calibration.dense = result.dense;
  for (const Sample& sample : samples) calibration.samples.push_back(sample.origin);
  calibration.params = result.kept_params;
  for (const SoughtParam& param : result.params)
    calibration.params[param.spec->symbol.name] = param_array(param, trial.heads());
  measure_results(trial, result, calibration);
  return calibration;
}

void calibrate_on(const CalibrateOptions& options, const SpecDocument& document,
                  const std::vector<Sample>& samples, std::vector<ParamInput> fixed,
                  Session& session) {
  std::size_t fitted = 0;
  while (fitted < samples.size() && !samples[fitted].origin.held_out) ++fitted;
  Trial trial(document, samples, options.launch, session);
  trial.fix(std::move(fixed));
  SearchOptions search = options.search;
  std::int64_t k_tiles = 0;
  for (std::size_t sample = 0; sample < fitted; ++sample)
    k_tiles = std::max(k_tiles, trial.k_tiles(sample));
  if (search.kept.empty()) search.kept = usual_kept(k_tiles);
  // Until all is written: a signal must not take what has been found along.
  CalibrateProgress progress(count_launches(document, fitted, search.kept.size()));
  const auto result = search_params(trial, fitted, document, search, progress);
  progress.clear();
  if (!result) {
    session.fail(exit_code_of_signal(progress.signal()),
                 "stopped before anything was found; nothing is written");
    return;
  }
  if (!(result->least_error <= search.target)) {
    const QuantiseSpec& quantise = document.spec.quantise;
    const bool quantised = quantise.qk_bits < 16 || quantise.v_bits < 16;
    session.fail(ExitCode::kInput,
                 unreachable_message(search.target, result->least_error, quantised));
    return;
  }
  const Calibration calibration =
      make_calibration(document, samples, trial, *result, search.target);
  if (!options.out.empty() && !write_calibration(options.out, calibration, session)) return;
  if (!result->complete)
    session.note(
        "stopped; what had been found by then holds the target, but is less sparse than "
        "it could be");
  report_calibration({calibration, *result, trial.device_name(), options.out, progress.launches()},
                     session);
  if (!result->complete) session.exit_code = exit_code_of_signal(progress.signal());
}

std::vector<std::string> read_by(const CalibrateOptions& options) {
  std::vector<std::string> files = options.samples.files;
  files.push_back(options.spec);
  return files;
}

void run_calibrate(CalibrateOptions& options, Session& session) {
  const auto document = load_branch(options.spec, options.branch, session);
  if (!document || !check_output(options.out, session, read_by(options))) return;
  const auto& params = document->spec.params;
  const auto fills_kept = [](const ParamSpec& param) {
    return param.calibrate == Calibrate::kKeptTiles;
  };
  if (!options.search.kept.empty() && std::ranges::none_of(params, fills_kept)) {
    session.fail(ExitCode::kInput, "--kept is only for specs with \"calibrate\": \"kept_tiles\"");
    return;
  }
  const auto fixed = load_params(options.params, "", document->spec, session);
  if (!fixed || !check_params(*document, *fixed, session)) return;
  if (options.samples.files.empty()) {
    session.fail(ExitCode::kInput,
                 "no samples: pass --samples FILE..., safetensors with q, k and v");
    return;
  }
  const auto samples = load_samples(options.samples, session);
  if (!samples) return;
  guard_device(session, [&] { calibrate_on(options, *document, *samples, *fixed, session); });
}

void add_range_option(CLI::App& verb, const std::string& name, std::optional<TokenRange>& range,
                      const std::string& help) {
  verb.add_option_function<std::string>(
          name, [&range](const std::string& text) { range = parse_token_range(text); }, help)
      ->check([](const std::string& text) -> std::string {
        return parse_token_range(text) ? "" : "expected BEGIN:END, such as 0:8192, got " + text;
      })
      ->type_name("BEGIN:END");
}

}  // namespace

void add_calibrate(CLI::App& app, Session& session) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* verb = app.add_subcommand("calibrate", kCalibrateDescription);
  verb->add_option("spec", options->spec, "A spec file; - is standard input")->required();
  verb->add_option("--samples", options->samples.files,
                   "safetensors with q, k, v; several: each head fits all")
      ->type_name("FILE...");
  verb->add_option("--branch", options->branch,
                   "The branch to calibrate by itself, of a spec with several")
      ->type_name("NAME");
  verb->add_option_function<std::string>(
          "--target",
          [options](const std::string& text) { read_target(text, options->search.target); },
          "Relative L1 error that no head exceeds (rel_l1=0.05)")
      ->check([](const std::string& text) {
        double target = 0;
        return read_target(text, target);
      })
      ->type_name("rel_l1=X");
  add_range_option(*verb, "--tokens", options->samples.tokens,
                   "Tokens of each sample to use (all)");
  add_range_option(*verb, "--held-out", options->samples.held_out,
                   "Tokens of each sample to measure the result on, unused otherwise (none)");
  verb->add_option("--kept", options->search.kept,
                   "Numbers of kept tiles to find thresholds for, for \"kept_tiles\" (from 1 up)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->type_name("N,...");
  verb->add_flag("--one-for-all", options->search.one_for_all,
                 "One number for all heads, even where each may have its own");
  verb->add_option("--param", options->params,
                   "A parameter that is not looked for; may be repeated")
      ->type_name("NAME=VALUE|NAME=@FILE")
      ->expected(1)
      ->take_all();
  verb->add_option("-o,--out", options->out, "Write the parameters as safetensors")
      ->type_name("FILE");
  verb->add_option("--device", options->launch.device, "cpu or cuda:N (first GPU, else CPU)")
      ->type_name("NAME");
  add_dtype_option(*verb, options->samples.dtype,
                   "Convert q, k, v first: bf16, f16, f32 (as they are)");
  verb->add_option("--threads", options->launch.threads, "CPU threads (all)")->type_name("N");
  verb->callback([options, &session] { run_calibrate(*options, session); });
}

}  // namespace lacuna::tools
