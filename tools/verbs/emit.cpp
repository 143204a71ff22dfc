// lacuna emit: the text (or code) of any stop on the path from JSON to machine code.
#include "compiler/emit/emit.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

#include "compiler/diag/printable.hpp"
#include "compiler/passes/pass.hpp"
#include "compiler/target/plan.hpp"
#include "compiler/target/plan_values.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/cpu/host_plugin.hpp"
#include "runtime/engine/build/build.hpp"
#include "tools/common/spec_options.hpp"
#include "tools/io/file_io.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

struct EmitOptions {
  std::string form;
  std::string spec;
  std::string kernel;  ///< of forms that are of one kernel; empty: attend
  std::string branch;  ///< of a spec that has some; empty: all
  std::string out = "-";
  std::string template_path = environment(EnvironmentVariable::kTemplatePath);
  bool passes = false;
  LoweringOptions lowering;
  std::string kernel_or_attend() const { return kernel.empty() ? "attend" : kernel; }
};

constexpr const char* kEmitDescription =
    R"(Print a spec in one of its forms on the way from JSON to machine code.

Examples:
  lacuna emit --form program specs/bsfa.json
  lacuna emit --form plan specs/bsfa.json --arch sm_80 --passes
  lacuna emit --form cuda specs/bsfa.json
  lacuna emit --form cubin specs/bsfa.json --arch sm_90a -o bsfa.cubin
  lacuna emit --form ptx specs/sparge.json --kernel estimate

The forms, in order: spec, program, plan, cuda, ptx, cubin; beside cuda: launch; on the CPU: llvm.
See also: explain, build)";

/// What a form is made of; the plan is there from the form `plan` on.
struct Lowered {
  const SpecDocument& document;
  BuildOptions build;
  Plan plan;
};

using Text = std::optional<std::string>;

Text emit_program(const EmitOptions& options, const SpecDocument& document, Session& session) {
  Diagnostics diagnostics;
  const Program program =
      build_program(document, build_options(document.spec, options.lowering), diagnostics);
  session.report(diagnostics, document.source);
  if (diagnostics.has_errors()) return std::nullopt;
  return print_program(program);
}

std::optional<Plan> lower(const EmitOptions& options, const SpecDocument& document,
                          Session& session) {
  const std::string arch = options.form == "llvm"           ? "cpu"
                           : options.lowering.archs.empty() ? "sm_90a"
                                                            : options.lowering.archs.front();
  PassObserver observer;
  if (options.passes) {
    observer = [](std::string_view pass, const Program& before, const Program& after) {
      std::fputs(printable_lines(describe_pass(pass, before, after)).c_str(), stderr);
    };
  }
  Diagnostics diagnostics;
  Plan plan = make_plan(document, build_options(document.spec, options.lowering),
                        *find_target(arch), diagnostics, observer);
  session.report(diagnostics, document.source);
  if (diagnostics.has_errors()) return std::nullopt;
  return plan;
}

/// Place of the kernel asked for; nothing, with the nearest name, if the spec has no such kernel.
std::optional<std::size_t> find_kernel(const EmitOptions& options, const CudaSource& source,
                                       Session& session) {
  std::vector<std::string> names;
  for (const CudaKernel& kernel : source.kernels) names.push_back(kernel.name);
  const std::string kernel = options.kernel_or_attend();
  const auto found = std::ranges::find(names, kernel);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  session.fail(ExitCode::kUsage, "--kernel: " + one_of(names)(kernel));
  return std::nullopt;
}

/// PTX or cubin of one kernel, by NVRTC.
Text compile(const EmitOptions& options, const SpecDocument& document, const Plan& plan,
             Session& session) {
  if (!find_kernel(options, emit_cuda(plan, document), session)) return std::nullopt;
  Diagnostics diagnostics;
  const auto nvrtc = load_nvrtc(0, diagnostics);
  if (!nvrtc) {
    session.report(diagnostics, {"NVRTC", ""});
    session.exit_code = ExitCode::kEnvironment;
    return std::nullopt;
  }
  const bool want_ptx = options.form == "ptx";
  const BuildOptions build = build_options(document.spec, options.lowering);
  BuiltKernel built = build_kernel({.plan = plan,
                                    .document = document,
                                    .nvrtc = at_hand(nvrtc),
                                    .store = nullptr,
                                    .template_path = options.template_path,
                                    .want_ptx = want_ptx,
                                    .only = options.kernel_or_attend(),
                                    .options = &build},
                                   diagnostics);
  session.report(diagnostics, document.source);
  if (diagnostics.has_errors()) return std::nullopt;
  const auto kernel = find_kernel(options, built.source, session);  // of a relieved plan, perhaps
  if (!kernel) return std::nullopt;
  return want_ptx ? built.ptx[*kernel] : built.entry.cubins[*kernel];
}

