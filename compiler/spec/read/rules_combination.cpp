// Rules between predictor, quantise, permute, mask, loader and tile.
#include <algorithm>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"
#include "compiler/spec/read/rule_context.hpp"
#include "compiler/spec/table/field_words.hpp"

namespace lacuna {
namespace {

constexpr int kWidestColumn = 16;
constexpr int kKeyStep = 32;  ///< of one mma of bytes, and of the groups of four threads
constexpr int kMostTokens = 1 << 24;

bool has(const Choice<Loader>& loader, Loader wanted) {
  return std::find(loader.values.begin(), loader.values.end(), wanted) != loader.values.end();
}

/// No choice of loader that the spec leaves open goes without gathering.
bool always_gathers(const VariantSpec& spec) {
  if (!spec.predictor || spec.predictor->tile_k > kWidestColumn) return false;
  const bool only_gather = has(spec.loader, Loader::kGather) && !has(spec.loader, Loader::kCpAsync);
  return spec.predictor->tile_k < kWidestColumn || only_gather;
}

void check_mask(const RuleContext& context) {
  if (!context.spec.external_mask || !context.spec.predictor) return;
  context.conflict("mask", "\"mask\": \"external\" does not go with a predictor",
                   "either the caller's lists say which tiles are computed, or the predictor does",
                   "leave one of them out");
}

void check_loader(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  const Choice<Loader>& loader = spec.loader;
  if (loader.is_auto() || !context.sound({"loader", "predictor.tile.k"})) return;
  const int tile_k = spec.predictor ? spec.predictor->tile_k : 0;
  if (spec.predictor && tile_k < kWidestColumn && !has(loader, Loader::kGather))
    context.conflict("loader",
                     "loader \"cp_async\" cannot load columns of " + std::to_string(tile_k) +
                         (tile_k == 1 ? " key" : " keys"),
                     "columns are fetched from many places, which is what \"gather\" does",
                     "\"gather\" or \"auto\"; or predictor.tile.k of 16 or more");
  const bool columns = spec.predictor && tile_k <= kWidestColumn;
  if (!columns && !has(loader, Loader::kCpAsync))
    context.conflict(
        "loader",
        spec.predictor
            ? "loader \"gather\" needs columns, but predictor.tile.k is " + std::to_string(tile_k)
            : "loader \"gather\" needs columns, and there is no predictor",
        "it fetches the kept keys of a work tile in columns of 1, 8 or 16",
        spec.predictor ? "predictor.tile.k of 1, 8 or 16; or leave loader out" : "leave it out");
}

/// One list of keys serves one tile of queries.
void check_gathered_rows(const RuleContext& context) {
  const std::vector<int>& written = context.spec.tile.q.values;
  const int predicted = context.spec.predictor->tile_q;
  if (written.empty() || !context.sound({"tile.q", "predictor.tile.q"})) return;
  if (std::find(written.begin(), written.end(), predicted) != written.end()) return;
  context.conflict("tile.q",
                   "tile.q = " + joined_integers(written) + " is not predictor.tile.q = " +
                       std::to_string(predicted) + ", and keys are gathered",
                   "the queries of a tile share the keys that are gathered for them",
                   "tile.q = " + std::to_string(predicted) + ", or leave it out");
}

void check_gathering(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  if (!context.sound({"loader", "predictor.tile.k"}) || !always_gathers(spec)) return;
  const std::string tiles = "predictor.tile.k of 32 or more";
  if (context.at("quantise.v.bits") != nullptr && spec.quantise.v_bits == 8)
    context.conflict("quantise.v.bits", "quantise.v.bits = 8 does not go with gathered keys",
                     "e4m3 values lie by channel, so that single keys cannot be fetched",
                     "16, or " + tiles);
  if (context.at("quantise.qk.bits") != nullptr && spec.quantise.qk_bits == 8)
    context.conflict("quantise.qk.bits", "quantise.qk.bits = 8 does not go with gathered keys",
                     "neighbouring keys share a scale, and gathered keys are not neighbours",
                     "16, or " + tiles);
  if (spec.gate)
    context.conflict("gate", "gate does not go with gathered keys",
                     "a gate decides for a tile of neighbouring keys, and gathered keys are none",
                     "leave the gate out, or " + tiles);
  check_gathered_rows(context);
  const std::vector<TileOrder>& order = spec.tile.order.values;
  if (!order.empty() && std::find(order.begin(), order.end(), TileOrder::kAscending) == order.end())
    context.conflict("tile.order", "tile.order = \"descending\" does not go with gathered keys",
                     "keys are gathered in ascending order", "\"ascending\", or leave it out");
}

/// A list is legal if it has 1: rows that stay whole go with everything.
void check_split_kv(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  const std::vector<int>& written = spec.tile.split_kv.values;
  if (!context.sound({"tile.split_kv", "loader", "predictor.tile.k", "quantise.v.bits"})) return;
  if (written.empty() || std::find(written.begin(), written.end(), 1) != written.end()) return;
  const std::string split = "tile.split_kv = " + joined_integers(written) + " does not go with ";
  if (spec.gate)
    context.conflict("tile.split_kv", split + "a gate",
                     "what a gate decides depends on the tiles before in the row, which other "
                     "blocks would have",
                     "nearest legal value: 1");
  else if (spec.quantise.v_bits == 8)
    context.conflict("tile.split_kv", split + "quantise.v.bits = 8",
                     "weights are rounded to e4m3 by the largest of the tiles before in the row, "
                     "which other blocks would have",
                     "nearest legal value: 1; or quantise.v.bits of 16");
  else if (always_gathers(spec))
    context.conflict("tile.split_kv", split + "gathered keys",
                     "the columns of a row become one list of keys, in one block",
                     "nearest legal value: 1; or predictor.tile.k of 32 or more");
}

void check_quantise(const RuleContext& context) {
  const QuantiseSpec& quantise = context.spec.quantise;
  if (!context.sound({"quantise.qk.bits", "quantise.qk.group", "quantise.v.bits"})) return;
  if (quantise.qk_bits == 16 && context.at("quantise.qk.group") != nullptr)
    context.conflict("quantise.qk.group", "quantise.qk.group needs quantise.qk.bits = 8",
                     "a group shares a scale, which only integers have",
                     "\"bits\": 8, or leave group out");
  if (quantise.v_bits == 16 && context.at("quantise.v.range") != nullptr)
    context.conflict("quantise.v.range", "quantise.v.range needs quantise.v.bits = 8",
                     "it is the range of e4m3 values", "\"bits\": 8, or leave range out");
  if (quantise.v_bits == 8 && quantise.qk_bits == 16)
    context.conflict("quantise.v.bits", "quantise.v.bits = 8 needs quantise.qk.bits = 8",
                     "the kernel with e4m3 values computes its scores in integers",
                     "add \"qk\": { \"bits\": 8 }");
}

/// What takes keys in steps of 32: the compiler's key tile holds whole steps.
void check_key_steps(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  if (!context.sound({"quantise.qk.bits", "quantise.qk.group", "quantise.v.bits"})) return;
  const bool threads = spec.quantise.qk_bits == 8 && spec.quantise.qk_group == QuantGroup::kThread;
  if (!threads && spec.quantise.v_bits != 8) return;
  const auto whole = [](int keys) { return keys % kKeyStep == 0; };
  const auto check = [&](std::string_view path, const std::vector<int>& keys) {
    if (!context.sound({path}) || keys.empty() || std::any_of(keys.begin(), keys.end(), whole))
      return;
    const std::string tile =
        std::string(path) + " = " + joined_integers(keys) + " does not go with ";
    if (threads)
      context.conflict(path, tile + "quantise.qk.group \"thread\"",
                       "the keys of a thread's group are 8 of 32",
                       "a multiple of 32, or \"group\": \"warp\"");
    else
      context.conflict(
          path, tile + "quantise.v.bits = 8",
          "the product with e4m3 values takes keys in steps of 32, the depth of one mma",
          "a multiple of 32");
  };
  check("tile.k", spec.tile.k.values);
  if (spec.predictor && spec.predictor->tile_k >= kWidestColumn)
    check("predictor.tile.k", {spec.predictor->tile_k});
}

/// Sigmoids and scores as weights have no denominator: what is made of one, and what is relative to
/// the largest logit so far, has no meaning with them.
void check_plain_sum(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  if (!context.sound({"attention.normalise", "attention.lse"})) return;
  if (has_denominator(spec.attention.normalise)) return;
  const std::string weights = "\"" + std::string(name_of(spec.attention.normalise)) + "\"";
  const auto refuse = [&](std::string_view path, std::string why, const char* help) {
    context.conflict(path, std::string(path) + " does not go with attention.normalise " + weights,
                     std::move(why), help);
  };
  if (spec.attention.lse)
    refuse("attention.lse",
           "a log-sum-exp is that of a softmax denominator, which " + weights + " lacks",
           "leave lse out");
  if (context.at("attention.sink") != nullptr)
    refuse("attention.sink",
           "a sink counts in the softmax denominator alone, which " + weights + " lacks",
           "leave sink out, or \"softmax\"");
  if (spec.gate)
    refuse("gate", "a gate leaves out tiles that have little of the softmax denominator",
           "leave gate out, or \"softmax\"");
  if (spec.quantise.v_bits == 8 && context.sound({"quantise.v.bits"}))
    refuse("quantise.v.bits", "weights are rounded to e4m3 relative to the largest of their row",
           "16");
}

/// The base is that of the results; an earlier call's are read in natural units.
void check_lse_base(const RuleContext& context) {
  const AttentionSpec& attention = context.spec.attention;
  if (!context.sound({"attention.lse", "attention.lse_base"})) return;
  if (!attention.lse && context.at("attention.lse_base") != nullptr)
    context.conflict("attention.lse_base", "attention.lse_base needs attention.lse",
                     "without a log-sum-exp there is nothing that has a base",
                     "\"lse\": true, or leave lse_base out");
  const auto steps = context.spec.steps();
  const bool reads_lse = std::any_of(steps.begin(), steps.end(), [](const PredictorSpec* step) {
    return step->estimate && step->estimate->normalise == Normalise::kPreviousLse;
  });
  if (reads_lse && attention.lse_base == LseBase::k2)
    context.conflict("attention.lse_base",
                     "attention.lse_base = \"2\" does not go with "
                     "predictor.estimate.normalise \"previous_lse\"",
                     "the lse of an earlier call is read as a natural logarithm",
                     "leave lse_base out");
}

/// A mean of neighbours in the order stands for no token of the caller's.
void check_order_of_means(const RuleContext& context) {
  const BranchSpec& branch = context.spec.branch;
  const auto refuse = [&](std::string_view path, const Expr& expr) {
    for (const auto& [variable, means, field] :
         {std::tuple{Variable::kQ, branch.query_means, "query_means"},
          std::tuple{Variable::kK, branch.means, "means"}}) {
      if (means == 1 || !uses(expr, variable)) continue;
      const std::string name(info(variable).name);
      context.conflict_in(path, expr, variable,
                          std::string(path) + " reads '" + name + "', but with permute " + field +
                              " are of neighbours in the order",
                          "the caller's tokens of one mean may lie anywhere",
                          "leave " + name +
                              " out: \"attention\" of the branch can have a formula of "
                              "its own; a pattern over permuted tiles can stand in predictor.keep");
      return;
    }
  };
  const AttentionSpec& attention = context.spec.attention;
  refuse("attention.mask", attention.mask);
  refuse("attention.score", attention.score);
  refuse("attention.sink", attention.sink);
}

/// The order is passed to kernels as parameters besides.
void check_order_params(const RuleContext& context) {
  const std::vector<ParamSpec>& params = context.spec.params;
  const std::size_t most = kMaxParams - kOrderParamNames.size();
  if (params.size() > most && context.at("params") != nullptr)
    context.conflict("params",
                     "params: expected at most " + std::to_string(most) + " with permute, got " +
                         std::to_string(params.size()),
                     "the order of queries and that of keys are passed as parameters besides",
                     "fewer parameters: several numbers can be rows of one table");
  for (const ParamSpec& param : params) {
    if (std::ranges::find(kOrderParamNames, param.symbol.name) == kOrderParamNames.end()) continue;
    if (context.at("params." + param.symbol.name) == nullptr) continue;
    context.conflict("params." + param.symbol.name,
                     "params." + param.symbol.name + ": permute passes a parameter of this name",
                     "it tells kernels which of the caller's tokens lies where",
                     "choose another name");
  }
}

void check_permute(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  if (spec.permute.order == TokenOrder::kNone) return;
  check_order_of_means(context);
  check_order_params(context);
  const double tokens = static_cast<double>(spec.permute.t) * spec.permute.h * spec.permute.w;
  if (tokens >= kMostTokens && context.at("permute") != nullptr)
    context
        .report(Code::kOutOfRange, *context.at("permute"),
                "permute." + std::string(name_of(spec.permute.order)) + " has 2^24 tokens or more")
        .notes.emplace_back("T * H * W is the number of tokens, and token indices lie below 2^24");
}

/// A list is legal if one of its points is: the tuner drops the others.
void check_tiles(const RuleContext& context, std::string_view side, int predicted,
                 const std::vector<int>& written) {
  const std::string tile = "tile." + std::string(side);
  const std::string predictor_tile = "predictor." + tile;
  if (written.empty() || !context.sound({tile, predictor_tile})) return;
  const auto divides = [&](int size) { return predicted % size == 0; };
  if (std::any_of(written.begin(), written.end(), divides)) return;
  context.conflict(
      tile,
      predictor_tile + " = " + std::to_string(predicted) + " is not a multiple of " + tile + " = " +
          joined_integers(written),
      "a tile of the predictor is a whole number of the kernel's tiles",
      "nearest legal values: " + tile + " = " + nearest_divisors(predicted, written.front()));
}

}  // namespace

void check_combination(const RuleContext& context) {
  const VariantSpec& spec = context.spec;
  check_mask(context);
  check_loader(context);
  check_gathering(context);
  check_split_kv(context);
  check_quantise(context);
  check_key_steps(context);
  check_permute(context);
  check_lse_base(context);
  check_plain_sum(context);
  // One that only smooths keeps no tiles.
  if (!spec.predictor || spec.predictor->only_smooths() || always_gathers(spec)) return;
  check_tiles(context, "q", spec.predictor->tile_q, spec.tile.q.values);
  check_tiles(context, "k", spec.predictor->tile_k, spec.tile.k.values);
}

}  // namespace lacuna
