#include "tools/common/spec_options.hpp"

#include "compiler/ir/names.hpp"
#include "compiler/passes/relief.hpp"
#include "compiler/spec/json/json_limits.hpp"
#include "tools/io/file_io.hpp"

namespace lacuna::tools {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

namespace {

std::vector<std::string> target_names(bool with_cpu) {
  std::vector<std::string> names;
  for (const Target& target : all_targets())
    if (with_cpu || target.kind == TargetKind::kCuda) names.push_back(target.name);
  return names;
}

template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const E one : kAll<E>) names.emplace_back(name_of(one));
  return names;
}

void add_arch_option(CLI::App& verb, std::vector<std::string>& archs, const std::string& help,
                     bool with_cpu = true) {
  verb.add_option("--arch", archs, help)
      ->delimiter(',')
      ->check(one_of(target_names(with_cpu)))
      ->type_name("NAME");
}

void add_relief_option(CLI::App& verb, int& relief) {
  verb.add_option("--relief", relief,
                  "Plan for fewer registers: what `build` reports where a kernel spilled (0)")
      ->check(CLI::Range(0, static_cast<int>(reliefs().size()) - 1))
      ->type_name("N");
}

/// A comma list of names.
template <class E>
void add_list_option(CLI::App& verb, const char* name, std::vector<E>& values,
                     const std::string& help) {
  verb.add_option_function<std::vector<std::string>>(
          name,
          [&values](const std::vector<std::string>& words) {
            for (const std::string& word : words) {
              if (const auto value = find_by_name<E>(word)) values.push_back(*value);
            }
          },
          help)
      ->delimiter(',')
      ->check(one_of(names_of<E>()))
      ->type_name("NAME");
}

bool is_json_schema(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return false;
  const auto schema = json.find("$schema");
  return schema != json.end() && schema->is_string() &&
         schema->get<std::string>().find("json-schema.org") != std::string::npos;
}

/// Why a branch is no spec by itself; "" if it is one.
std::string not_alone(const BranchSpec& branch) {
  if (branch.means > 1) return "attends to means: its tiles are not those of tokens";
  if (branch.query_means > 1) return "has means of queries: its tiles are not those of tokens";
  if (!branch.dims.empty())
    return "compares dims " + branch.dims + ": its rows are not those of the tensors";
  return "";
}