/// What the CPU backend makes of a program, after optimisation.
Text emit_llvm(const Program& program, Session& session) {
  const HostPlugin host = load_host_plugin();
  if (host.backend == nullptr) {
    session.fail(ExitCode::kEnvironment, host.missing);
    return std::nullopt;
  }
  const std::string text = print_program(program);
  std::array<char, 4096> error{};
  void* kernel = nullptr;
  const int status =
      host.backend->compile(text.data(), text.size(), &kernel, error.data(), error.size());
  if (status == kHostOutOfMemory) throw std::bad_alloc();
  if (status != kHostDone) {
    session.fail(ExitCode::kInternal, error.data());
    return std::nullopt;
  }
  std::string llvm_ir = host.backend->llvm_ir(kernel);
  host.backend->release(kernel);
  return llvm_ir;
}

Text emit_form(const EmitOptions& options, const SpecDocument& document, Session& session) {
  const std::string& form = options.form;
  if (form == "spec") return print_spec(document.spec);
  if (form == "program") return emit_program(options, document, session);
  const auto plan = lower(options, document, session);
  if (!plan) return std::nullopt;
  if (form == "plan") return print_plan(*plan);
  if (form == "llvm") return emit_llvm(plan->program, session);
  if (plan->target.kind != TargetKind::kCuda) {
    session.fail(ExitCode::kUsage, "form " + form + " needs a GPU architecture, got --arch cpu");
    return std::nullopt;
  }
  if (form == "cuda") return source_text(emit_cuda(*plan, document));
  if (form == "launch") return print_launch_program(emit_launch_program(*plan));
  return compile(options, document, *plan, session);
}

/// The form of each branch, one behind the other; what is no text only of the one that is asked
/// for.
Text emit_branches(const EmitOptions& options, const SpecDocument& document, Session& session) {
  if (options.form == "spec" || document.spec.branches.empty())
    return emit_form(options, document, session);
  std::vector<std::string> names;
  for (const VariantSpec& branch : document.spec.branches) names.push_back(branch.branch.name);
  const bool is_text = options.form != "ptx" && options.form != "cubin";
  const bool is_known = std::ranges::count(names, options.branch) > 0;
  if (!is_known && !(options.branch.empty() && is_text)) {
    session.fail(ExitCode::kUsage, "--branch: " + one_of(names)(options.branch));
    return std::nullopt;
  }
  std::string all;
  for (const SpecDocument& branch : branch_documents(document)) {
    if (!options.branch.empty() && branch.spec.branch.name != options.branch) continue;
    const Text text = emit_form(options, branch, session);
    if (!text) return std::nullopt;
    all += *text;
  }
  return all;
}

/// What is asked for and would make no difference; "" if nothing is.
std::string without_effect(const EmitOptions& options, const SpecDocument& document) {
  const bool is_code = options.form == "ptx" || options.form == "cubin";
  if (!options.kernel.empty() && !is_code)
    return "--kernel: form " + options.form + " has all kernels; ptx and cubin are of one";
  if (!options.branch.empty() && document.spec.branches.empty())
    return "--branch: the spec has none";
  if (!options.branch.empty() && options.form == "spec")
    return "--branch: form spec is of the whole spec";
  if (options.lowering.archs.size() > 1) return "--arch: a form is of one architecture";
  return "";
}

void run_emit(const EmitOptions& options, Session& session) {
  const bool is_spec = options.form == "spec";  // which may take the place of what was written
  if (options.out != "-" && !is_spec && !check_output(options.out, session, {options.spec})) return;
  const auto document = load_spec(options.spec, session);
  if (!document) return;
  if (const std::string misuse = without_effect(options, *document); !misuse.empty()) {
    session.fail(ExitCode::kUsage, misuse);
    return;
  }
  const Text text = emit_branches(options, *document, session);
  if (!text) return;
  session.document["spec"] = document->spec.name;
  session.document["form"] = options.form;
  if (options.out != "-") {
    Diagnostics diagnostics;
    write_file(options.out, *text, diagnostics);
    session.report(diagnostics, {options.out, ""});
    session.document["file"] = options.out;
  } else {
    session.document["text"] = options.form == "cubin" ? "" : *text;
    session.print_data(*text);
  }
}

}  // namespace

void add_emit(CLI::App& app, Session& session) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* verb = app.add_subcommand("emit", kEmitDescription);
  // --stage: its name before, for scripts that have it.
  verb->add_option("--form,--stage", options->form, "Where to stop")
      ->required()
      ->check(one_of({"spec", "program", "plan", "cuda", "ptx", "cubin", "launch", "llvm"}))
      ->type_name("FORM");
  verb->add_option("spec", options->spec, "A spec file; - is standard input")->required();
  verb->add_option("--kernel", options->kernel, "Kernel whose ptx or cubin to print (attend)")
      ->type_name("NAME");
  verb->add_option("--branch", options->branch, "Branch of the spec, if it has some (all)")
      ->type_name("NAME");
  verb->add_option("-o,--out", options->out, "File to write (standard output)")->type_name("FILE");
  verb->add_option("--template-path", options->template_path,
                   "Directory of device headers, in place of the embedded ones")
      ->type_name("DIR");
  verb->add_flag("--passes", options->passes, "Show on stderr what each pass changed");
  add_lowering_options(*verb, options->lowering, "Architecture (sm_90a)");
  verb->callback([options, &session] { run_emit(*options, session); });
}

}  // namespace lacuna::tools
