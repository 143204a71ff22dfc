// What several verbs ask for: spec files, an architecture, a head dim and a dtype.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.hpp"
#include "compiler/spec/spec.hpp"
#include "compiler/target/target.hpp"
#include "tools/common/session.hpp"

namespace lacuna::tools {

struct LoweringOptions {
  std::vector<std::string> archs;  ///< names of targets; checked
  std::optional<int> head_dim;     ///< absent: the spec's first, else 128
  std::optional<int> head_dim_v;   ///< absent: the spec's first, else as head_dim
  std::optional<DType> dtype;      ///< absent: the spec's first, else bf16
  int relief = 0;                  ///< BuildOptions::relief
  BatchLayout batch = BatchLayout::kUniform;
  KvFormat kv = KvFormat::kSame;
};

/// Of a verb that makes several variants of a spec at once; an empty list: as in LoweringOptions.
struct VariantOptions {
  std::vector<std::string> archs;  ///< names of targets; checked
  std::vector<int> head_dims;
  std::optional<int> head_dim_v;  ///< of all of them
  std::vector<DType> dtypes;
  std::vector<BatchLayout> batches;
  KvFormat kv = KvFormat::kSame;
  int relief = 0;
};

/// "a, b, c".
std::string join(const std::vector<std::string>& words);

/// Rejects what is not one of `legal`, with the nearest of them.
CLI::Validator one_of(std::vector<std::string> legal);

/// --arch (a comma list), --head-dim, --head-dim-v, --dtype, --batch, --kv, --relief.
void add_lowering_options(CLI::App& verb, LoweringOptions& options, const std::string& arch_help);

/// The same with comma lists.
void add_variant_options(CLI::App& verb, VariantOptions& options);

void add_dtype_option(CLI::App& verb, std::optional<DType>& dtype, const std::string& help);

BuildOptions build_options(const VariantSpec& spec, const LoweringOptions& options);

/// One for each combination of head dim, dtype and batch.
std::vector<BuildOptions> build_variants(const VariantSpec& spec, const VariantOptions& options);

/// Before long work: whether the file `path` can be written ("": none is), which is reported.
/// What it reads from is in `inputs`, and is not replaced.
bool check_output(const std::string& path, Session& session,
                  const std::vector<std::string>& inputs = {});

/// Reads and checks a spec file ("-": standard input); nullopt if anything is wrong, which has then
/// been reported.
std::optional<SpecDocument> load_spec(const std::string& path, Session& session);

/// The same for what measures the tiles of one attend: a spec with branches is refused, by the
/// place of these.
std::optional<SpecDocument> load_one_attend(const std::string& path, Session& session);

/// `paths` without JSON Schemas: `specs/*.json` names schema.json too. Says so for each.
std::vector<std::string> without_schemas(const std::vector<std::string>& paths,
                                         const Session& session);

/// One branch of a spec by its name, as a spec of its own: its tiles are those that it has beside
/// the others. "": a spec of one attend. A branch over means has no tiles of tokens, and is
/// refused.
std::optional<SpecDocument> load_branch(const std::string& path, const std::string& branch,
                                        Session& session);

/// A spec, or a branch of it.
struct SpecPart {
  std::string path, branch;  ///< branch: "" of a spec of one attend
};

/// What has tiles of tokens of its own: each spec of one attend, and of a spec with branches each
/// that attends to tokens. Without JSON Schemas. Says what is left out. A branch that is named is
/// taken of all specs.
std::vector<SpecPart> parts_of(const std::vector<std::string>& paths, const std::string& branch,
                               const Session& session);

/// The targets of `names`, which add_lowering_options has checked.
std::vector<Target> targets_of(const std::vector<std::string>& names);

}  // namespace lacuna::tools
