// lacuna viz: pictures of what a spec does on real tensors.
#include <algorithm>
#include <cstdio>

#include "compiler/diag/printable.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/table.hpp"
#include "tools/inputs/load_inputs.hpp"
#include "tools/picture/calibration_picture.hpp"
#include "tools/picture/compare_picture.hpp"
#include "tools/picture/mask_picture.hpp"
#include "tools/run/launch.hpp"
#include "tools/run/mask_classes.hpp"
#include "tools/run/report.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

struct VizOptions {
  std::vector<std::string> specs;
  InputOptions input;
  LaunchOptions launch;
  std::string branch;
  std::string out;
};

constexpr const char* kVizDescription =
    R"(Draw which tiles a spec keeps, or compare specs by density and error.

Examples:
  lacuna viz mask specs/bsfa.json -o mask.svg
  lacuna viz mask specs/sparge.json --input x.safetensors --param tau=0.7 -o mask.png
  lacuna viz mask specs/nsa.json --branch selected -o mask.svg
  lacuna viz compare specs/*.json -o compare.svg
  lacuna viz calibration sparge.safetensors -o calibration.svg

See also: run --mask-out)";

std::string share(std::int64_t part, std::int64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

/// Tiles of one head, by look.
using Looks = std::array<std::int64_t, kTileLooks>;

Looks count_looks(const MaskPanels& panels, std::size_t panel) {
  Looks looks{};
  for (std::int64_t i = 0; i < panels.q_tiles; ++i)
    for (std::int64_t j = 0; j < panels.k_tiles; ++j)
      ++looks[static_cast<std::size_t>(panels.look(panel, i, j))];
  return looks;
}

std::int64_t count(const Looks& looks, TileLook look) {
  return looks[static_cast<std::size_t>(look)];
}

/// Panels of a run, with counts in their captions; the same counts go into the document.
MaskPanels panels_of(const std::string& name, const RunResult& result, MaskClasses& classes,
                     Session& session) {
  const auto& shape = result.tile_mask.shape;
  MaskPanels panels{.title = name + ", tiles of " + std::to_string(result.tile_q) + " x " +
                             std::to_string(result.tile_k),
                    .captions = {},
                    .q_tiles = shape[2],
                    .k_tiles = shape[3],
                    .look = {}};
  const std::int64_t heads = shape[1];
  panels.look = [&result, &classes, heads](std::size_t panel, std::int64_t i, std::int64_t j) {
    const auto head = static_cast<std::int64_t>(panel);
    const std::int64_t at = (head * result.tile_mask.shape[2] + i) * result.tile_mask.shape[3] + j;
    const auto code =
        static_cast<std::uint8_t>(result.tile_mask.bytes[static_cast<std::size_t>(at)]);
    return classes.look(static_cast<std::int32_t>(head / heads),
                        static_cast<std::int32_t>(head % heads), static_cast<std::int32_t>(i),
                        static_cast<std::int32_t>(j), code);
  };
  session.document["heads"] = nlohmann::ordered_json::array();
  for (std::int64_t head = 0; head < shape[0] * heads; ++head) {
    const Looks looks = count_looks(panels, static_cast<std::size_t>(head));
    const std::int64_t gated = count(looks, TileLook::kGated);
    const std::int64_t partial = count(looks, TileLook::kPartial);
    const std::int64_t kept = count(looks, TileLook::kFull) + partial + gated;
    const std::int64_t visible = kept + count(looks, TileLook::kDropped);
    panels.captions.push_back("head " + std::to_string(head) + ": kept " + share(kept, visible) +
                              (gated > 0 ? ", gated " + share(gated, kept) : ""));
    session.document["heads"].push_back({{"batch", head / heads},
                                         {"head", head % heads},
                                         {"visible", visible},
                                         {"kept", kept},
                                         {"partial", partial},
                                         {"gated", gated}});
  }
  return panels;
}

void save(const Picture& picture, const std::string& path, Session& session) {
  Diagnostics diagnostics;
  const bool written = write_picture(picture, path, diagnostics);
  session.report(diagnostics, {path, ""});
  if (!written) return;
  session.document["out"] = path;
  session.print(printable(path) + "\n");
}

/// The run of a spec on the inputs, without clocks.
struct Subject {
  SpecDocument document;
  Inputs inputs;
  RunResult result;
};

std::optional<Subject> run_subject(SpecDocument document, const VizOptions& options,
                                   Session& session) {
  auto inputs = load_inputs(options.input, document.spec, session);
  if (!inputs) return std::nullopt;
  LaunchOptions launch = options.launch;
  launch.times = false;
  auto result = run_and_measure(document, *inputs, launch, session);
  if (!result) return std::nullopt;
  return Subject{std::move(document), std::move(*inputs), std::move(*result)};
}

/// What only the caller can give and has not given; "" if nothing.
std::string missing_of(const VariantSpec& spec, const InputOptions& input) {
  if (spec.external_mask && input.tile_mask.empty()) return "--tile-mask FILE.npy";
  if (spec.permute.order == TokenOrder::kExternal && input.order.empty()) return "--order FILE.npy";
  std::string missing;
  for (const ParamSpec& param : spec.params) {
    const std::string& name = param.symbol.name;
    const bool is_given = std::ranges::any_of(input.params, [&](const std::string& assignment) {
      return assignment.starts_with(name + "=");
    });
    if (param.has_default || is_given || !input.calibration.path.empty()) continue;
    missing += (missing.empty() ? "--param " : ", ") + name + "=@FILE";
  }
  return missing;
}

std::vector<std::string> read_by(const VizOptions& options) {
  std::vector<std::string> files = options.specs;
  files.insert(files.end(), {options.input.input, options.input.calibration.path});
  return files;
}

void run_mask(const VizOptions& options, Session& session) {
  if (!check_output(options.out, session, read_by(options))) return;
  auto document = load_branch(options.specs.front(), options.branch, session);
  if (!document) return;
  const auto subject = run_subject(std::move(*document), options, session);
  if (!subject) return;
  const std::string& name = subject->document.spec.name;
  session.document["spec"] = name;
  MaskClasses classes(subject->document, subject->inputs, subject->result.tile_q,
                      subject->result.tile_k);
  const MaskPanels panels = panels_of(name, subject->result, classes, session);
  save(mask_picture(panels), options.out, session);
}

/// A spec to compare, and what it is called: its name, or that of its branch.
struct Compared {
  SpecPart part;
  SpecDocument document;
  std::string name;
};

/// The specs that have all they need; names that several have become paths. Nothing, if a spec
/// cannot be read.
std::optional<std::vector<Compared>> load_compared(const VizOptions& options, Session& session) {
  std::vector<Compared> all;
  const std::vector<SpecPart> parts = parts_of(options.specs, "", session);
  for (const SpecPart& part : parts) {
    auto document = load_branch(part.path, part.branch, session);
    if (!document) return std::nullopt;
    const std::string missing = missing_of(document->spec, options.input);
    if (!missing.empty() && parts.size() > 1) {
      session.note(part.path + " needs " + missing + "; left out");
      continue;
    }
    std::string name = document->spec.name;
    all.push_back({part, std::move(*document), std::move(name)});
  }
  const auto count = [&](const std::string& name) {
    return std::ranges::count_if(
        all, [&](const Compared& other) { return other.document.spec.name == name; });
  };
  for (Compared& one : all) {
    if (count(one.document.spec.name) < 2) continue;
    one.name = one.part.path + (one.part.branch.empty() ? "" : " " + one.part.branch);
  }
  return all;
}

void run_compare(const VizOptions& options, Session& session) {
  if (!check_output(options.out, session, read_by(options))) return;
  std::vector<ComparePoint> points;
  Table table{.head = {"spec", "density", "gated", "relative L1"}, .rows = {}};
  session.document["points"] = nlohmann::ordered_json::array();
  auto all = load_compared(options, session);
  if (!all) return;
  for (Compared& one : *all) {
    session.note("running " + one.part.path +
                 (one.part.branch.empty() ? "" : ", branch " + one.part.branch));
    const auto subject = run_subject(std::move(one.document), options, session);
    if (!subject) return;
    const TileCounts& tiles = subject->result.tiles;
    const OutputError error = compare(subject->result.o, subject->result.dense_o);
    const double density =
        tiles.visible > 0 ? static_cast<double>(tiles.visited) / static_cast<double>(tiles.visible)
                          : 0;
    points.push_back({one.name, density, error.rel_l1});
    table.rows.push_back({one.name, share(tiles.visited, tiles.visible),
                          share(tiles.gated, tiles.visited), print_scientific(error.rel_l1)});
    session.document["points"].push_back({{"spec", one.name},
                                          {"visible", tiles.visible},
                                          {"visited", tiles.visited},
                                          {"gated", tiles.gated},
                                          {"rel_l1", error.rel_l1}});
  }
  session.print(print_table(table, session.color_stdout()));
  if (!options.out.empty())
    save(compare_picture("Density and error", points), options.out, session);
}

void run_calibration(const VizOptions& options, Session& session) {
  if (!check_output(options.out, session, read_by(options))) return;
  const auto calibration = load_calibration(options.input.calibration.path, session);
  if (!calibration) return;
  session.document["spec"] = calibration->spec;
  save(calibration_picture(*calibration), options.out, session);
}

void add_options(CLI::App& verb, VizOptions& options) {
  verb.add_option("--input", options.input.input, "safetensors with q, k, v (the shipped sample)")
      ->type_name("FILE");
  verb.add_option("--param", options.input.params,
                  "A number, or a tensor from .npy or .safetensors; may be repeated")
      ->type_name("NAME=VALUE|NAME=@FILE")
      ->expected(1)
      ->take_all();
  add_calibration_options(verb, options.input.calibration);
  verb.add_option("--order", options.input.order, "Token order, for \"permute\": \"external\"")
      ->type_name("FILE.npy");
  verb.add_option("--tile-mask", options.input.tile_mask, "Tiles, for \"mask\": \"external\"")
      ->type_name("FILE.npy");
  verb.add_option("--device", options.launch.device, "cpu or cuda:N (first GPU, else CPU)")
      ->type_name("NAME");
  verb.add_option("--threads", options.launch.threads, "CPU threads (all)")->type_name("N");
  add_dtype_option(verb, options.input.dtype,
                   "Convert q, k, v first: bf16, f16, f32 (as they are)");
}

}  // namespace

void add_viz(CLI::App& app, Session& session) {
  CLI::App* verb = app.add_subcommand("viz", kVizDescription);
  verb->require_subcommand(1);
  auto mask_options = std::make_shared<VizOptions>();
  CLI::App* mask = verb->add_subcommand("mask", "The tiles of each head: kept, gated, partial");
  mask->add_option("spec", mask_options->specs, "A spec file")->required()->expected(1);
  add_options(*mask, *mask_options);
  mask->add_option("--branch", mask_options->branch, "The branch to draw, of a spec with several")
      ->type_name("NAME");
  mask->add_option("-o,--out", mask_options->out, "The picture, .svg or .png")
      ->required()
      ->type_name("FILE");
  mask->callback([mask_options, &session] { run_mask(*mask_options, session); });

  auto compare_options = std::make_shared<VizOptions>();
  CLI::App* compared =
      verb->add_subcommand("compare", "Density against error, one dot for each spec");
  compared->add_option("specs", compare_options->specs, "Spec files")->required();
  add_options(*compared, *compare_options);
  compared->add_option("-o,--out", compare_options->out, "The picture, .svg or .png")
      ->type_name("FILE");
  compared->callback([compare_options, &session] { run_compare(*compare_options, session); });

  auto calibration_options = std::make_shared<VizOptions>();
  CLI::App* calibration =
      verb->add_subcommand("calibration", "Density and error of each head and sample");
  calibration
      ->add_option("file", calibration_options->input.calibration.path,
                   "What `lacuna calibrate` wrote")
      ->required();
  calibration->add_option("-o,--out", calibration_options->out, "The picture, .svg or .png")
      ->required()
      ->type_name("FILE");
  calibration->callback(
      [calibration_options, &session] { run_calibration(*calibration_options, session); });
  for (CLI::App* one : {mask, compared, calibration}) add_common_options(*one, session);
}

}  // namespace lacuna::tools
