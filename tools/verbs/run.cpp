// lacuna run: one spec on real tensors, measured against dense attention.
#include <filesystem>

#include "runtime/base/environment.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/table.hpp"
#include "tools/inputs/calibration.hpp"
#include "tools/inputs/load_inputs.hpp"
#include "tools/io/file_io.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"
#include "tools/run/launch.hpp"
#include "tools/run/report.hpp"
#include "tools/run/warnings.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

struct RunOptions {
  std::string spec;
  InputOptions input;
  LaunchOptions launch;
  std::string out, mask_out;
  bool check = false;
  double tolerance = 0.1;
};

constexpr const char* kRunDescription =
    R"(Run a spec and measure it against dense attention: tiles, error, time.

Examples:
  lacuna run specs/bsfa.json
  lacuna run specs/window.json --device cpu --param window=1024
  lacuna run specs/bsfa.json --input x.safetensors --param threshold=@x.bsfa.safetensors
  lacuna run my_spec.json --q q.npy --k k.npy --v v.npy --dtype bf16 --out o.npy
  lacuna run specs/bsfa.json --check --tolerance 0.05 --json

Tensors are [batch, heads, tokens, head_dim]; leading dimensions of 1 can be left out. Dense means:
the same attention in 16 (or 32) bits without predictor, gate and permutation, on the same device. Of a
spec with branches the error is against the same branches without predictors and gates, the time
against one attend with the spec's mask. Files are written whole or not at all.
See also: explain, doctor)";

bool write_bytes(const std::string& path, const std::string& bytes, Session& session) {
  Diagnostics diagnostics;
  write_file(path, bytes, diagnostics);
  session.report(diagnostics, {path, ""});
  return !diagnostics.has_errors();
}

bool write_npy(const std::string& path, const Array& array, Session& session) {
  return path.empty() || write_bytes(path, print_npy(array), session);
}

/// Of a spec with branches the mask of each, by its name.
bool write_masks(const std::string& path, const RunResult& result, Session& session) {
  if (path.empty() || result.branches.empty()) return write_npy(path, result.tile_mask, session);
  Safetensors file;
  for (const BranchReport& branch : result.branches)
    file.tensors.emplace(branch.name, branch.tile_mask);
  return write_bytes(path, print_safetensors(file), session);
}

/// What is written is .npy, whatever the name says: one that says something else is a mistake.
bool check_npy_name(const char* option, const std::string& path, Session& session) {
  const std::string extension = std::filesystem::path(path).extension();
  if (extension.empty() || extension == ".npy") return true;
  session.fail(ExitCode::kUsage,
               std::string(option) + ": expected a name that ends in .npy, got " + path);
  return false;
}

/// A mask of each branch does not fit into one array.
bool check_mask_file(const RunOptions& options, const VariantSpec& spec, Session& session) {
  const bool is_named = options.mask_out.ends_with(".safetensors");
  if (spec.branches.empty()) return check_npy_name("--mask-out", options.mask_out, session);
  if (options.mask_out.empty() || is_named) return true;
  session.fail(ExitCode::kUsage, "--mask-out: expected a name that ends in .safetensors, got " +
                                     options.mask_out + "; " + spec.name +
                                     " has branches, each with a mask of its own tiles");
  return false;
}

/// o as f32, with as many dimensions as q had.
Array output_array(const RunResult& result, const Inputs& inputs) {
  Array o = from_f32(to_f32(result.o), result.o.shape, ArrayType::kF32);
  o.shape.erase(o.shape.begin(), o.shape.end() - static_cast<std::ptrdiff_t>(inputs.rank));
  return o;
}

void finish_run(const RunOptions& options, const SpecDocument& document, const Inputs& inputs,
                RunResult result, Session& session) {
  const std::string& spec = document.spec.name;
  result.o_not_finite = count_not_finite(result.o);
  result.warnings = warnings_of(document, inputs, result);
  const OutputError error = compare(result.o, result.dense_o);
  fill_run_json(spec, inputs, result, error, session.document);
  if (!write_npy(options.out, output_array(result, inputs), session)) return;
  if (!write_masks(options.mask_out, result, session)) return;
  session.print(print_run(spec, inputs, result, error));
  if (result.o_not_finite > 0) {
    session.fail(ExitCode::kNumerics,
                 std::to_string(result.o_not_finite) + " elements of o are NaN or infinite");
    return;
  }
  if (options.check && !(error.rel_l1 <= options.tolerance)) {
    session.fail(ExitCode::kNumerics, "relative L1 error against " + result.compared_with +
                                          ": expected at most " +
                                          print_scientific(options.tolerance) + ", got " +
                                          print_scientific(error.rel_l1));
  }
}

