#include "cache/tuning/line.hpp"
#include "cache/tuning/table.hpp"
#include "runtime/tune/bucket.hpp"
#include "runtime/tune/config.hpp"
#include "runtime/tune/lookup.hpp"
#include "tests/fuzz/targets/targets.hpp"

namespace lacuna::fuzz {
namespace {

/// What a line says is what is written of it.
void check_record(const cache::TuningRecord& record) {
  const std::string line = cache::print_tuning_line(record);
  const auto copy = cache::parse_tuning_line(line);
  require(copy.has_value(), "a record that is not read again: " + line);
  require(*copy == record, "read again as another: " + line);
  cache::compiler_kind(record.compiler);
  if (const auto config = tune::parse_config(record.config))
    require(tune::parse_config(tune::print_config(*config)) == config,
            "config: read again as another: " + record.config);
  if (const auto bucket = tune::parse_bucket(record.problem))
    require(tune::print_bucket(*bucket) == record.problem, "bucket: " + record.problem);
  tune::density_of(record.density);
}

}  // namespace

bool run_tuning(std::string_view text) {
  const cache::TuningRecords found = cache::parse_tuning(text, "fuzz.jsonl");
  require(found.warnings.size() <= 1, "more than one warning");
  for (const cache::TuningRecord& record : found.records) check_record(record);
  const tune::Dimensions all{{64, 128},
                             {64, 128},
                             {2, 3},
                             {1, 2},
                             {TileOrder::kAscending, TileOrder::kDescending},
                             {1, 2},
                             {QueryPlace::kRegisters, QueryPlace::kSharedMemory}};
  if (const auto answer = tune::choose_record(found.records, all, LaunchShape{1, 8, 8, 4096, 4096}))
    require(tune::contains(all, answer->config), "a config that the spec does not allow");
  tune::choose_record(found.records, all, std::nullopt);
  return !found.records.empty();
}

}  // namespace lacuna::fuzz
