#include "compiler/emit/cuda/mask_hooks.hpp"

#include <algorithm>

#include "compiler/emit/cuda/hook_text.hpp"
#include "compiler/expr/bounds/open_reads.hpp"
#include "compiler/expr/nodes/constant_divisors.hpp"
#include "compiler/expr/nodes/constant_parts.hpp"
#include "compiler/expr/parts/costly_formulas.hpp"
#include "compiler/expr/parts/mask_parts.hpp"
#include "compiler/expr/rounded_down.hpp"

namespace lacuna {
namespace {

/// The mask of one pair. If it divides, the divisors and the parameters that many pairs share are
/// read once: NVRTC would look up each of them for each of a lane's scores (natten: 13 s, not 4).
/// Of other masks nothing is kept: few tiles ask them, and registers are short.
void write_mask(CudaWriter& out, const Expr& mask) {
  const char* pointer = "/attention/mask";
  const std::vector<std::int32_t> divisors = constant_divisors(mask, kPairVariables);
  if (divisors.empty()) {
    write_hook(out, "bool mask(const Args& args, int q, int k, int h, int b)", pointer,
               cuda_body(mask, "true"));
    return;
  }
  const RowText text = split_text(mask, "part", "parts", constant_elements(mask, kPairVariables),
                                  divisors, cuda_names(Tiling::kAttend));
  write_row_struct(out, "MaskParts", text.members);
  write_hook(out, "MaskParts mask_parts(const Args& args, int h, int b)", pointer,
             "{" + text.values + "}");
  write_hook(out, "bool mask(const Args& args, const MaskParts& parts, int q, int k, int h, int b)",
             pointer, text.rest);
}

/// Prints whether the mask lets through all pairs of a tile (`tile_full`), or any (`tile_visible`).
/// Such a formula divides by the same number many times, so the reciprocal of that number is
/// computed once, and each parameter is read once: NVRTC inlines whatever is computed again. Two
/// multiples of a parameter are all that others need: who walks has no registers for reciprocals.
void write_tile_bound(CudaWriter& out, const std::string& name, const Expr& bound) {
  const char* pointer = "/attention/mask";
  const std::string signature =
      "bool " + name + "(const Args& args, " + kBounds + ", int h, int b)";
  const std::vector<std::int32_t> divisors = constant_divisors(bound, kBoundVariables);
  if (divisors.empty() || rounds_down(bound))
    return write_hook(out, signature, pointer, cuda_body(bound, "true"));
  RowText text = split_text(bound, "part", "parts", constant_elements(bound, kBoundVariables),
                            divisors, cuda_names(Tiling::kAttend));
  text.rest.locals.insert(text.rest.locals.begin(),
                          "const struct {" + text.members + " } parts = {" + text.values + "};");
  write_hook(out, signature, pointer, text.rest);
}

/// How many elements of parameters a formula reads.
std::size_t parameters_of(const Expr& expr) {
  return static_cast<std::size_t>(std::ranges::count_if(
      expr.nodes, [](const ExprNode& node) { return node.op == ExprOp::kParameter; }));
}
/// How many of these have an index that depends on the query or the key.
std::size_t elements_at_tokens(const Expr& expr) {
  return parameters_of(expr) - constant_elements(expr, kPairVariables).size();
}

constexpr const char* kSourceNames[kMaskSources] = {"distance", "key", "query"};

/// "(of.distance[0] | of.key[0])": of words with a bit for each key.
std::string mask_words_text(const MaskParts& parts, std::size_t term) {
  const MaskTerm& root = parts.terms[term];
  const auto operand = [&](int place) {
    return mask_words_text(parts, static_cast<std::size_t>(place));
  };
  switch (root.op) {
    case ExprOp::kNot:
      return "~" + operand(root.left);
    case ExprOp::kAnd:
    case ExprOp::kOr:
      return "(" + operand(root.left) + (root.op == ExprOp::kAnd ? " & " : " | ") +
             operand(root.right) + ")";
    default:
      return "of." + std::string(kSourceNames[static_cast<std::size_t>(root.source)]) + "[" +
             std::to_string(root.left) + "]";
  }
}

/// The conditions of a mask besides its ranges of keys. Each is printed in two steps:
/// ConditionParts has what stays the same for all tokens, and a function evaluates the rest for a
/// distance, a key or a query. mask_words joins the answers, a bit for each key.
void write_conditions(CudaWriter& out, const MaskParts& parts) {
  const char* pointer = "/attention/mask";
  std::string members, values, words;
  std::vector<std::pair<std::string, CudaBody>> hooks;  // the beginning of the signature
  for (std::size_t s = 0; s < kMaskSources; ++s) {
    const std::string source = kSourceNames[s];
    const std::vector<Expr>& conditions = parts.conditions[s];
    for (std::size_t n = 0; n < conditions.size(); ++n) {
      const RowText text =
          split_text(conditions[n], source + std::to_string(n), "parts",
                     constant_elements(conditions[n], kPairVariables),
                     constant_divisors(conditions[n], kPairVariables), cuda_names(Tiling::kAttend));
      members += text.members;
      values += (values.empty() || text.values.empty() ? "" : ", ") + text.values;
      hooks.emplace_back("bool mask_of_" + source + "(const Args& args, lacuna::Constant<" +
                             std::to_string(n) + ">",
                         text.rest);
    }
    if (!conditions.empty())
      words += " unsigned " + source + "[" + std::to_string(conditions.size()) + "];";
  }
  write_row_struct(out, "ConditionParts", members);
  write_hook(out, "ConditionParts condition_parts(const Args& args, int h, int b)", pointer,
             "{" + values + "}");
  for (const auto& [signature, body] : hooks)
    write_hook(out, signature + ", const ConditionParts& parts, int q, int k, int h, int b)",
               pointer, body);
  write_row_struct(out, "MaskWords", words);
  write_hook(out, "unsigned mask_words(const MaskWords& of)", pointer,
             mask_words_text(parts, parts.terms.size() - 1));
}

const char* flag(bool is_set) { return is_set ? "true" : "false"; }

/// What MaskRow says of conditions: how many there are of each source, and whether bounds of a tile
/// leave most tiles to them.
std::string condition_flags(const MaskParts& parts, const Expr& mask) {
  if (parts.terms.empty()) return "";
  const auto count = [&](MaskSource source) { return std::to_string(parts.of(source).size()); };
  const bool is_loose = !open_reads(mask).empty() || !loose_part(mask).empty();
  return std::string(" static constexpr bool kHasConditions = true, kIsOfDistance = ") +
         flag(parts.is_of_distance()) + ", kCutsMostTiles = " + flag(is_loose) +
         "; static constexpr int kDistances = " + count(MaskSource::kDistance) +
         ", kKeys = " + count(MaskSource::kKey) + ", kQueries = " + count(MaskSource::kQuery) + ";";
}

/// The keys that a row sees, as ranges (compiler/expr/parts/mask_parts.hpp), and the conditions
/// that hold besides; no range: the mask has to be asked.
void write_mask_parts(CudaWriter& out, const Expr& mask) {
  const MaskParts parts = split_mask(mask);
  const std::string count = std::to_string(parts.ranges.size());
  std::string has_first, first, last;
  std::size_t parameters = 0, at_tokens = 0;
  for (const KeyRange& range : parts.ranges) {
    const char* comma = first.empty() ? "" : ", ";
    has_first += comma + std::string(range.first.empty() ? "false" : "true");
    first += comma + cuda_text(range.first, "0");
    last += comma + cuda_text(range.last, "args.attend.n_k - 1");
    for (const Expr* bound : {&range.first, &range.last}) {
      parameters += parameters_of(*bound);
      at_tokens += elements_at_tokens(*bound);
    }
  }
  std::string members = " static constexpr int kRanges = " + count +
                        "; static constexpr bool kReadsParameters = " + flag(parameters > 0) +
                        ", kReadsTokens = " + flag(at_tokens > 0) + ";" +
                        condition_flags(parts, mask);
  if (mask_is_costly(mask)) members += " static constexpr bool kIsCostly = true;";
  if (!parts.ranges.empty()) {
    members += " static constexpr bool kHasFirst[] = {" + has_first + "}; int first[" + count +
               "], last[" + count + "];";
  }
  write_row_struct(out, "MaskRow", members);
  write_hook(out, "MaskRow mask_row(const Args& args, int q, int h, int b)", "/attention/mask",
             parts.ranges.empty() ? "{}" : "{{" + first + "}, {" + last + "}}");
  if (!parts.terms.empty()) write_conditions(out, parts);
}

}  // namespace

void write_mask_hooks(CudaWriter& out, const Attend& attend) {
  write_mask(out, attend.mask);
  write_mask_parts(out, attend.mask);
  write_tile_bound(out, "tile_full", attend.classifier.must);
  write_tile_bound(out, "tile_visible", attend.classifier.may);
}

}  // namespace lacuna
