// summarise, similarity, quantise, project: what later kernels need of each token of q or k, by one
// kernel that reads it once.
#include "compiler/lower/prepare.hpp"

#include <algorithm>
#include <bit>

#include "compiler/lower/block.hpp"
#include "compiler/lower/config.hpp"
#include "compiler/lower/lower.hpp"

namespace lacuna {
namespace {

/// Elements of a block, which holds them in registers. Smoothed ones take twice the room there, so
/// that fewer threads are on a multiprocessor: in smaller blocks, which wait for less.
constexpr int kBestElements = 16384, kBestSmoothedElements = 8192;
constexpr int kPreparedElementsOfThread = 64;

/// Names of the slots that the kernel fills.
struct SlotNames {
  const char *summary, *cells, *similarity, *values, *scale, *estimate_values, *estimate_scale,
      *bias;
};
constexpr SlotNames kSlotsOfQ{"q_summary", "q_cells",           "q_similarity",     "q_values",
                              "q_scale",   "estimate_q_values", "estimate_q_scale", "row_bias"};
constexpr SlotNames kSlotsOfK{"k_summary", "k_cells",           "k_similarity",     "k_values",
                              "k_scale",   "estimate_k_values", "estimate_k_scale", "column_bias"};

std::vector<Slot> prepared_slots(const TokenOps& ops, Tensor tensor, int head_dim) {
  const SlotNames& names = tensor == Tensor::kQ ? kSlotsOfQ : kSlotsOfK;
  const std::string heads = all_heads(tensor);
  std::vector<Slot> slots;
  if (ops.has_cells())
    slots.push_back({names.cells, units(heads, padded_cells(tensor, ops.summary->tile),
                                        head_dim * kElementBytes)});
  else if (ops.summary != nullptr)
    slots.push_back(
        {names.summary, units(heads, tiles_of(tensor, ops.summary->tile), head_dim * kWordBytes)});
  if (ops.similarity != nullptr)
    slots.push_back(
        {names.similarity, units(heads, tiles_of(tensor, ops.similarity->tile), kWordBytes)});
  const auto add_integers = [&](const Quantise* quantise, const char* values, const char* scale) {
    if (quantise == nullptr) return;
    slots.push_back({values, units(heads, padded_length(tensor), head_dim)});
    slots.push_back({scale, units(heads, groups_of_head(*quantise, tensor), kWordBytes)});
  };
  add_integers(ops.quantise, names.values, names.scale);
  add_integers(ops.estimate_quantise, names.estimate_values, names.estimate_scale);
  if (ops.bias != nullptr)  // of each query head
    slots.push_back({names.bias, units(all_heads(Tensor::kQ), padded_length(tensor), kWordBytes)});
  return slots;
}

std::vector<NamedSize> prepared_sizes(const TokenOps& ops, Tensor tensor) {
  const bool is_query = tensor == Tensor::kQ;
  std::vector<NamedSize> sizes;
  const auto add = [&](const char* name, const Quantise* quantise) {
    if (quantise != nullptr) sizes.push_back({name, groups_of_head(*quantise, tensor)});
  };
  add(is_query ? "q_groups" : "k_groups", ops.quantise);
  add(is_query ? "estimate_q_groups" : "estimate_k_groups", ops.estimate_quantise);
  return sizes;
}

/// "summaries, integers for attend"
std::string prepare_work(const TokenOps& ops) {
  std::string text;
  const auto add = [&](const void* op, const char* what) {
    if (op != nullptr) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  add(ops.summary, ops.has_cells() ? "summaries of cells" : "summaries of tiles");
  add(ops.similarity, "similarities of tiles");
  add(ops.quantise, "integers for attend");
  add(ops.estimate_quantise, "integers for the estimate");
  add(ops.bias, "what smoothing took from the logits");
  return text;
}

std::vector<ConfigField> prepare_config(const TokenOps& ops, Tensor tensor, int head_dim) {
  const Quantise none{.bits = 0};
  const Quantise& attend = ops.quantise != nullptr ? *ops.quantise : none;
  const Quantise& estimate = ops.estimate_quantise != nullptr ? *ops.estimate_quantise : none;
  const bool is_query = tensor == Tensor::kQ;
  const char* tile = is_query ? "/predictor/tile/q" : "/predictor/tile/k";
  const char* smooth = "/predictor/smooth";
  const bool gram = ops.similarity != nullptr && ops.similarity->form == SimilarityForm::kGramMax;
  const char* summary = !ops.has_cells() ? tile
                        : is_query       ? "/predictor/estimate/q"
                                         : "/predictor/estimate/k";
  const bool smooths_summary = ops.summary != nullptr && ops.summary->mean >= 0;
  const Chosen<int> tokens = prepare_tokens(ops, head_dim);
  return {
      boolean("kIsQuery", is_query, kNoField, Origin::kDerived, std::string(name_of(tensor))),
      integer("kTokens", tokens, kNoField),
      boolean("kSmooth", ops.smooth != nullptr, smooth),
      integer("kSummaryTile", ops.summary != nullptr ? ops.summary->tile : 0, summary),
      boolean("kRoundsSummary", ops.has_cells(), summary),
      boolean("kSmoothSummary", smooths_summary, smooth),
      integer("kSimilarityTile", ops.similarity != nullptr ? ops.similarity->tile : 0, tile),
      boolean("kGramMax", gram, "/predictor/similarity"),
      integer("kBits", attend.bits, "/quantise/qk/bits"),
      enumerator("QuantGroup", "kGroup", group_name(attend.group), "/quantise/qk/group"),
      integer("kTile", attend.tile, is_query ? "/tile/q" : "/tile/k"),
      integer("kEstimateBits", estimate.bits, "/predictor/estimate/bits"),
      enumerator("QuantGroup", "kEstimateGroup", group_name(estimate.group),
                 "/predictor/estimate/group"),
      integer("kEstimateTile", estimate.tile, tile),
      boolean("kBias", ops.bias != nullptr, smooth),
  };
}

ShapeExpr prepare_grid(Tensor tensor, int tokens) {
  const int blocks = kPreparedTokens / tokens;
  return {all_heads(tensor) + " * (" + tiles_of(tensor, kPreparedTokens) + ")" +
              (blocks > 1 ? " * " + std::to_string(blocks) : ""),
          "one for each " + std::to_string(tokens) + " tokens of a head, padded to " +
              std::to_string(kPreparedTokens)};
}

Chosen<int> prepare_threads(int tokens, int head_dim) {
  const int wanted = std::max(tokens * head_dim / kPreparedElementsOfThread, tokens);
  const bool is_small = wanted <= kBlockThreads / 2;
  return {is_small ? kBlockThreads / 2 : kBlockThreads, Origin::kDerived,
          "of " + std::to_string(tokens) + " * " + std::to_string(head_dim) + " elements at " +
              std::to_string(kPreparedElementsOfThread) + " of a thread"};
}

Chosen<int> prepare_smem(int head_dim) {
  return {prepare_smem_bytes(kBlockWarps, head_dim), Origin::kDerived,
          std::to_string(kPreparedTokens) + " tokens * " + std::to_string(kPreparedRowBytes) +
              " + 8 warps * (" + std::to_string(kPreparedWarpBytes) + " + 2 * " +
              std::to_string(head_dim) + " * 4)"};
}

/// Those that leave a thread 80 registers for 64 elements; 128 for as many smoothed ones, or where
/// narrow rows make a warp sum more of them at once.
Chosen<int> prepare_blocks(const TokenOps& ops, int tokens, int threads, int head_dim) {
  const int elements = tokens * head_dim / threads;
  const bool only_sums = ops.smooth == nullptr && ops.similarity == nullptr &&
                         ops.quantise == nullptr && ops.estimate_quantise == nullptr &&
                         ops.bias == nullptr;
  if (only_sums && elements == 2 * kPreparedElementsOfThread)
    return {2, Origin::kDerived, "enough for the sums of 128 elements of a thread"};
  if (elements > kPreparedElementsOfThread)
    return {1, Origin::kDerived, "threads have more than 64 elements each"};
  if (ops.smooth != nullptr || head_dim < 128)
    return {2 * kBlockThreads / threads, Origin::kDerived,
            ops.smooth != nullptr ? "enough for 64 smoothed elements of a thread"
                                  : "enough for the narrow rows that a warp sums at once"};
  return {3, Origin::kDerived, "enough for 64 elements of a thread"};
}

Kernel prepare_kernel(const Plan& plan, const TokenOps& ops, Tensor tensor) {
  const int head_dim = plan.program.head_dim;
  const int tokens = prepare_tokens(ops, head_dim).value;
  const bool is_query = tensor == Tensor::kQ;
  Kernel kernel{.name = is_query ? "prepare_q" : "prepare_k",
                .because = prepare_work(ops),
                .header = "prepare/prepare.cuh",
                .function = "prepare_tokens",
                .config = prepare_config(ops, tensor, head_dim),
                .grid = prepare_grid(tensor, tokens),
                .threads = prepare_threads(tokens, head_dim),
                .smem_bytes = prepare_smem(head_dim),
                .operands = {name_of(tensor)},
                .slots = prepared_slots(ops, tensor, head_dim),
                .sizes = prepared_sizes(ops, tensor),
                .decides = !quantises_attend(plan.program)};
  kernel.resident_blocks = prepare_blocks(ops, tokens, kernel.threads.value, head_dim);
  if (ops.smooth != nullptr) kernel.operands.push_back(is_query ? "q_mean" : "k_mean");
  if (ops.bias != nullptr) kernel.operands.push_back(is_query ? "k_mean" : "q_mean");
  if (!is_query && ops.summary != nullptr && !ops.has_cells()) {
    add_row_scores(plan, kernel);
    make_kept_summaries(plan, kernel);
  }
  return kernel;
}

}  // namespace

Chosen<int> prepare_tokens(const TokenOps& ops, int head_dim) {
  const int elements = ops.smooth != nullptr ? kBestSmoothedElements : kBestElements;
  const int best = static_cast<int>(std::bit_floor(static_cast<unsigned>(elements / head_dim)));
  Chosen<int> tokens{std::min(best, kPreparedTokens), Origin::kDerived,
                     "about " + std::to_string(elements) + " elements of a block in registers"};
  const auto cover = [&](const auto* op) {
    if (op == nullptr || op->tile <= tokens.value) return;
    tokens = {op->tile, Origin::kDerived, "the largest tile that it works on"};
  };
  cover(ops.summary);
  cover(ops.similarity);
  cover(ops.quantise);
  cover(ops.estimate_quantise);
  return tokens;
}

Kernels lower_prepare(const Plan& plan) {
  Kernels kernels;
  for (const Tensor tensor : {Tensor::kQ, Tensor::kK}) {
    const TokenOps ops = token_ops(plan.program, tensor);
    if (ops.prepares()) kernels.push_back(prepare_kernel(plan, ops, tensor));
  }
  return kernels;
}

}  // namespace lacuna
