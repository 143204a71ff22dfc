// lacuna build: cubins for shipping, compiled ahead of time on any machine that has NVRTC.
#include "runtime/engine/build/build.hpp"

#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "cache/bundle.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/passes/check_request.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/threads/parallel_for.hpp"
#include "runtime/cuda/device_headers.hpp"
#include "tools/common/progress_line.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/common/table.hpp"
#include "tools/io/file_io.hpp"
#include "tools/io/whole_files.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

struct BuildVerbOptions {
  std::vector<std::string> specs;
  std::string out_directory, bundle;
  std::string template_path = environment(EnvironmentVariable::kTemplatePath);
  VariantOptions variants;
};

constexpr const char* kBuildDescription =
    R"(Compile kernels ahead of time. Needs NVRTC, no GPU and no driver.

Examples:
  lacuna build specs/bsfa.json --arch sm_90a -o kernels
  lacuna build specs/*.json --arch sm_80,sm_89,sm_90a,sm_100a,sm_120a -o kernels --json
  lacuna build specs/bsfa.json --arch sm_90a --batch uniform,pages --bundle kernels.lacuna

A bundle is one file for hosts to embed or map (lacuna_engine_add_kernels): on a machine without
NVRTC its kernels run as if they had been compiled there. Into a folder are written
SPEC-dHEAD_DIM-DTYPE.ARCH.cu, and .ARCH.KERNEL.cubin for each of its kernels (attend, and those that
prepare for it); what is not as usual is in the name as well: another head dim of V, a batch, 8 bits
of K and V (mla-d576-v512-bf16-pages). All files or none are written. A build that is killed may
leave a folder with .staging- in its name, which the next one removes.
See also: emit --form cubin, explain)";

/// One kernel to compile, and what came of it.
struct Task {
  const SpecDocument* document = nullptr;
  Target target;
  BuildOptions build;
  Diagnostics diagnostics;
  BuiltKernel kernel;

  /// "d128-bf16", "d192-v128-bf16-pages-e4m3"
  std::string variant() const {
    std::string text = "d" + std::to_string(build.head_dim);
    const int width = head_dim_v(document->spec, build);
    if (width != build.head_dim) text += "-v" + std::to_string(width);
    text += "-" + std::string(name_of(build.dtype));
    if (build.batch != BatchLayout::kUniform) text += "-" + std::string(name_of(build.batch));
    if (build.kv != KvFormat::kSame) text += "-" + std::string(name_of(build.kv));
    return text;
  }
  std::string file_stem() const {
    return document->spec.name + "-" + variant() + "." + target.name;
  }
  std::string cubin_name(std::size_t n) const {
    return file_stem() + "." + kernel.source.kernels[n].name + ".cubin";
  }
};

void compile(Task& task, const std::shared_ptr<const Nvrtc>& nvrtc,
             const std::string& template_path, int threads) {
  const Plan plan = make_plan(*task.document, task.build, task.target, task.diagnostics);
  if (task.diagnostics.has_errors()) return;
  task.kernel = build_kernel({.plan = plan,
                              .document = *task.document,
                              .nvrtc = at_hand(nvrtc),
                              .store = nullptr,
                              .template_path = template_path,
                              .want_ptx = false,
                              .threads = threads,
                              .options = &task.build},
                             task.diagnostics);
}

/// Compiles all tasks, on as many threads as the machine has cores; fewer tasks share them.
void compile_all(std::vector<Task>& tasks, const std::shared_ptr<const Nvrtc>& nvrtc,
                 const std::string& template_path) {
  const bool show_progress = ::isatty(STDERR_FILENO) == 1;
  std::atomic<std::size_t> done{0};
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t workers = std::min(cores, tasks.size());
  const int of_task = static_cast<int>(cores / std::max<std::size_t>(1, workers));
  parallel_for(
      workers, static_cast<std::int64_t>(tasks.size()), [&](std::int64_t item, std::size_t) {
        compile(tasks[static_cast<std::size_t>(item)], nvrtc, template_path, of_task);
        const std::size_t count = ++done;
        if (show_progress)
          show_line(std::to_string(count) + "/" + std::to_string(tasks.size()) + " kernels");
      });
  if (show_progress) clear_line();
}

bool write_outputs(const std::vector<Task>& tasks, const std::string& directory, Session& session) {
  std::vector<NewFile> files;
  for (const Task& task : tasks) {
    files.push_back({task.file_stem() + ".cu", source_text(task.kernel.source)});
    for (std::size_t n = 0; n < task.kernel.entry.cubins.size(); ++n) {
      files.push_back({task.cubin_name(n), task.kernel.entry.cubins[n]});
    }
  }
  const auto failed = write_together(directory, files);
  if (failed) session.report(failed->diagnostics, {failed->path, ""});
  return !failed;
}

bool write_bundle(const std::vector<Task>& tasks, const std::string& path, Session& session) {
  std::vector<cache::Entry> entries;
  for (const Task& task : tasks) entries.push_back(task.kernel.entry);
  Diagnostics diagnostics;
  write_file(path, cache::encode_bundle(entries), diagnostics);
  session.report(diagnostics, {path, ""});
  return !diagnostics.has_errors();
}

/// Two specs of one name would have the same files.
bool check_names(const std::vector<SpecDocument>& documents, Session& session) {
  std::map<std::string, std::string> paths;
  for (const SpecDocument& document : documents) {
    const auto [known, is_new] = paths.emplace(document.spec.name, document.source.path);
    if (is_new) continue;
    session.fail(ExitCode::kInput, known->second + " and " + document.source.path +
                                       " have the same name, " + document.spec.name +
                                       ", and would write the same files");
    return false;
  }
  return true;
}

void report_kernels(const std::vector<Task>& tasks, bool has_files, Session& session) {
  Table table{.head = {"spec", "variant", "arch", "kernel", "registers", "spills", "shared memory",
                       "compiled in"},
              .rows = {}};
  auto& kernels = session.document["kernels"];
  for (const Task& task : tasks) {
    for (std::size_t n = 0; n < task.kernel.kernels.size(); ++n) {
      const KernelResources& kernel = task.kernel.kernels[n];
      kernels.push_back({{"spec", task.document->spec.name},
                         {"name", kernel.name},
                         {"arch", task.target.name},
                         {"head_dim", task.build.head_dim},
                         {"dtype", name_of(task.build.dtype)},
                         {"batch", name_of(task.build.batch)},
                         {"key", task.kernel.key.sha256},
                         {"registers", kernel.registers},
                         {"spill_bytes", kernel.spill_bytes},
                         {"smem_bytes", kernel.smem_bytes},
                         {"compile_ms", task.kernel.compile_ms},
                         {"relief", task.kernel.relief}});
      if (has_files) kernels.back()["file"] = task.cubin_name(n);
      table.rows.push_back({task.document->spec.name, task.variant(), task.target.name, kernel.name,
                            std::to_string(kernel.registers),
                            std::to_string(kernel.spill_bytes) + " B",
                            print_bytes(static_cast<std::uint64_t>(kernel.smem_bytes)),
                            print_time_us(task.kernel.compile_ms * 1e3)});
    }
  }
  session.print(print_table(table, session.color_stdout()));
}

/// All specs, or nothing if one of them has errors (all of which are reported).
std::optional<std::vector<SpecDocument>> load_specs(const std::vector<std::string>& paths,
                                                    Session& session) {
  std::vector<SpecDocument> documents;
  for (const std::string& path : paths) {
    if (auto document = load_spec(path, session)) documents.push_back(std::move(*document));
  }
  if (documents.size() != paths.size()) return std::nullopt;
  return documents;
}

void run_build(const BuildVerbOptions& options, Session& session) {
  session.document["kernels"] = nlohmann::ordered_json::array();
  if (options.out_directory.empty() && options.bundle.empty()) {
    session.fail(ExitCode::kUsage, "expected -o DIR, --bundle FILE or both");
    return;
  }
  if (!check_output(options.bundle, session, options.specs)) return;
  const auto documents = load_specs(without_schemas(options.specs, session), session);
  if (!documents) return;
  if (!options.out_directory.empty() && !check_names(*documents, session)) return;
  Diagnostics diagnostics;
  const auto nvrtc = load_nvrtc(0, diagnostics);
  if (!nvrtc) {
    session.report(diagnostics, {"NVRTC", ""});
    session.exit_code = ExitCode::kEnvironment;
    return;
  }
  // Once, not once for each kernel.
  device_headers(options.template_path, diagnostics);
  if (diagnostics.has_errors()) {
    session.report(diagnostics, {"lacuna", ""});
    session.exit_code = ExitCode::kEnvironment;
    return;
  }
  std::vector<SpecDocument> attends;
  for (const SpecDocument& document : *documents)
    for (SpecDocument& branch : branch_documents(document)) attends.push_back(std::move(branch));
  std::vector<Task> tasks;
  for (const SpecDocument& document : attends) {
    for (const BuildOptions& variant : build_variants(document.spec, options.variants)) {
      for (const Target& target : targets_of(options.variants.archs)) {
        Task& task = tasks.emplace_back();
        task.document = &document;
        task.target = target;
        task.build = variant;
      }
    }
  }
  compile_all(tasks, nvrtc, options.template_path);
  for (const Task& task : tasks) session.report(task.diagnostics, task.document->source);
  if (session.exit_code != ExitCode::kOk) return;
  if (tasks.empty()) return;
  if (!options.out_directory.empty() && !write_outputs(tasks, options.out_directory, session))
    return;
  if (!options.bundle.empty() && !write_bundle(tasks, options.bundle, session)) return;
  report_kernels(tasks, !options.out_directory.empty(), session);
}

}  // namespace

void add_build(CLI::App& app, Session& session) {
  auto options = std::make_shared<BuildVerbOptions>();
  CLI::App* verb = app.add_subcommand("build", kBuildDescription);
  verb->add_option("spec", options->specs, "Spec files")->required();
  verb->add_option("-o,--out", options->out_directory, "Directory to write into")->type_name("DIR");
  verb->add_option("--bundle", options->bundle, "One file with all kernels, for hosts to ship")
      ->type_name("FILE");
  verb->add_option("--template-path", options->template_path,
                   "Directory of device headers, in place of the embedded ones")
      ->type_name("DIR");
  add_variant_options(*verb, options->variants);
  verb->get_option("--arch")->required();
  verb->callback([options, &session] { run_build(*options, session); });
}

}  // namespace lacuna::tools