/// Whatever stands between letters and digits.
bool begins_with(std::string candidate, std::string word) {
  for (std::string* text : {&candidate, &word})
    std::erase_if(*text, [](char c) { return c == '_' || c == '-'; });
  return candidate.starts_with(word);
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> legal) {
  return CLI::Validator(
      [legal = std::move(legal)](const std::string& word) -> std::string {
        std::string nearest = nearest_word(word, legal);
        for (const std::string& candidate : legal) {
          if (candidate == word) return "";
          if (begins_with(candidate, word)) nearest = candidate;  // sm_90, sm90 -> sm_90a
        }
        return "expected one of " + join(legal) + ", got " + word +
               (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?");
      },
      "");
}

void add_head_dim_v_option(CLI::App& verb, std::optional<int>& head_dim_v) {
  verb.add_option("--head-dim-v", head_dim_v,
                  "Head dim of V and O (the spec's first, else that of Q and K)")
      ->type_name("N");
}

void add_kv_option(CLI::App& verb, KvFormat& kv) {
  verb.add_option_function<std::string>(
          "--kv",
          [&kv](const std::string& name) {
            kv = find_by_name<KvFormat>(name).value_or(KvFormat::kSame);
          },
          "Element type of K and V: same (as Q), e4m3 (with scales of the launch)")
      ->check(one_of(names_of<KvFormat>()))
      ->type_name("NAME");
}

void add_lowering_options(CLI::App& verb, LoweringOptions& options, const std::string& arch_help) {
  add_arch_option(verb, options.archs, arch_help);
  verb.add_option("--head-dim", options.head_dim, "Head dim (the spec's first, else 128)")
      ->type_name("N");
  add_head_dim_v_option(verb, options.head_dim_v);
  add_dtype_option(verb, options.dtype,
                   "Element type: bf16, f16, f32 (the spec's first, else bf16)");
  verb.add_option_function<std::string>(
          "--batch",
          [&options](const std::string& name) {
            options.batch = find_by_name<BatchLayout>(name).value_or(BatchLayout::kUniform);
          },
          "How batch entries lie: uniform, sequences (ragged), pages (ragged, paged K and V)")
      ->check(one_of(names_of<BatchLayout>()))
      ->type_name("NAME");
  add_kv_option(verb, options.kv);
  add_relief_option(verb, options.relief);
}

void add_variant_options(CLI::App& verb, VariantOptions& options) {
  add_arch_option(verb, options.archs, "GPU architectures", /*with_cpu=*/false);
  verb.add_option("--head-dim", options.head_dims, "Head dims (the spec's first, else 128)")
      ->delimiter(',')
      ->type_name("N");
  add_head_dim_v_option(verb, options.head_dim_v);
  add_list_option(verb, "--dtype", options.dtypes,
                  "Element types: bf16, f16 (the spec's first, else bf16)");
  add_list_option(
      verb, "--batch", options.batches,
      "How batch entries lie: uniform, sequences (ragged), pages (ragged, paged K and V)");
  add_kv_option(verb, options.kv);
  add_relief_option(verb, options.relief);
}

void add_dtype_option(CLI::App& verb, std::optional<DType>& dtype, const std::string& help) {
  verb.add_option_function<std::string>(
          "--dtype", [&dtype](const std::string& name) { dtype = find_by_name<DType>(name); }, help)
      ->check(one_of(names_of<DType>()))
      ->type_name("NAME");
}

BuildOptions build_options(const VariantSpec& spec, const LoweringOptions& options) {
  BuildOptions result;
  const auto& head_dims = spec.attention.head_dim.values;
  const auto& dtypes = spec.attention.dtype.values;
  result.head_dim = options.head_dim.value_or(head_dims.empty() ? 128 : head_dims.front());
  result.dtype = options.dtype.value_or(dtypes.empty() ? DType::kBF16 : dtypes.front());
  result.head_dim_v = options.head_dim_v.value_or(0);
  result.batch = options.batch;
  result.kv = options.kv;
  result.relief = options.relief;
  return result;
}

std::vector<BuildOptions> build_variants(const VariantSpec& spec, const VariantOptions& options) {
  LoweringOptions one;
  one.relief = options.relief;
  one.head_dim_v = options.head_dim_v;
  one.kv = options.kv;
  const BuildOptions usual = build_options(spec, one);
  const auto or_usual = []<class T>(std::vector<T> values, T one) {
    if (values.empty()) values.push_back(one);
    return values;
  };
  std::vector<BuildOptions> variants;
  for (const int head_dim : or_usual(options.head_dims, usual.head_dim)) {
    for (const DType dtype : or_usual(options.dtypes, usual.dtype)) {
      for (const BatchLayout batch : or_usual(options.batches, usual.batch)) {
        BuildOptions& variant = variants.emplace_back(usual);
        variant.head_dim = head_dim;
        variant.dtype = dtype;
        variant.batch = batch;
      }
    }
  }
  return variants;
}

bool check_output(const std::string& path, Session& session,
                  const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (path.empty() || input.empty() || !std::filesystem::equivalent(path, input, error)) continue;
    if (!std::filesystem::is_regular_file(path, error)) continue;  // what is sent on, /dev/null
    session.fail(ExitCode::kUsage,
                 path + " is read by this command, and would be replaced: name another file");
    return false;
  }
  Diagnostics diagnostics;
  if (!path.empty()) check_writable(path, diagnostics);
  session.report(diagnostics, {path, ""});
  return !diagnostics.has_errors();
}

