#include "runtime/tune/config.hpp"

#include <charconv>

namespace lacuna::tune {
namespace {

/// Where products of the plan take queries from. The mma family and the CPU have no choice:
/// registers are written for them.
QueryPlace queries_of(const Plan& plan) {
  const AttendPlan& attend = plan.attend;
  const bool is_wgmma = attend.family.value == AttendFamily::kWgmma;
  return is_wgmma ? attend.queries.value : QueryPlace::kRegisters;
}

/// N of "<name>N"; nothing if the word is another.
std::optional<int> number_after(std::string_view word, std::string_view name) {
  if (!word.starts_with(name)) return std::nullopt;
  word.remove_prefix(name.size());
  int value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || value < 1)
    return std::nullopt;
  return value;
}

bool read_word(std::string_view word, Config& config) {
  for (const TileOrder order : {TileOrder::kAscending, TileOrder::kDescending}) {
    if (word != name_of(order)) continue;
    config.order = order;
    return true;
  }
  if (word == name_of(QueryPlace::kSharedMemory)) {
    config.queries = QueryPlace::kSharedMemory;
    return true;
  }
  struct Field {
    const char* name;
    int Config::*member;
  };
  constexpr Field kFields[] = {{"q", &Config::tile_q},
                               {"k", &Config::tile_k},
                               {"stages", &Config::stages},
                               {"threads", &Config::threads},
                               {"split", &Config::split_kv}};
  for (const Field& field : kFields) {
    if (const auto value = number_after(word, field.name)) {
      config.*field.member = *value;
      return true;
    }
  }
  return false;
}

}  // namespace

std::string print_config(const Config& config) {
  std::string text = "q" + std::to_string(config.tile_q) + " k" + std::to_string(config.tile_k) +
                     " " + std::string(name_of(config.order));
  if (config.stages > 0) text += " stages" + std::to_string(config.stages);
  if (config.threads > 0) text += " threads" + std::to_string(config.threads);
  if (config.split_kv > 1) text += " split" + std::to_string(config.split_kv);
  if (config.queries != QueryPlace::kRegisters) text += " " + std::string(name_of(config.queries));
  return text;
}

std::optional<Config> parse_config(std::string_view text) {
  Config config;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!read_word(text.substr(0, end), config)) return std::nullopt;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (config.tile_q == 0 || config.tile_k == 0) return std::nullopt;
  return config;
}

TunedTiles tuned_tiles(const Config& config, std::string record) {
  return {config.tile_q,     config.tile_k,   config.stages, config.order,
          std::move(record), config.split_kv, config.queries};
}

Config config_of(const Plan& plan, int threads) {
  const AttendPlan& attend = plan.attend;
  const bool on_gpu = plan.target.kind == TargetKind::kCuda;
  return {attend.tile_q.value, attend.tile_k.value,  on_gpu ? attend.stages.value : 0,
          attend.order.value,  on_gpu ? 0 : threads, on_gpu ? attend.split_kv.value : 1,
          queries_of(plan)};
}

VariantSpec fixed_spec(const VariantSpec& spec, const Config& config) {
  VariantSpec fixed = spec;
  fixed.tile.q.values = {config.tile_q};
  fixed.tile.k.values = {config.tile_k};
  fixed.tile.order.values = {config.order};
  if (config.stages > 0) {
    fixed.tile.stages.values = {config.stages};
    fixed.tile.warps = {};
    fixed.tile.split_kv.values = {config.split_kv};
    fixed.tile.queries.values = {config.queries};
  }
  return fixed;
}

}  // namespace lacuna::tune
