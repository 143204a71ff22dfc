#include "runtime/group/cost.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace lacuna::group {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kExchangeUs = 15;  ///< of NCCL, before and after the bytes
constexpr double kLaunchUs = 6;     ///< of a kernel, on the host

/// Rates that were measured. GPUs that are not here count as the guess.
struct KnownRate {
  const char* target;
  double link_gb_s, tflops;
  const char *link_origin, *tflops_origin;
};
constexpr KnownRate kKnownRates[] = {
    {"sm_90a", 230, 690, "all-gather over NVLink, 2 H100, NCCL",
     "dense causal attention, head dim 128, 16384 tokens (README.md)"},
    {"cpu", 10, 0.4, "memcpy between threads", "dense causal attention on two cores (README.md)"},
};
constexpr KnownRate kGuess = {"", 20, 100, "a guess: no link was measured",
                              "a guess: no kernel was measured"};

double most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}
std::size_t most(const std::vector<std::size_t>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}
std::size_t sum(const std::vector<std::size_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::size_t{0});
}

void count_traffic(SchemeCost& cost) {
  const int size = cost.traffic.size();
  cost.sent_bytes.assign(static_cast<std::size_t>(size), 0);
  cost.received_bytes = cost.sent_bytes;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to) continue;
      const std::size_t bytes = cost.traffic.bytes_of(cost.traffic.inputs(from, to)) +
                                cost.traffic.bytes_of(cost.traffic.outputs(from, to));
      cost.sent_bytes[static_cast<std::size_t>(from)] += bytes;
      cost.received_bytes[static_cast<std::size_t>(to)] += bytes;
    }
  }
}

SchemeCost cost_scheme(Deal deal, const Problem& problem, const std::vector<Share>& shares,
                       const CutRules& rules, const Work& work, const Rates& rates) {
  SchemeCost cost;
  cost.scheme = deal.scheme;
  cost.refusal = std::move(deal.refusal);
  if (!cost.refusal.empty()) return cost;
  for (const std::vector<Piece>& pieces : deal.ranks) {
    cost.pairs.push_back(pairs_of(pieces, work, rules.unit) * problem.shape.n_b);
    cost.most_launches = std::max(cost.most_launches, pieces.size());
  }
  cost.traffic = {problem, shares, std::move(deal.ranks)};
  count_traffic(cost);
  const std::size_t bytes = std::max(most(cost.sent_bytes), most(cost.received_bytes));
  const double exchanges = bytes == 0 ? 0 : cost.scheme == Scheme::kGather ? 1 : 2;
  cost.exchange_us = exchanges * kExchangeUs + static_cast<double>(bytes) / (rates.link_gb_s * 1e3);
  cost.compute_us = most(cost.pairs) * 4 * problem.head_dim / (rates.tflops * 1e6) +
                    static_cast<double>(cost.most_launches) * kLaunchUs;
  cost.total_us = cost.exchange_us + cost.compute_us;
  return cost;
}

Json cost_json(const SchemeCost& cost) {
  if (!cost.refusal.empty())
    return {{"scheme", name_of(cost.scheme)}, {"possible", false}, {"reason", cost.refusal}};
  return {{"scheme", name_of(cost.scheme)},
          {"possible", true},
          {"sent_bytes", cost.sent_bytes},
          {"sent_bytes_total", sum(cost.sent_bytes)},
          {"least_bytes_total", cost.traffic.least_bytes()},
          {"pairs", cost.pairs},
          {"imbalance", cost.imbalance()},
          {"launches", cost.most_launches},
          {"exchange_us", cost.exchange_us},
          {"compute_us", cost.compute_us},
          {"total_us", cost.total_us}};
}

}  // namespace

Rates known_rates(const std::string& target, double link_gb_s, double tflops) {
  const auto* known = std::ranges::find_if(
      kKnownRates, [&](const KnownRate& rate) { return target == rate.target; });
  const KnownRate& row = known == std::end(kKnownRates) ? kGuess : *known;
  Rates rates{row.link_gb_s, row.tflops, row.link_origin, row.tflops_origin};
  if (link_gb_s > 0) rates.link_gb_s = link_gb_s, rates.link_origin = "given";
  if (tflops > 0) rates.tflops = tflops, rates.tflops_origin = "given";
  return rates;
}

double SchemeCost::imbalance() const {
  const double all = std::accumulate(pairs.begin(), pairs.end(), 0.0);
  return all > 0 ? most(pairs) * static_cast<double>(pairs.size()) / all - 1 : 0;
}

std::vector<SchemeCost> cost_schemes(const Problem& problem, int size, const CutRules& rules,
                                     const Work& work, const Rates& rates) {
  const std::vector<Share> shares = shares_of(problem.layout, problem.shape, size);
  std::vector<SchemeCost> costs;
  for (const Scheme scheme : kSchemes) {
    costs.push_back(cost_scheme(deal_work(scheme, shares, problem.shape, rules, work), problem,
                                shares, rules, work, rates));
  }
  return costs;
}

std::optional<std::size_t> choose_scheme(const std::vector<SchemeCost>& costs,
                                         std::optional<Scheme> wanted) {
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (!costs[i].refusal.empty() || (wanted && costs[i].scheme != *wanted)) continue;
    if (!chosen || costs[i].total_us < costs[*chosen].total_us) chosen = i;
  }
  return chosen;
}

std::string plan_json(const std::vector<SchemeCost>& costs, std::size_t chosen, bool was_wanted,
                      const Rates& rates, const Work& work, int rank) {
  const SchemeCost& best = costs[chosen];
  const double alone_us = std::accumulate(work.pairs.begin(), work.pairs.end(), 0.0) *
                              best.traffic.problem.shape.n_b * 4 * best.traffic.problem.head_dim /
                              (rates.tflops * 1e6) +
                          kLaunchUs;
  Json json = {{"ranks", best.traffic.size()}};
  if (rank >= 0) json["rank"] = rank;
  json["layout"] = name_of(best.traffic.problem.layout.kind);
  json["scheme"] = name_of(best.scheme);
  json["because"] = was_wanted ? "the caller asks for it" : "the least time";
  json["link"] = {{"gb_per_s", rates.link_gb_s}, {"origin", rates.link_origin}};
  json["kernel"] = {{"tflops", rates.tflops}, {"origin", rates.tflops_origin}};
  json["one_gpu_us"] = alone_us;
  json["efficiency"] = alone_us / (best.total_us * best.traffic.size());
  json["schemes"] = Json::array();
  for (const SchemeCost& cost : costs) json["schemes"].push_back(cost_json(cost));
  return json.dump();
}

}  // namespace lacuna::group
