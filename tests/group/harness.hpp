// A problem that one engine computes, and that the ranks of a loopback group compute together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lacuna/group.hpp"

namespace lacuna::test {

/// Sequences of a batch, as lacuna_sequences has them.
struct Ragged {
  std::int32_t max_n_q = 0, max_n_k = 0;
  std::vector<std::int32_t> q_begin, n_k, k_begin;

  std::int32_t count() const { return static_cast<std::int32_t>(n_k.size()); }
};
/// The tensors of a launch's; `ragged` outlives them.
Sequences sequences_of(Ragged& ragged);

/// Values of the whole, f32, [heads, tokens, dim] of one batch entry after the other.
struct Whole {
  Shape shape{};
  int dim = 64;
  std::vector<float> q, k, v;
  Ragged ragged{};  ///< none: a batch of one length
};
Whole make_whole(const Shape& shape, int dim = 64);

struct Results {
  std::vector<float> o, lse;
  std::vector<std::int32_t> counts{};  ///< where they are asked for
  bool operator==(const Results&) const = default;
};

using MakeParams = std::function<std::vector<Param>()>;
inline std::vector<Param> no_params() { return {}; }

Engine cpu_engine();
Spec shipped(const std::string& name);

/// Branches with weights have no log-sum-exp in common.
bool has_lse(const Spec& spec);

Results run_alone(const Whole& whole, const Spec& spec, const MakeParams& params = no_params,
                  bool with_counts = false);

struct GroupCase {
  int ranks = 2;
  Layout layout = Layout::kContiguous;
  std::int32_t stripe = 0;
  Scheme scheme = Scheme::kAuto;
  bool token_major = false;  ///< a token's heads lie side by side
  std::vector<float> work{};
  bool with_counts = false;
  Exchange exchange = Exchange::kAuto;
  double link_gb_s = 0;  ///< so slow that the exchange is worth cutting into chunks; 0: the known
};
std::string name_of(const GroupCase& c);

struct GroupRun {
  Results results;
  std::vector<std::string> errors;  ///< of each rank; "" where all is well
  std::vector<std::string> plans;   ///< their JSON
};
/// `launches`: times that each rank launches its plan.
GroupRun run_together(const Whole& whole, const Spec& spec, const GroupCase& c,
                      const MakeParams& params = no_params, int launches = 1);

/// One thread for each rank; what it throws is its error.
std::vector<std::string> in_threads(int ranks, const std::function<void(int rank)>& body);

}  // namespace lacuna::test
