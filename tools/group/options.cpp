#include "tools/group/options.hpp"

#include <algorithm>

#include "tools/common/spec_options.hpp"

namespace lacuna::tools {
namespace {

constexpr group::LayoutKind kLayouts[] = {group::LayoutKind::kContiguous,
                                          group::LayoutKind::kStriped, group::LayoutKind::kHeads};

}  // namespace

void add_group_options(CLI::App& verb, GroupOptions& options) {
  std::vector<std::string> layouts, schemes = {"auto"}, exchanges = {"auto"};
  for (const auto kind : kLayouts) layouts.emplace_back(name_of(kind));
  for (const auto scheme : group::kSchemes) schemes.emplace_back(name_of(scheme));
  for (const auto exchange : group::kExchanges) exchanges.emplace_back(name_of(exchange));
  CLI::Option* gpus =
      verb.add_option("--gpus", options.gpus, "Ranks of a group that shares the problem (no group)")
          ->check(CLI::Range(1, 64))
          ->type_name("N");
  verb.add_option("--layout", options.layout,
                  "What the ranks of the group hold: contiguous, striped or heads (contiguous)")
      ->check(one_of(layouts))
      ->type_name("NAME")
      ->needs(gpus);
  verb.add_option("--stripe", options.stripe, "Tokens of a stripe (two stripes for each rank)")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->needs(gpus);
  verb.add_option("--scheme", options.scheme,
                  "How work is dealt to the ranks: auto, gather, rows or heads (auto)")
      ->check(one_of(schemes))
      ->type_name("NAME")
      ->needs(gpus);
  verb.add_option(
          "--exchange", options.exchange,
          "How ranks exchange: auto, messages (of NCCL), or copies into shared memory (auto)")
      ->check(one_of(exchanges))
      ->type_name("NAME")
      ->needs(gpus);
  verb.add_option("--link", options.link_gb_s,
                  "GB/s between ranks (measured by bench, else known or a guess)")
      ->check(CLI::PositiveNumber)
      ->type_name("X")
      ->needs(gpus);
  verb.add_option("--tflops", options.tflops, "Rate of attention on a rank (known or a guess)")
      ->check(CLI::PositiveNumber)
      ->type_name("X")
      ->needs(gpus);
}

void add_exchange_options(CLI::App& verb, GroupOptions& options) {
  CLI::Option* gpus = verb.get_option("--gpus");
  verb.add_option("--sm-margin", options.sm_margin,
                  "Multiprocessors that launches leave to an exchange under way; -1: none (16)")
      ->type_name("N")
      ->needs(gpus);
  verb.add_option("--max-ctas", options.max_ctas,
                  "Most blocks of an exchange; -1: as NCCL decides (16)")
      ->type_name("N")
      ->needs(gpus);
}

group::Layout layout_of(const GroupOptions& options, const LaunchShape& shape, std::int32_t unit) {
  group::Layout layout;
  for (const auto kind : kLayouts) {
    if (options.layout == name_of(kind)) layout.kind = kind;
  }
  const std::int32_t half = (shape.n_q + 2 * options.gpus - 1) / std::max(1, 2 * options.gpus);
  layout.stripe = options.stripe > 0 ? options.stripe : (half + unit - 1) / unit * unit;
  return layout;
}

std::optional<group::Exchange> exchange_of(const GroupOptions& options) {
  for (const auto exchange : group::kExchanges) {
    if (options.exchange == name_of(exchange)) return exchange;
  }
  return std::nullopt;
}

std::optional<group::Scheme> scheme_of(const GroupOptions& options) {
  for (const auto scheme : group::kSchemes) {
    if (options.scheme == name_of(scheme)) return scheme;
  }
  return std::nullopt;
}

}  // namespace lacuna::tools