std::optional<SpecDocument> load_spec(const std::string& path, Session& session) {
  Diagnostics diagnostics;
  const SourceText nameless{path == "-" ? "<stdin>" : path, ""};
  auto text = read_file(path, diagnostics, kMostJsonBytes);
  if (!text) {
    session.report(diagnostics, nameless);
    return std::nullopt;
  }
  SpecDocument document = read_spec({nameless.path, std::move(*text)}, diagnostics);
  session.report(diagnostics, document.source);
  if (diagnostics.has_errors()) return std::nullopt;
  return document;
}

std::optional<SpecDocument> load_one_attend(const std::string& path, Session& session) {
  auto document = load_spec(path, session);
  if (!document || document->spec.branches.empty()) return document;
  Diagnostics diagnostics;
  Diagnostic& d = diagnostics.add({.code = Code::kUnsupported,
                                   .message = "branches: expected a spec of one attend here",
                                   .pointer = "/branches",
                                   .span = document->spans.at("/branches")});
  d.notes.emplace_back("tiles are reported, tuned and calibrated for one attend");
  d.helps.emplace_back(
      "--branch NAME takes one of them; lacuna run and bench measure all together");
  session.report(diagnostics, document->source);
  return std::nullopt;
}

std::optional<SpecDocument> load_branch(const std::string& path, const std::string& branch,
                                        Session& session) {
  if (branch.empty()) return load_one_attend(path, session);
  const auto document = load_spec(path, session);
  if (!document) return std::nullopt;
  std::vector<std::string> names;
  for (const VariantSpec& each : document->spec.branches) {
    const std::string misfit = not_alone(each.branch);
    if (misfit.empty()) names.push_back(each.branch.name);
    if (each.branch.name != branch) continue;
    if (!misfit.empty()) {
      session.fail(ExitCode::kInput, "branch " + branch + " " + misfit);
      return std::nullopt;
    }
    VariantSpec alone = each;
    alone.branch = {};
    Diagnostics known;  // what there is to say about the spec has been said
    return read_spec({document->source.path, print_spec(alone)}, known);
  }
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  session.fail(ExitCode::kInput, document->spec.name + " has no branch " + branch +
                                     (all.empty() ? "" : "; branches over whole tokens: " + all));
  return std::nullopt;
}

std::vector<std::string> without_schemas(const std::vector<std::string>& paths,
                                         const Session& session) {
  std::vector<std::string> specs;
  for (const std::string& path : paths) {
    Diagnostics unreadable;  // reported when the spec is loaded
    const auto text = path == "-" ? std::nullopt : read_file(path, unreadable, kMostJsonBytes);
    if (text && is_json_schema(*text)) {
      session.note(path + " is a JSON Schema, not a spec; left out");
    } else {
      specs.push_back(path);
    }
  }
  return specs;
}

std::vector<SpecPart> parts_of(const std::vector<std::string>& paths, const std::string& branch,
                               const Session& session) {
  std::vector<SpecPart> parts;
  for (const std::string& path : without_schemas(paths, session)) {
    Diagnostics later;  // reported when the spec is loaded
    const auto text = path == "-" ? std::nullopt : read_file(path, later, kMostJsonBytes);
    const std::vector<VariantSpec> branches = text && branch.empty()
                                                  ? read_spec({path, *text}, later).spec.branches
                                                  : std::vector<VariantSpec>();
    if (branches.empty()) parts.push_back({path, branch});
    for (const VariantSpec& each : branches) {
      const std::string misfit = not_alone(each.branch);
      if (misfit.empty())
        parts.push_back({path, each.branch.name});
      else
        session.note(path + ": branch " + each.branch.name + " " + misfit + "; left out");
    }
  }
  return parts;
}

std::vector<Target> targets_of(const std::vector<std::string>& names) {
  std::vector<Target> targets;
  for (const std::string& name : names) {
    if (const auto target = find_target(name)) targets.push_back(*target);
  }
  return targets;
}

}  // namespace lacuna::tools
