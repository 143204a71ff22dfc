#include "runtime/group/cost.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/group/chunks.hpp"

namespace lacuna::group {
namespace {

using Json = nlohmann::ordered_json;

/// What each way of exchange costs.
struct ExchangeCost {
  double fixed_us;  ///< of a chunk, before and after its bytes
  double run_us;    ///< of each run of rows besides its bytes
  /// Share of the link's rate, as measured by one message of 64 MB, that messages of 2 to 4 MB
  /// reach.
  double of_link;
  /// Share of the SMs that launches leave free while an exchange runs. For messages that is 16 of
  /// 132, the default of lacuna_group_options::sm_margin; copy engines need no SM.
  double sms;
};
constexpr ExchangeCost kExchangeCosts[] = {{20, 0, 0.55, 0.12}, {10, 6, 0.9, 0}};  ///< by Exchange
constexpr double kLaunchUs = 2;  ///< of a kernel among others
/// An exchange that takes less is not cut: each chunk has its fixed time and a launch.
constexpr double kWorthCuttingUs = 60;

const ExchangeCost& cost_of(Exchange exchange) {
  return kExchangeCosts[static_cast<std::size_t>(exchange)];
}

/// Rates that were measured. For other GPUs the guess is taken.
struct KnownRate {
  const char* target;
  double link_gb_s[2], tflops;  ///< the link's by Exchange
  const char *link_origin, *tflops_origin;
};
constexpr KnownRate kKnownRates[] = {
    {"sm_90a",
     {230, 370},
     690,
     "one GPU to another over NVLink",
     "dense causal attention, head dim 128, 16384 tokens (README.md)"},
    {"cpu",
     {10, 10},
     0.4,
     "memcpy between threads",
     "dense causal attention on two cores (README.md)"},
};
constexpr KnownRate kGuess = {
    "", {20, 20}, 100, "a guess: no link was measured", "a guess: no kernel was measured"};

double most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}
std::size_t sum(const std::vector<std::size_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::size_t{0});
}

/// What one rank sends or receives.
struct Load {
  std::size_t bytes = 0, runs = 0;

  double exchange_us(const Rates& rates) const {
    const ExchangeCost& cost = cost_of(rates.exchange);
    return bytes == 0 ? 0
                      : cost.fixed_us + static_cast<double>(runs) * cost.run_us +
                            static_cast<double>(bytes) / (rates.link_gb_s * cost.of_link * 1e3);
  }
};

/// Of each rank in each chunk. Runs count where they are sent, one after the other.
struct Loads {
  std::vector<std::vector<Load>> sent, received;  ///< [rank][chunk]

  Loads(std::size_t ranks, std::size_t chunks)
      : sent(ranks, std::vector<Load>(chunks)), received(sent) {}

  void add(const Problem& problem, const std::vector<Run>& runs, std::size_t from, std::size_t to) {
    for (const Run& run : runs) {
      const auto chunk = static_cast<std::size_t>(run.chunk);
      for (Load* load : {&sent[from][chunk], &received[to][chunk]})
        load->bytes += problem.bytes_of(run.tensor, run.tokens.count());
      ++sent[from][chunk].runs;
    }
  }
  /// us that a chunk takes: the longest that one rank needs to send its part or to receive it.
  double exchange_us(std::size_t chunk, const Rates& rates) const {
    double most_us = 0;
    for (std::size_t rank = 0; rank < sent.size(); ++rank)
      most_us = std::max({most_us, sent[rank][chunk].exchange_us(rates),
                          received[rank][chunk].exchange_us(rates)});
    return most_us;
  }
};

std::size_t bytes_of(const std::vector<Load>& loads) {
  std::size_t bytes = 0;
  for (const Load& load : loads) bytes += load.bytes;
  return bytes;
}

struct TrafficLoads {
  Loads inputs, outputs;
};

TrafficLoads count_traffic(const Traffic& traffic) {
  const auto ranks = static_cast<std::size_t>(traffic.size());
  const auto chunks = static_cast<std::size_t>(traffic.chunks);
  TrafficLoads loads{{ranks, chunks}, {ranks, chunks}};
  for (int from = 0; from < traffic.size(); ++from) {
    for (int to = 0; to < traffic.size(); ++to) {
      if (from == to) continue;
      const auto source = static_cast<std::size_t>(from), target = static_cast<std::size_t>(to);
      loads.inputs.add(traffic.problem, traffic.inputs(from, to), source, target);
      loads.outputs.add(traffic.problem, traffic.outputs(from, to), source, target);
    }
  }
  return loads;
}

/// Puts the pieces whose queries see most keys first. While the last blocks of a launch run, SMs
/// idle; they idle less if those blocks have little work.
void sort_by_length(std::vector<Piece>& pieces, const Work& work, std::int32_t unit) {
  const auto length = [&](const Piece& piece) {
    return pairs_of({piece}, work, unit) /
           (static_cast<double>(piece.heads.count()) * piece.q.count());
  };
  std::ranges::stable_sort(pieces,
                           [&](const Piece& a, const Piece& b) { return length(a) > length(b); });
}