/// Two results do not fit into one file, and what is read is not replaced.
bool check_outputs(const RunOptions& options, Session& session) {
  const InputOptions& input = options.input;
  std::vector<std::string> read = {
      options.spec, input.input, input.q,         input.k,
      input.v,      input.order, input.tile_mask, input.calibration.path};
  for (const std::string& param : input.params)
    if (const std::size_t at = param.find("=@"); at != std::string::npos)
      read.push_back(param.substr(at + 2));
  if (!check_output(options.out, session, read) || !check_output(options.mask_out, session, read))
    return false;
  namespace fs = std::filesystem;
  const auto is_same = [](const std::string& a, const std::string& b) {
    return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal();
  };
  const bool has_both = !options.out.empty() && !options.mask_out.empty();
  std::error_code error;
  if (has_both && is_same(options.out, options.mask_out) &&
      !fs::is_other(fs::status(options.out, error))) {
    session.fail(ExitCode::kUsage, "--out and --mask-out name one file, " + options.out);
    return false;
  }
  return true;
}

void run_run(const RunOptions& options, Session& session) {
  if (!(options.tolerance >= 0)) {
    session.fail(ExitCode::kUsage, "--tolerance: expected a number from 0 on");
    return;
  }
  const auto document = load_spec(options.spec, session);
  if (!document || !check_outputs(options, session)) return;
  if (!check_npy_name("--out", options.out, session)) return;
  if (!check_mask_file(options, document->spec, session)) return;
  const auto inputs = load_inputs(options.input, document->spec, session);
  if (!inputs) return;
  if (const std::string broken = broken_promise(document->spec, *inputs); !broken.empty()) {
    session.fail(ExitCode::kInput, "parameter " + broken);
    return;
  }
  auto result = run_and_measure(*document, *inputs, options.launch, session);
  if (result) finish_run(options, *document, *inputs, std::move(*result), session);
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb = app.add_subcommand("run", kRunDescription);
  verb->add_option("spec", options->spec, "A spec file; - is standard input")->required();
  CLI::Option* input = verb->add_option("--input", options->input.input,
                                        "safetensors with q, k, v (the shipped sample)");
  CLI::Option* q = verb->add_option("--q", options->input.q, ".npy of q, in place of --input");
  CLI::Option* k = verb->add_option("--k", options->input.k, ".npy of k");
  CLI::Option* v =
      verb->add_option("--v", options->input.v, ".npy of v; none if the spec says \"v\": \"k\"");
  for (CLI::Option* option : {input, q, k, v}) option->type_name("FILE");
  for (CLI::Option* option : {q, k, v}) option->needs(q)->needs(k)->excludes(input);
  verb->add_option("--param", options->input.params,
                   "A number, or a tensor from .npy or .safetensors; may be repeated")
      ->type_name("NAME=VALUE|NAME=@FILE")
      ->expected(1)
      ->take_all();
  add_calibration_options(*verb, options->input.calibration);
  verb->add_option("--order", options->input.order,
                   "Token order of a spec with \"permute\": \"external\": integers [tokens]")
      ->type_name("FILE.npy");
  verb->add_option(
          "--tile-mask", options->input.tile_mask,
          "Tiles to visit of a spec with \"mask\": \"external\", as --mask-out writes them")
      ->type_name("FILE.npy");
  verb->add_option("--device", options->launch.device, "cpu or cuda:N (first GPU, else CPU)")
      ->type_name("NAME");
  add_dtype_option(*verb, options->input.dtype,
                   "Convert q, k, v first: bf16, f16, f32 (as they are)");
  verb->add_option("--threads", options->launch.threads, "CPU threads (all)")->type_name("N");
  verb->add_option("-o,--out", options->out, "Write o as .npy, in f32")->type_name("FILE");
  verb->add_option("--mask-out", options->mask_out,
                   "Write the tile mask as .npy: u8 [b, h, q_tiles, k_tiles], 0 not visited, 1 "
                   "visited, 2 gated; of a spec with branches as .safetensors, one of each by name")
      ->type_name("FILE");
  CLI::Option* check = verb->add_flag("--check", options->check,
                                      "Exit 4 if the relative L1 error exceeds --tolerance");
  verb->add_option("--tolerance", options->tolerance, "For --check (0.1)")
      ->type_name("X")
      ->needs(check);
  verb->add_option("--template-path", options->launch.template_path,
                   "Directory of device headers, in place of the embedded ones")
      ->type_name("DIR");
  verb->callback([options, &session] { run_run(*options, session); });
}

}  // namespace lacuna::tools
