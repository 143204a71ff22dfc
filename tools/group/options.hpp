// --gpus, --layout, --stripe, --scheme: what explain and bench ask about a group.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/group/cost.hpp"

namespace lacuna::tools {

struct GroupOptions {
  int gpus = 0;  ///< 0: no group
  std::string layout = "contiguous", scheme = "auto";
  std::int32_t stripe = 0;  ///< 0: two stripes for each rank
  std::string exchange = "auto";
  double link_gb_s = 0, tflops = 0;          ///< 0: measured or known
  std::int32_t sm_margin = 0, max_ctas = 0;  ///< as lacuna_group_options says
};

/// Nothing: as is usual.
std::optional<group::Exchange> exchange_of(const GroupOptions& options);
void add_group_options(CLI::App& verb, GroupOptions& options);
/// What only a group that runs has.
void add_exchange_options(CLI::App& verb, GroupOptions& options);

/// The layout; stripes begin at multiples of `unit` queries.
group::Layout layout_of(const GroupOptions& options, const LaunchShape& shape, std::int32_t unit);

std::optional<group::Scheme> scheme_of(const GroupOptions& options);

}  // namespace lacuna::tools