/// us of a launch.
double compute_us_of(const Piece& piece, const Problem& problem, const CutRules& rules,
                     const Work& work, const Rates& rates) {
  const double pairs = pairs_of({piece}, work, rules.unit) + overhead_of({piece}, work, rules.unit);
  return pairs * problem.shape.n_b * 4 * problem.head_dim / (rates.tflops * 1e6) + kLaunchUs;
}

/// When each of a rank's launches ends, if they run one after the other and take `launch_us`.
/// `arrivals`: when the inputs of each chunk have arrived. While chunks behind the first arrive,
/// the launches lack `exchange_sms` of the multiprocessors, a share between 0 and 1.
std::vector<double> ends_of_launches(const std::vector<Piece>& pieces,
                                     const std::vector<double>& launch_us,
                                     const std::vector<double>& arrivals, double exchange_sms) {
  std::vector<double> ends;
  double now = (arrivals.back() - arrivals.front()) * exchange_sms;
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const auto chunk = static_cast<std::size_t>(pieces[n].chunk);
    if (!pieces[n].early) now = std::max(now, arrivals[chunk]);
    now += launch_us[n];
    ends.push_back(now);
  }
  return ends;
}

/// When the last of the launches ends that the results of a chunk wait for.
double results_ready(const Traffic& traffic, const std::vector<std::vector<double>>& ends,
                     int chunk) {
  double ready = 0;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    for (std::size_t n = 0; n < ends[rank].size(); ++n) {
      if (traffic.results_wait_for(static_cast<int>(rank), n, chunk))
        ready = std::max(ready, ends[rank][n]);
    }
  }
  return ready;
}

/// The model: chunks arrive one after the other. The pieces of one are computed when it has arrived
/// and those before are done, and results are sent when what they wait for is done. All ranks take
/// part in each exchange.
void add_times(SchemeCost& cost, const TrafficLoads& loads, const CutRules& rules, const Work& work,
               const Rates& rates) {
  const Traffic& traffic = cost.traffic;
  std::vector<double> arrivals;
  for (int chunk = 0; chunk < traffic.chunks; ++chunk) {
    cost.exchange_us += loads.inputs.exchange_us(static_cast<std::size_t>(chunk), rates);
    arrivals.push_back(cost.exchange_us);
  }
  std::vector<std::vector<double>> ends;
  for (const std::vector<Piece>& pieces : traffic.pieces) {
    std::vector<double> launch_us;
    for (const Piece& piece : pieces)
      launch_us.push_back(compute_us_of(piece, traffic.problem, rules, work, rates));
    cost.compute_us =
        std::max(cost.compute_us, std::accumulate(launch_us.begin(), launch_us.end(), 0.0));
    ends.push_back(ends_of_launches(pieces, launch_us, arrivals, cost_of(rates.exchange).sms));
    if (!pieces.empty()) cost.total_us = std::max(cost.total_us, ends.back().back());
  }
  double sent_until = arrivals.back();
  for (int chunk = 0; chunk < traffic.chunks; ++chunk) {
    const double exchange_us = loads.outputs.exchange_us(static_cast<std::size_t>(chunk), rates);
    cost.exchange_us += exchange_us;
    if (exchange_us > 0)
      sent_until = std::max(sent_until, results_ready(traffic, ends, chunk)) + exchange_us;
  }
  cost.total_us = std::max(cost.total_us, sent_until);
}

/// What travels, and how long all takes.
void add_figures(SchemeCost& cost, const CutRules& rules, const Work& work, const Rates& rates) {
  for (const std::vector<Piece>& pieces : cost.traffic.pieces)
    cost.most_launches = std::max(cost.most_launches, pieces.size());
  const TrafficLoads loads = count_traffic(cost.traffic);
  for (std::size_t rank = 0; rank < cost.traffic.pieces.size(); ++rank) {
    cost.sent_bytes.push_back(bytes_of(loads.inputs.sent[rank]) +
                              bytes_of(loads.outputs.sent[rank]));
    cost.received_bytes.push_back(bytes_of(loads.inputs.received[rank]) +
                                  bytes_of(loads.outputs.received[rank]));
  }
  add_times(cost, loads, rules, work, rates);
}

/// Cuts the last piece of each rank in two. The second, which becomes the rank's last launch, has
/// as many queries as take about `tail_us`.
void cut_tails(Traffic& traffic, double tail_us, const CutRules& rules, const Work& work,
               const Rates& rates) {
  for (std::vector<Piece>& pieces : traffic.pieces) {
    if (pieces.empty()) continue;
    Piece rest = pieces.back(), tail = rest;
    double left_us = tail_us - kLaunchUs;
    for (tail.q.end = tail.q.begin; tail.q.end < rest.q.end && left_us > 0;) {
      Piece unit = tail;
      unit.q = {tail.q.end, std::min((tail.q.end / rules.unit + 1) * rules.unit, rest.q.end)};
      tail.q.end = unit.q.end;
      left_us -= compute_us_of(unit, traffic.problem, rules, work, rates) - kLaunchUs;
    }
    rest.q.begin = tail.q.end;
    if (rest.q.empty()) continue;
    pieces.back() = rest;
    pieces.push_back(tail);
  }
}

