#include "runtime/tune/lookup.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/tune/best_of.hpp"

namespace lacuna::tune {
namespace {

using cache::TuningRecord;

/// A record that the spec allows.
struct Usable {
  const TuningRecord* record;
  Config config;
  Bucket bucket;
};

/// A spec that fixes its threads takes the tiles of records with others.
std::vector<Usable> usable_records(std::span<const TuningRecord> records,
                                   const Dimensions& dimensions) {
  std::vector<Usable> usable;
  for (const TuningRecord& record : records) {
    if (record.status != TuningStatus::kOk) continue;
    auto config = parse_config(record.config);
    const auto bucket = parse_bucket(record.problem);
    if (!config || !bucket) continue;
    if (dimensions.threads.size() == 1) config->threads = dimensions.threads.front();
    if (contains(dimensions, *config)) usable.push_back({&record, *config, *bucket});
  }
  return usable;
}

/// Was `a` measured closer to the problem than `b`?
bool is_nearer(const Usable& a, const Usable& b, const std::optional<Bucket>& wanted) {
  if (wanted) {
    const double far_a = distance(a.bucket, *wanted), far_b = distance(b.bucket, *wanted);
    if (far_a != far_b) return far_a < far_b;
  }
  if (work_of(a.bucket) != work_of(b.bucket)) return work_of(a.bucket) > work_of(b.bucket);
  return density_of(a.record->density) > density_of(b.record->density);
}

bool is_same_group(const TuningRecord& a, const TuningRecord& b) {
  return a.problem == b.problem && a.density == b.density;
}

/// Records of one problem measured with the versions of the last of them.
std::vector<Usable> comparable(const std::vector<Usable>& usable, const TuningRecord& nearest) {
  const TuningRecord* last = nullptr;
  for (const Usable& u : usable)
    if (is_same_group(*u.record, nearest)) last = u.record;
  std::vector<Usable> group;
  for (const Usable& u : usable) {
    if (is_same_group(*u.record, nearest) && u.record->driver == last->driver &&
        u.record->compiler == last->compiler)
      group.push_back(u);
  }
  return group;
}

/// The fastest of these; of equals the first.
const Usable& fastest_of(const std::vector<const Usable*>& some) {
  std::vector<Result> results;
  for (std::size_t n = 0; n < some.size(); ++n) {
    Result result;
    result.id = static_cast<int>(n);
    result.median_us = some[n]->record->median_us;
    results.push_back(std::move(result));
  }
  return *some[static_cast<std::size_t>(best_of(results)->id)];
}

/// The winner of a finished search; else the fastest of those measured best. There are several
/// winners where a search was repeated with more time, or for a spec that leaves less open, and did
/// not measure the winner before again. Of equal ones the last counts, as `lacuna tune` says.
const Usable& best_usable(const std::vector<Usable>& group) {
  std::vector<const Usable*> winners, measured_best;
  int rung = 0;
  for (const Usable& u : group) rung = std::max(rung, u.record->rung);
  for (const Usable& u : group) {
    if (!u.record->best.empty()) winners.insert(winners.begin(), &u);
    if (u.record->rung == rung) measured_best.push_back(&u);
  }
  return fastest_of(winners.empty() ? measured_best : winners);
}

std::string describe(const TuningRecord& record) {
  char time[32];
  std::snprintf(time, sizeof time, "%.4g us", record.median_us);
  return std::string("measured ") + time + " at " + record.shape + " with " + record.compiler;
}

}  // namespace

std::optional<Answer> choose_record(std::span<const TuningRecord> records,
                                    const Dimensions& dimensions,
                                    const std::optional<LaunchShape>& shape) {
  const std::vector<Usable> usable = usable_records(records, dimensions);
  if (usable.empty()) return std::nullopt;
  std::optional<Bucket> wanted;
  if (shape) wanted = bucket_of(*shape);
  const Usable& nearest = *std::min_element(
      usable.begin(), usable.end(),
      [&wanted](const Usable& a, const Usable& b) { return is_nearer(a, b, wanted); });
  const Usable best = best_usable(comparable(usable, *nearest.record));
  return Answer{best.config, describe(*best.record)};
}

Lookup look_up(const std::string& cache_directory, const Question& question) {
  if (cache_directory.empty() || question.hardware.name.empty()) return {};
  const cache::TuningDatabase database(cache_directory, "");
  const std::string variant = variant_of(question.document.spec, question.options);
  cache::TuningRecords found = database.read(question.hardware.name, variant);
  std::erase_if(found.records, [&question](const TuningRecord& record) {
    return cache::compiler_kind(record.compiler) != question.hardware.compiler;
  });
  Lookup result{std::nullopt, std::move(found.warnings)};
  if (found.records.empty()) return result;
  Diagnostics diagnostics;
  const Machine& machine = question.hardware.machine;
  const Plan usual = make_plan(question.document, question.options, machine.target, diagnostics);
  if (diagnostics.has_errors()) return result;
  result.answer = choose_record(
      found.records,
      dimensions_of(question.document, usual, machine, question.threads, question.shape),
      question.shape);
  return result;
}

TunedOptions tuned_options(const std::string& cache_directory, const Question& question) {
  Lookup found = look_up(cache_directory, question);
  TunedOptions tuned{question.options, question.threads, std::move(found.warnings)};
  if (found.answer) {
    tuned.options.tuned = tuned_tiles(found.answer->config, found.answer->reason);
    if (tuned.threads == 0) tuned.threads = found.answer->config.threads;
  }
  return tuned;
}

}  // namespace lacuna::tune
