// What each scheme would send and compute, how long that takes, and which one is the shortest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/group/traffic.hpp"

namespace lacuna::group {

/// How ranks exchange: by copies of their own between memory that they share, where they are on one
/// host, or by messages of NCCL's.
enum class Exchange : std::uint8_t { kMessages, kCopies };
inline constexpr Exchange kExchanges[] = {Exchange::kMessages, Exchange::kCopies};
std::string_view name_of(Exchange exchange);
/// What ranks that reach each other's memory do where none of them asks for a way.
inline constexpr Exchange kUsualExchange = Exchange::kCopies;

/// How fast links and kernels are, and where the numbers come from.
struct Rates {
  Exchange exchange = Exchange::kMessages;
  double link_gb_s = 0;  ///< from one rank to others, in one direction
  double tflops = 0;     ///< of attention, 4 * head_dim for each pair of tokens
  std::string link_origin, tflops_origin;
};

/// Rates of a target as measured by `lacuna bench`; values above 0 replace them.
Rates known_rates(const std::string& target, Exchange exchange, double link_gb_s, double tflops);

struct SchemeCost {
  Scheme scheme = Scheme::kGather;
  std::string refusal;  ///< why the scheme cannot be used; the rest is empty then
  Traffic traffic;
  std::vector<std::size_t> sent_bytes, received_bytes;  ///< of each rank
  std::vector<double> pairs;                            ///< of each rank
  std::size_t most_launches = 0;
  double exchange_us = 0;  ///< of all chunks, as if nothing ran meanwhile
  double compute_us = 0;   ///< of the rank with the most work
  double total_us = 0;     ///< less than both together: chunks come under attention

  double imbalance() const;  ///< the most pairs of a rank over the mean, less 1
};

std::vector<SchemeCost> cost_schemes(const Problem& problem, int size, const CutRules& rules,
                                     const Work& work, const Rates& rates);

/// The index of the wanted scheme, or of the one that takes the least time; nothing if the wanted
/// one cannot be used.
std::optional<std::size_t> choose_scheme(const std::vector<SchemeCost>& costs,
                                         std::optional<Scheme> wanted);

/// What lacuna_group_plan_json documents; `rank` below 0: none, and neither events nor memory.
std::string plan_json(const std::vector<SchemeCost>& costs, std::size_t chosen, bool was_wanted,
                      const Rates& rates, const Work& work, int rank,
                      const std::vector<std::string>& events = {}, std::size_t shared_bytes = 0);

}  // namespace lacuna::group