/// In chunks whose results travel one by one, or all together at the end.
std::optional<SchemeCost> cost_in_chunks(SchemeCost cost, bool at_end, const CutRules& rules,
                                         const Work& work, const Rates& rates) {
  Traffic& traffic = cost.traffic;
  const bool ends_small = traffic.has_outputs() && !at_end;
  traffic.chunks = cut_into_chunks(traffic.pieces, traffic.problem.shape, rules, ends_small);
  if (at_end) {
    if (traffic.chunks == 1 || !traffic.ends_with_own_results()) return std::nullopt;
    traffic.results_at_end = true;
    const auto last = static_cast<std::size_t>(traffic.chunks - 1);
    cut_tails(traffic, count_traffic(traffic).outputs.exchange_us(last, rates), rules, work, rates);
  }
  add_figures(cost, rules, work, rates);
  return cost;
}

/// Cuts the exchange where that is worth it, in the way that takes the least time.
SchemeCost cost_exchange(SchemeCost cost, const CutRules& rules, const Work& work,
                         const Rates& rates) {
  const TrafficLoads whole = count_traffic(cost.traffic);
  const double exchange_us =
      whole.inputs.exchange_us(0, rates) + whole.outputs.exchange_us(0, rates);
  if (exchange_us < kWorthCuttingUs) {
    add_figures(cost, rules, work, rates);
    return cost;
  }
  const auto one_by_one = cost_in_chunks(cost, false, rules, work, rates);
  const auto at_end = cost.traffic.has_outputs() ? cost_in_chunks(cost, true, rules, work, rates)
                                                 : std::optional<SchemeCost>();
  return at_end && at_end->total_us < one_by_one->total_us ? *at_end : *one_by_one;
}

SchemeCost cost_scheme(Deal deal, const Problem& problem, const std::vector<Share>& shares,
                       const CutRules& rules, const Work& work, const Rates& rates) {
  SchemeCost cost;
  cost.scheme = deal.scheme;
  cost.refusal = std::move(deal.refusal);
  if (!cost.refusal.empty()) return cost;
  for (std::size_t rank = 0; rank < deal.ranks.size(); ++rank) {
    std::vector<Piece>& pieces = deal.ranks[rank];
    cost.pairs.push_back(pairs_of(pieces, work, rules.unit) * problem.shape.n_b);
    mark_early(pieces, shares[rank], problem.shape, rules, work);
    sort_by_length(pieces, work, rules.unit);
  }
  cost.traffic = {problem, shares, std::move(deal.ranks)};
  cost.traffic.by_copies = rates.exchange == Exchange::kCopies;
  return cost_exchange(std::move(cost), rules, work, rates);
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
          {"chunks", cost.traffic.chunks},
          {"exchange_us", cost.exchange_us},
          {"compute_us", cost.compute_us},
          {"total_us", cost.total_us}};
}

}  // namespace

std::string_view name_of(Exchange exchange) {
  return exchange == Exchange::kCopies ? "copies" : "messages";
}

Rates known_rates(const std::string& target, Exchange exchange, double link_gb_s, double tflops) {
  const auto* known = std::ranges::find_if(
      kKnownRates, [&](const KnownRate& rate) { return target == rate.target; });
  const KnownRate& row = known == std::end(kKnownRates) ? kGuess : *known;
  Rates rates{exchange, row.link_gb_s[static_cast<std::size_t>(exchange)], row.tflops,
              row.link_origin, row.tflops_origin};
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
                      const Rates& rates, const Work& work, int rank,
                      const std::vector<std::string>& events, std::size_t shared_bytes) {
  const SchemeCost& best = costs[chosen];
  const double overhead = static_cast<double>(work.pairs.size()) * work.pairs_of_unit;
  const double alone_us = (std::accumulate(work.pairs.begin(), work.pairs.end(), 0.0) + overhead) *
                              best.traffic.problem.shape.n_b * 4 * best.traffic.problem.head_dim /
                              (rates.tflops * 1e6) +
                          kLaunchUs;
  Json json = {{"ranks", best.traffic.size()}};
  if (rank >= 0) json["rank"] = rank;
  json["layout"] = name_of(best.traffic.problem.layout.kind);
  json["scheme"] = name_of(best.scheme);
  json["because"] = was_wanted ? "the caller asks for it" : "the least time";
  json["exchange"] = name_of(rates.exchange);
  json["link"] = {{"gb_per_s", rates.link_gb_s}, {"origin", rates.link_origin}};
  json["kernel"] = {{"tflops", rates.tflops}, {"origin", rates.tflops_origin}};
  json["one_gpu_us"] = alone_us;
  json["efficiency"] = alone_us / (best.total_us * best.traffic.size());
  json["schemes"] = Json::array();
  for (const SchemeCost& cost : costs) json["schemes"].push_back(cost_json(cost));
  if (rank >= 0) json["shared_bytes"] = shared_bytes, json["events"] = events;
  return json.dump();
}

}  // namespace lacuna::group
