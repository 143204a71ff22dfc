#include "compiler/spec/fields.hpp"

#include <algorithm>
#include <cctype>

#include "compiler/expr/expr_tables.hpp"

namespace lacuna {
namespace {

using enum SpecFieldKind;
using enum Plural;

constexpr double kLargestF32 = std::numeric_limits<float>::max();
constexpr double kSmallestF32 = std::numeric_limits<float>::min();
constexpr std::array kVersions{1};
constexpr std::array kHeadDims{64, 96, 128, 256};

#define LACUNA_SLOT(member) [](const SpecDraft& draft) -> SpecSlot { return &draft.member; }

constexpr SpecField kFields[] = {
    {.path = "$schema",
     .kind = kText,
     .doc = "Where editors find the JSON Schema, which gives completion and hover texts."},
    {.path = "version",
     .kind = kInteger,
     .required = true,
     .values = kVersions,
     .doc = "Version of the spec language.",
     .why = "this build reads version 1 of the spec language",
     .slot = LACUNA_SLOT(spec->version)},
    {.path = "name",
     .kind = kName,
     .required = true,
     .doc = "Names the kernels and their files.",
     .why = "a name is a letter, then letters, digits, - and _, 64 characters in all",
     .slot = LACUNA_SLOT(spec->name)},
    {.path = "doc",
     .kind = kText,
     .doc = "What the variant does, in one paragraph.",
     .slot = LACUNA_SLOT(spec->doc)},
    {.path = "source",
     .kind = kText,
     .doc = "The paper or code it comes from.",
     .slot = LACUNA_SLOT(spec->source)},
    {.path = "attention", .kind = kObject, .doc = "The attention that is computed."},
    {.path = "attention.mask",
     .kind = kExpression,
     .site = Site::kMask,
     .fallback = "everything is visible",
     .doc = "Whether query token q sees key token k.",
     .slot = LACUNA_SLOT(spec->attention.mask)},
    {.path = "attention.score",
     .kind = kExpression,
     .site = Site::kScore,
     .fallback = "`s`",
     .doc = "The logit made of s, the scaled dot product of query q and key k.",
     .slot = LACUNA_SLOT(spec->attention.score)},
    {.path = "attention.scale",
     .kind = kNumber,
     .plural = kOrAuto,
     .minimum = kSmallestF32,
     .maximum = kLargestF32,
     .fallback = "1 / sqrt(head_dim)",
     .doc = "Softmax scale: what dot products are multiplied with.",
     .why = "the scale is a positive f32",
     .slot = LACUNA_SLOT(spec->attention.scale)},
    {.path = "attention.head_dim",
     .kind = kInteger,
     .plural = kOrListOrAuto,
     .values = kHeadDims,
     .fallback = "the caller decides",
     .doc = "Elements of a head.",
     .why = "kernels exist for these head dimensions",
     .slot = LACUNA_SLOT(spec->attention.head_dim)},
    {.path = "attention.dtype",
     .kind = kEnum,
     .plural = kOrListOrAuto,
     .names = kDTypeNames,
     .fallback = "the caller decides",
     .doc = "Element type of Q, K, V and O. f32 runs on the CPU only.",
     .slot = LACUNA_SLOT(spec->attention.dtype)},
    {.path = "attention.lse",
     .kind = kBoolean,
     .fallback = "true",
     .doc = "Whether the log-sum-exp of each row can be asked for.",
     .slot = LACUNA_SLOT(spec->attention.lse)},
    {.path = "params",
     .kind = kParams,
     .doc = "Run-time arguments that expressions read by name; changing one never recompiles.",
     .why = "a parameter name is a letter or _, then letters, digits and _, 64 characters in all"},
    {.path = "params.*", .kind = kObject, .doc = "One parameter."},
    {.path = "params.*.type",
     .kind = kEnum,
     .names = kParamTypeNames,
     .fallback = "`\"f32\"`",
     .doc = "Element type.",
     .slot = LACUNA_SLOT(param->symbol.type)},
    {.path = "params.*.shape",
     .kind = kShape,
     .fallback = "`\"scalar\"`",
     .doc =
         "`\"scalar\"` or a list of dimensions. Batch, head and tile dimensions follow the place "
         "where an expression is evaluated; token dimensions are indexed: `start[q]`.",
     .why = "a shape is \"scalar\" or up to three different dimensions of batch, heads, q_tiles, "
            "k_tiles, n_q, n_k in brackets: \"[heads, q_tiles]\"",
     .slot = LACUNA_SLOT(param->symbol.shape)},
    {.path = "params.*.range",
     .kind = kRange,
     .minimum = -kLargestF32,
     .maximum = kLargestF32,
     .fallback = "`[\"-inf\", \"inf\"]`",
     .doc = "Least and greatest legal value, both inclusive.",
     .why = "a bound beyond f32 is written \"inf\" or \"-inf\"",
     .slot = [](const SpecDraft& draft) -> SpecSlot { return draft.param; }},
    {.path = "params.*.default",
     .kind = kBound,
     .minimum = -kLargestF32,
     .maximum = kLargestF32,
     .fallback = "the caller must pass it",
     .doc = "Stands for every element when the caller passes nothing.",
     .why = "a value beyond f32 is written \"inf\" or \"-inf\"",
     .slot = [](const SpecDraft& draft) -> SpecSlot { return draft.param; }},
    {.path = "params.*.doc",
     .kind = kText,
     .doc = "What the parameter does.",
     .slot = LACUNA_SLOT(param->doc)},
    {.path = "params.*.unit",
     .kind = kText,
     .doc = "Unit of its values, such as `tokens` or `natural log`.",
     .slot = LACUNA_SLOT(param->unit)},
    {.path = "params.*.monotone",
     .kind = kBoolean,
     .fallback = "false",
     .doc = "Promises values that never fall along the last dimension, which keeps tile "
            "classification exact.",
     .slot = LACUNA_SLOT(param->symbol.monotone)},
    {.path = "gate",
     .kind = kObject,
     .doc = "What to leave out once the scores of a tile are known."},
    {.path = "gate.scope",
     .kind = kEnum,
     .names = kGateScopeNames,
     .fallback = "`\"tile\"`",
     .doc = "The rows that decide together: the 16 of a warp, or the whole query tile.",
     .slot = LACUNA_SLOT(spec->gate->scope)},
    {.path = "gate.skip",
     .kind = kExpression,
     .required = true,
     .site = Site::kGate,
     .doc = "Whether to skip. The first tile visited for a row of tiles is never skipped.",
     .slot = LACUNA_SLOT(spec->gate->skip)},
    {.path = "gate.exempt",
     .kind = kExpression,
     .site = Site::kGate,
     .fallback = "nothing is exempt",
     .doc = "Tiles that are never skipped.",
     .slot = LACUNA_SLOT(spec->gate->exempt)},
    {.path = "gate.skips",
     .kind = kSubset,
     .required = true,
     .names = kSkipNames,
     .doc = "What a skip leaves out: `pv` the product with V; with `exp` the tile does not count "
            "in the denominator either; with `v_load` V is not even loaded.",
     .slot = [](const SpecDraft& draft) -> SpecSlot { return &*draft.spec->gate; }},
    {.path = "mask",
     .kind = kEnum,
     .names = kMaskNames,
     .fallback = "every tile that attention.mask leaves visible",
     .doc = "`external`: the caller passes lists of the key tiles to visit.",
     .slot = LACUNA_SLOT(spec->external_mask)},
    {.path = "tile", .kind = kObject, .doc = "How the work is cut; lists are the tuner's choices."},
    {.path = "tile.q",
     .kind = kInteger,
     .plural = kOrListOrAuto,
     .multiple = 16,
     .minimum = 16,
     .maximum = 256,
     .fallback = "auto",
     .doc = "Queries of a tile.",
     .why = "a warp owns the 16 query rows of one mma, and a block has at most 16 warps",
     .slot = LACUNA_SLOT(spec->tile.q)},
    {.path = "tile.k",
     .kind = kInteger,
     .plural = kOrListOrAuto,
     .multiple = 16,
     .minimum = 16,
     .maximum = 256,
     .fallback = "auto",
     .doc = "Keys of a tile.",
     .why = "the product with V takes keys in steps of 16, the depth of one mma",
     .slot = LACUNA_SLOT(spec->tile.k)},
    {.path = "tile.stages",
     .kind = kInteger,
     .plural = kOrListOrAuto,
     .minimum = 1,
     .maximum = 4,
     .fallback = "auto",
     .doc = "K/V tiles in flight.",
     .why = "each stage holds one K and one V tile in shared memory",
     .slot = LACUNA_SLOT(spec->tile.stages)},
    {.path = "tile.warps",
     .kind = kInteger,
     .plural = kOrListOrAuto,
     .minimum = 1,
     .maximum = 16,
     .fallback = "auto",
     .doc = "Warps of a block; tile.q = 16 * tile.warps.",
     .why = "a warp owns 16 query rows of a tile of at most 256",
     .slot = LACUNA_SLOT(spec->tile.warps)},
    {.path = "tile.order",
     .kind = kEnum,
     .plural = kOrListOrAuto,
     .names = kTileOrderNames,
     .fallback = "auto",
     .doc = "Order in which a row of tiles visits its keys.",
     .slot = LACUNA_SLOT(spec->tile.order)},
    {.path = "loader",
     .kind = kEnum,
     .plural = kOrListOrAuto,
     .names = kLoaderNames,
     .fallback = "auto",
     .doc = "How K and V reach shared memory.",
     .slot = LACUNA_SLOT(spec->loader)},
};
#undef LACUNA_SLOT

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? "" : path.substr(0, dot);
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

std::span<const SpecField> spec_fields() { return kFields; }

std::string_view key_of(const SpecField& field) {
  return field.path.substr(field.path.rfind('.') + 1);
}

std::vector<const SpecField*> members_of(std::string_view parent) {
  std::vector<const SpecField*> members;
  for (const SpecField& field : kFields)
    if (parent_of(field.path) == parent && key_of(field) != "*") members.push_back(&field);
  return members;
}

const SpecField* find_field(std::string_view parent, std::string_view key) {
  for (const SpecField& field : kFields)
    if (parent_of(field.path) == parent && key_of(field) == key) return &field;
  return nullptr;
}

std::vector<int> nearest_legal(const SpecField& field, double value) {
  std::vector<int> legal(field.values.begin(), field.values.end());
  if (legal.empty()) {
    const int first = static_cast<int>(field.minimum);
    for (int x = first; x <= static_cast<int>(field.maximum); x += field.multiple)
      legal.push_back(x);
  }
  const auto above = std::lower_bound(legal.begin(), legal.end(), value);
  std::vector<int> nearest;
  if (above != legal.begin()) nearest.push_back(*(above - 1));
  if (above != legal.end()) nearest.push_back(*above);
  return nearest;
}

bool is_spec_name(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  if (std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_word_character(c) || c == '-'; });
}

bool is_param_name(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  if (std::isdigit(static_cast<unsigned char>(text.front())) != 0) return false;
  return std::all_of(text.begin(), text.end(), is_word_character);
}

bool parse_shape(std::string_view text, std::vector<ParamDim>& shape) {
  shape.clear();
  if (text == "scalar") return true;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const auto dims = all_dims();
    const auto found = std::find_if(dims.begin(), dims.end(),
                                    [&](const DimInfo& dim) { return dim.name == word; });
    if (found == dims.end() || shape.size() == kMaxParamRank) return false;
    if (std::find(shape.begin(), shape.end(), found->dim) != shape.end()) return false;
    shape.push_back(found->dim);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return true;
}

std::string print_shape(const std::vector<ParamDim>& shape) {
  if (shape.empty()) return "scalar";
  std::string out = "[";
  for (const ParamDim dim : shape) out.append(out.size() > 1 ? ", " : "").append(name_of(dim));
  return out + "]";
}

std::string shape_pattern() {
  std::string dim = "(";
  for (const DimInfo& each : all_dims()) dim.append(dim.size() > 1 ? "|" : "").append(each.name);
  dim += ")";
  const std::string rest = "( *, *" + dim + "){0," + std::to_string(kMaxParamRank - 1) + "}";
  // The lookahead refuses a dimension that occurs twice.
  return "^(scalar|(?!.*\\b(\\w+)\\b.*\\b\\2\\b)\\[ *" + dim + rest + " *\\])$";
}

}  // namespace lacuna
