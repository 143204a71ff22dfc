// The field table: every field of the spec language, once. From it follow the checks of the reader
// (check_fields.cpp), the reader itself (read_spec.cpp), the printer (print_spec.cpp), the JSON
// Schema (schema.cpp) and the reference (reference.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/spec/enum_names.hpp"
#include "compiler/spec/spec.hpp"

namespace lacuna {

/// What stands in the JSON file.
enum class SpecFieldKind : std::uint8_t {
  kObject,      ///< fields whose paths begin with this one
  kParams,      ///< an object of objects with names of the author's choice
  kLet,         ///< an object of expressions with names of the author's choice
  kText,        ///< a string
  kName,        ///< a string that can name files and kernels
  kExpression,  ///< a string in the expression language
  kShape,       ///< "scalar" or "[heads, q_tiles]"
  kBoolean,
  kInteger,
  kNumber,
  kBound,       ///< an f32 or i32 number, "inf" or "-inf"
  kRange,       ///< a list of two bounds
  kEnum,        ///< one of `names`
  kSubset,      ///< a list of some of `names`
  kSummary,     ///< one of the summaries of a `side`: "mean", "antidiagonal(8)", ... (summary.hpp)
  kBands,       ///< bands of the head dimension: "0:32,64:96" (bands.hpp)
  kBranches,    ///< a list of objects whose fields have paths "branches.*.KEY"
  kAsRoot,      ///< of a branch: what the field of the same key is in a spec
  kTokenOrder,  ///< one of `names`, or an object that gives one of `grids` its [T, H, W]
};

/// What may stand in place of one value.
enum class Plural : std::uint8_t { kOne, kOrAuto, kOrListOrAuto };

/// Where a field is kept in a VariantSpec. Fields of a parameter live in `param`, those of a step
/// of the predictor in `step`, the others in `spec`, which is the branch's own where there are
/// branches.
struct SpecDraft {
  VariantSpec* spec = nullptr;
  ParamSpec* param = nullptr;
  PredictorSpec* step = nullptr;
};
using SubsetFlags = std::array<bool*, 3>;  ///< of a kSubset: one for each of `names`, then null
using SpecSlot =
    std::variant<std::monostate, int*, bool*, float*, std::string*, std::optional<float>*, Expr*,
                 Choice<int>*, Choice<DType>*, Choice<TileOrder>*, Choice<QueryPlace>*,
                 Choice<Loader>*, GateScope*, ExprType*, Reduce*, ValuesOf*, LseBase*, Weights*,
                 Normalise*, QuantGroup*, SimilarityForm*, Calibrate*, Summary*, PermuteSpec*,
                 std::vector<ParamDim>*, ParamSpec*, SubsetFlags,
                 // of objects that may be absent
                 std::optional<GateSpec>*, std::optional<PredictorSpec>*,
                 std::optional<EstimateSpec>*, std::optional<IndexSpec>*>;

struct SpecField {
  std::string_view path;   ///< "tile.q"; "params.*.range" for every parameter
  std::string_view was{};  ///< the key in older specs; empty: the same
  SpecFieldKind kind = SpecFieldKind::kObject;
  Plural plural = Plural::kOne;
  bool required = false;
  Site site{};                      ///< kExpression
  int multiple = 1;                 ///< kInteger
  double minimum = 0, maximum = 0;  ///< kInteger, kNumber, kBound, kRange: inclusive
  std::span<const int> values{};    ///< kInteger: legal besides the range, if there is one
  std::span<const std::string_view> names{};  ///< kEnum, kSubset, kTokenOrder
  std::span<const std::string_view> grids{};  ///< kTokenOrder
  SummarySide side{};                         ///< kSummary
  std::size_t most_steps = 1;   ///< kObject: a list may have so many in its place; kBranches: has
  std::string_view fallback{};  ///< what absence means, for the docs
  std::string_view doc{};
  std::string_view why{};                        ///< the reason for the range
  SpecSlot (*slot)(const SpecDraft&) = nullptr;  ///< null for fields that hold no value
};

/// In canonical order; an object stands before its members.
std::span<const SpecField> spec_fields();

/// May stand in every object, for people.
inline constexpr std::string_view kCommentKey = "$comment";

/// The member `key` of an object, nullptr if there is none.
const SpecField* find_field(std::string_view parent, std::string_view key);

/// The same, but for kAsRoot: the field of the spec that stands there.
const SpecField* find_meant_field(std::string_view parent, std::string_view key);

/// The members of an object, in canonical order.
std::vector<const SpecField*> members_of(std::string_view parent);

/// "q" of "tile.q".
std::string_view key_of(const SpecField& field);

/// "params.NAME.range" for "params.*.range".
std::string shown_path(const SpecField& field);

/// The legal values of a field in words, as Markdown: "16 to 256 in steps of 16; list; `"auto"`".
std::string values_text(const SpecField& field);

/// The legal integers of a field in words: "1, 8 or 16 to 256 in steps of 16".
std::string integers_text(const SpecField& field);

/// The legal integers of a field nearest to `value`: up to one below and one above.
std::vector<int> nearest_legal(const SpecField& field, double value);

/// A letter, then letters, digits, - and _; 64 in all. As a regular expression: kNamePattern.
bool is_spec_name(std::string_view text);
inline constexpr std::string_view kNamePattern = "^[A-Za-z][A-Za-z0-9_-]{0,63}$";

/// An identifier of the expression language.
bool is_param_name(std::string_view text);
inline constexpr std::string_view kParamNamePattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

/// The name of an axis, or an extent from 1 to kMaxFixedExtent.
std::optional<ParamDim> parse_dim(std::string_view word);
/// "scalar" or up to kMaxParamRank dimensions in brackets, no axis twice; false if `text` is
/// neither.
bool parse_shape(std::string_view text, std::vector<ParamDim>& shape);
std::string print_shape(const std::vector<ParamDim>& shape);
std::string shape_pattern();

/// Of a grid of tokens.
inline constexpr int kLongestSide = 1 << 16;
/// Beside a grid of permute: the sides of its cubes.
inline constexpr std::string_view kCubesKey = "cubes";

inline constexpr double kLargestF32 = std::numeric_limits<float>::max();
inline constexpr double kSmallestF32 = std::numeric_limits<float>::min();

// Legal integers that are no range, or stand beside one.
inline constexpr std::array kLegalVersions{1};
inline constexpr std::array kLegalHeadDims{64, 80, 96, 112, 128, 192, 256, 512, 576};
inline constexpr std::array kColumnWidths{1, 8};
inline constexpr std::array kLegalEstimateBits{4, 8, 16, 32};
inline constexpr std::array kLegalComputeBits{8, 16};

inline constexpr std::span<const std::string_view> kTokenOrders(kTokenOrderNames);

}  // namespace lacuna
