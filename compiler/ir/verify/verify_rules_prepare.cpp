// Rules of the ops that make something of the tensors: inputs, order, means, summaries, integers.
#include <algorithm>
#include <cmath>

#include "compiler/ir/coded_rows.hpp"
#include "compiler/ir/names.hpp"
#include "compiler/ir/verify/verify_rules.hpp"
#include "compiler/spec/table/bands.hpp"

namespace lacuna {
namespace {

constexpr OpRule<Input> kInput[] = {
    {"inputs are q, k, v, list_indices, list_counts, order and previous_lse",
     [](const Program&, const Node&, const Input& input) {
       return !input_type(input.name, DType::kF32).shape.empty();
     }},
    {"dims of an input are one band, as wide as the program's rows, of q or k",
     [](const Program& p, const Node&, const Input& input) {
       if (input.dims.empty()) return true;
       const std::optional<Band> band = only_band(input.dims, p.head_dim);
       return (input.name == "q" || input.name == "k") && band && band->width() == p.head_dim;
     }},
    {"an input defines one value, whose type follows from the input's name",
     [](const Program& p, const Node& node, const Input& input) {
       ValueType type = input_type(input.name, p.dtype);
       const Means* keys = key_means(p);
       if (keys != nullptr && keys->tokens > 1 && (input.name == "k" || input.name == "v"))
         std::ranges::replace(type.shape, Dim::kNK, Dim::kNTokens);
       if (query_means(p) != nullptr && (input.name == "q" || input.name == "order"))
         std::ranges::replace(type.shape, Dim::kNQ, Dim::kNQueries);
       return defines(p, node, {type});
     }},
};

bool is_order(const Program& program, int id) {
  const auto* input = defined_by<Input>(program, id);
  return input != nullptr && input->name == "order";
}

constexpr OpRule<Permute> kPermute[] = {
    {"the inputs q, k and v are permuted, into values of their types",
     [](const Program& p, const Node& node, const Permute& op) {
       return defined_by<Input>(p, op.x) != nullptr && !tensor_name(p, op.x).empty() &&
              defines(p, node, {type_of(p, op.x)});
     }},
    {"order is the input of this name",
     [](const Program& p, const Node&, const Permute& op) { return is_order(p, op.order); }},
};

constexpr OpRule<Unpermute> kUnpermute[] = {
    {"the results of attend are put back, into values of their types",
     [](const Program& p, const Node& node, const Unpermute& op) {
       const bool is_result = defined_by<Attend>(p, op.x, 0) || defined_by<Attend>(p, op.x, 1);
       return is_result && defines(p, node, {type_of(p, op.x)});
     }},
    {"order is the input of this name",
     [](const Program& p, const Node&, const Unpermute& op) { return is_order(p, op.order); }},
};

bool has_count(const Program& program, std::string_view name) {
  return std::ranges::any_of(program.params, [name](const ParamSpec& param) {
    return param.symbol.name == name && param.symbol.type == ExprType::kI32 &&
           param.symbol.shape.empty();
  });
}

/// A tensor of the caller's, in any order of tokens.
bool is_caller_rows(const Program& program, int id) {
  if (const auto* permute = defined_by<Permute>(program, id)) id = permute->x;
  return defined_by<Input>(program, id) != nullptr && !tensor_name(program, id).empty();
}

bool is_of_queries(const Program& program, const Means& means) {
  return tensor_name(program, means.x) == "q";
}

constexpr OpRule<Means> kMeans[] = {
    {"means are of the inputs q, k and v, as they are or permuted, 2 to 1024 tokens each; of k and "
     "v "
     "of e4m3 1, too",
     [](const Program& p, const Node&, const Means& op) {
       const int least = is_coded(p, op.x) ? 1 : 2;
       return is_caller_rows(p, op.x) && op.tokens >= least && op.tokens <= kMostMeanTokens;
     }},
    {"the number of tokens is an i32 parameter, n_tokens or of queries n_queries, a scalar",
     [](const Program& p, const Node&, const Means& op) {
       return op.tokens == 1 || has_count(p, is_of_queries(p, op) ? kQueriesParam : kTokensParam);
     }},
    {"means defines rows of x's type, n_k of them, or of queries n_q",
     [](const Program& p, const Node& node, const Means& op) {
       using enum Dim;
       const Element element = type_of(p, op.x).element;
       return is_of_queries(p, op)
                  ? defines(p, node, {{element, {kBatch, kHeads, kNQ, kHeadDim}}})
                  : defines(p, node, {{element, {kBatch, kHeadsKv, kNK, kHeadDim}}});
     }},
};

constexpr OpRule<MergeBranch> kMergeBranch[] = {
    {"the results of attend are merged: o, and its lse where there is no weight",
     [](const Program& p, const Node&, const MergeBranch& op) {
       const bool has_lse = defined_by<Attend>(p, op.lse, 1) != nullptr;
       return defined_by<Attend>(p, op.o, 0) && has_lse == op.weight.empty() &&
              (op.lse < 0) != op.weight.empty();
     }},
    {"there are 2 to 4 branches, and index is one of them",
     [](const Program&, const Node&, const MergeBranch& op) {
       return op.count >= 2 && op.count <= static_cast<int>(kMostBranches) && op.index >= 0 &&
              op.index < op.count;
     }},
    {"queries is the tokens of a mean of them, else 1, and goes with weight",
     [](const Program& p, const Node&, const MergeBranch& op) {
       const Means* means = query_means(p);
       return op.queries == (means != nullptr ? means->tokens : 1) &&
              (op.queries == 1 || !op.weight.empty());
     }},
    {"weight yields f32 and reads the program's parameters",
     [](const Program& p, const Node&, const MergeBranch& op) {
       return yields(op.weight, ExprType::kF32) && reads_program_parameters(p, op.weight);
     }},
    {"order is the input of this name where tokens are permuted, else there is none",
     [](const Program& p, const Node&, const MergeBranch& op) {
       return find_op<Permute>(p) != nullptr ? is_order(p, op.order) : op.order < 0;
     }},
    {"merge_branch defines o, f32 but in the last branch, and without weight lse",
     [](const Program& p, const Node& node, const MergeBranch& op) {
       ValueType o = type_of(p, op.o);
       if (!op.is_last()) o.element = Element::kF32;
       if (op.queries > 1) std::ranges::replace(o.shape, Dim::kNQ, Dim::kNQueries);
       return op.weight.empty() ? defines(p, node, {o, type_of(p, op.lse)}) : defines(p, node, {o});
     }},
};

constexpr std::string_view kTokensWords = "x is q or k, as it is or permuted";
constexpr std::string_view kMeanWords = "mean is the mean of x";

bool is_tokens(const Program& program, int x) {
  const std::string_view name = tensor_name(program, x);
  return name == "q" || name == "k";
}

/// For ops with `x` and, maybe, its `mean`.
template <class T>
bool has_tokens(const Program& program, const Node&, const T& op) {
  return is_tokens(program, op.x);
}
template <class T>
bool has_own_mean(const Program& program, const Node&, const T& op) {
  return op.mean < 0 || is_mean_of(program, op.mean, op.x);
}
template <class T>
bool has_tile(const Program&, const Node&, const T& op) {
  return op.tile > 0 && op.tile <= kLargestTile;
}

Dim keep_tiles(const Program& program, int x) {
  return side_of(program, x, Dim::kKeepQTiles, Dim::kKeepKTiles);
}

constexpr OpRule<Smooth> kSmooth[] = {
    {kTokensWords, has_tokens<Smooth>},
    {"smooth defines the mean of each head, f32",
     [](const Program& p, const Node& node, const Smooth& op) {
       return defines(p, node, {{Element::kF32, {Dim::kBatch, heads_of(p, op.x), Dim::kHeadDim}}});
     }},
};

constexpr std::string_view kTileWords = "tile is between 1 and 1024 tokens";

constexpr OpRule<Summarise> kSummarise[] = {
    {kTokensWords, has_tokens<Summarise>},
    {kMeanWords, has_own_mean<Summarise>},
    {kTileWords, has_tile<Summarise>},
    {"bounds are those of tiles of k, without a mean",
     [](const Program& p, const Node&, const Summarise& op) {
       return !op.bounds || (tensor_name(p, op.x) == "k" && op.mean < 0 && !op.rounded);
     }},
    {"summarise defines a vector for each tile, f32, or for each cell, in x's element type",
     [](const Program& p, const Node& node, const Summarise& op) {
       const Dim cells = side_of(p, op.x, Dim::kQCells, Dim::kKCells);
       const Element element = op.rounded ? type_of(p, op.x).element : Element::kF32;
       return defines(p, node,
                      {{element,
                        {Dim::kBatch, heads_of(p, op.x), op.rounded ? cells : keep_tiles(p, op.x),
                         op.bounds ? Dim::kBounds : Dim::kHeadDim}}});
     }},
};

constexpr OpRule<Similarity> kSimilarity[] = {
    {kTokensWords, has_tokens<Similarity>},
    {kMeanWords, has_own_mean<Similarity>},
    {kTileWords, has_tile<Similarity>},
    {"similarity defines a number for each tile, f32",
     [](const Program& p, const Node& node, const Similarity& op) {
       return defines(p, node,
                      {{Element::kF32, {Dim::kBatch, heads_of(p, op.x), keep_tiles(p, op.x)}}});
     }},
};

/// Tokens that a tile of groups is made of: rows of an mma, or the 32 keys of its depth.
int group_step(const Program& program, const Quantise& op) {
  if (op.group == QuantGroup::kBlock) return 1;
  if (tensor_name(program, op.x) == "q") return kRowsOfMma;
  return op.group == QuantGroup::kThread ? 2 * kRowsOfMma : 1;
}

constexpr OpRule<Quantise> kQuantise[] = {
    {kTokensWords, has_tokens<Quantise>},
    {kMeanWords, has_own_mean<Quantise>},
    {"integers have 8 or 4 bits",
     [](const Program&, const Node&, const Quantise& op) { return op.bits == 8 || op.bits == 4; }},
    {"tile is between 1 and 1024 tokens, or 0 until attend's tiles are chosen",
     [](const Program&, const Node&, const Quantise& op) {
       return op.tile >= 0 && op.tile <= kLargestTile;
     }},
    {"a tile of groups is a whole number of 16 queries (warp, thread) or 32 keys (thread)",
     [](const Program& p, const Node&, const Quantise& op) {
       return op.tile % group_step(p, op) == 0;
     }},
    {"quantise defines values i8 of x's shape and a scale f32 for each group",
     [](const Program& p, const Node& node, const Quantise& op) {
       const Dim groups = side_of(p, op.x, Dim::kQGroups, Dim::kKGroups);
       return defines(p, node,
                      {{Element::kI8, type_of(p, op.x).shape},
                       {Element::kF32, {Dim::kBatch, heads_of(p, op.x), groups}}});
     }},
};

constexpr OpRule<QuantiseValues> kQuantiseValues[] = {
    {"x is v, as it is or permuted",
     [](const Program& p, const Node&, const QuantiseValues& op) {
       return tensor_name(p, op.x) == "v";
     }},
    {"range is above 0 and at most 448, the largest number of e4m3",
     [](const Program&, const Node&, const QuantiseValues& op) {
       return op.range > 0 && op.range <= 448;
     }},
    {"quantise_values defines codes e4m3 of x's shape and a scale f32 for each channel",
     [](const Program& p, const Node& node, const QuantiseValues& op) {
       return defines(p, node,
                      {{Element::kE4M3, type_of(p, op.x).shape},
                       {Element::kF32, {Dim::kBatch, Dim::kHeadsKv, Dim::kHeadDim}}});
     }},
};

constexpr OpRule<Project> kProject[] = {
    {kTokensWords, has_tokens<Project>},
    {kMeanWords, has_own_mean<Project>},
    {"x is projected onto the mean of the other of q and k",
     [](const Program& p, const Node&, const Project& op) {
       const auto* smooth = defined_by<Smooth>(p, op.onto);
       return smooth != nullptr && tensor_name(p, smooth->x) != tensor_name(p, op.x);
     }},
    {"project defines a number for each token of each query head, f32",
     [](const Program& p, const Node& node, const Project& op) {
       const Dim tokens = side_of(p, op.x, Dim::kNQ, Dim::kNK);
       return defines(p, node, {{Element::kF32, {Dim::kBatch, Dim::kHeads, tokens}}});
     }},
};

}  // namespace

std::span<const OpRule<Input>> rules_of(const Input*) { return kInput; }
std::span<const OpRule<Permute>> rules_of(const Permute*) { return kPermute; }
std::span<const OpRule<Unpermute>> rules_of(const Unpermute*) { return kUnpermute; }
std::span<const OpRule<Means>> rules_of(const Means*) { return kMeans; }
std::span<const OpRule<MergeBranch>> rules_of(const MergeBranch*) { return kMergeBranch; }
std::span<const OpRule<Smooth>> rules_of(const Smooth*) { return kSmooth; }
std::span<const OpRule<Summarise>> rules_of(const Summarise*) { return kSummarise; }
std::span<const OpRule<Similarity>> rules_of(const Similarity*) { return kSimilarity; }
std::span<const OpRule<Quantise>> rules_of(const Quantise*) { return kQuantise; }
std::span<const OpRule<QuantiseValues>> rules_of(const QuantiseValues*) { return kQuantiseValues; }
std::span<const OpRule<Project>> rules_of(const Project*) { return kProject; }

}  // namespace lacuna
