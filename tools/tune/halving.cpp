#include "tools/tune/halving.hpp"

#include <algorithm>
#include <map>

#include "tools/common/spread.hpp"

namespace lacuna::tune {
namespace {

constexpr std::size_t kKept = 3;    ///< one of so many goes on to the next rung
constexpr std::size_t kFewest = 3;  ///< so many go on, if there are as many

void add(std::vector<double>& times_us, const Sample& sample) {
  times_us.insert(times_us.end(), sample.times_us.begin(), sample.times_us.end());
}

/// The results of one rung, in the order in which they came.
struct Rung {
  int number = 0;
  const Halving& halving;
  std::vector<Result> results{};

  void finish(int id, std::vector<double> times_us) {
    Result result;
    result.id = id, result.rung = number;
    summarise(std::move(times_us), result);
    halving.keep(result);
    results.push_back(std::move(result));
  }
  void fail(int id, const Sample& sample) {
    const Result result{id, sample.status, sample.detail, number, 0, 0};
    halving.keep(result);
    results.push_back(result);
  }
  int turns() const { return halving.turns[static_cast<std::size_t>(number)]; }
};

/// The first rung: one candidate after the other, so that each that was begun is worth keeping.
void measure_one_by_one(Rung& rung, std::span<const int> ids) {
  for (const int id : ids) {
    std::vector<double> times_us;
    for (int turn = 0; turn < rung.turns() && rung.halving.may_go_on(rung.number); ++turn) {
      const std::optional<Sample> sample = rung.halving.sample(id);
      if (!sample) break;
      if (sample->status != TuningStatus::kOk) {
        rung.fail(id, *sample);
        times_us.clear();
        break;
      }
      add(times_us, *sample);
    }
    if (!times_us.empty()) rung.finish(id, std::move(times_us));
  }
}

/// Later rungs: in turns, so that all candidates meet the same clocks and neighbours.
void measure_in_turns(Rung& rung, std::span<const int> ids) {
  std::vector<int> running(ids.begin(), ids.end());
  std::map<int, std::vector<double>> times_us;
  for (int turn = 0; turn < rung.turns(); ++turn) {
    std::vector<int> remaining;
    for (const int id : running) {
      if (!rung.halving.may_go_on(rung.number)) break;
      const std::optional<Sample> sample = rung.halving.sample(id);
      if (!sample) break;
      if (sample->status != TuningStatus::kOk) {
        rung.fail(id, *sample);
        times_us.erase(id);
        continue;
      }
      add(times_us[id], *sample);
      remaining.push_back(id);
    }
    running = std::move(remaining);
  }
  for (auto& [id, times] : times_us) rung.finish(id, std::move(times));
}

Rung climb(int number, std::span<const int> ids, const Halving& halving) {
  Rung rung{number, halving};
  std::vector<int> unknown;
  for (const int id : ids) {
    if (auto known = halving.known(id, number)) {
      rung.results.push_back(std::move(*known));
    } else {
      unknown.push_back(id);
    }
  }
  if (number == 0 && !halving.first_in_turns) {
    measure_one_by_one(rung, unknown);
  } else {
    measure_in_turns(rung, unknown);
  }
  return rung;
}

/// The candidates of the next rung: the fastest ones, and the first of the list.
std::vector<int> survivors(const Rung& rung, std::span<const int> ids) {
  std::vector<Result> ok;
  for (const Result& result : rung.results)
    if (result.status == TuningStatus::kOk) ok.push_back(result);
  std::stable_sort(ok.begin(), ok.end(), [](const Result& a, const Result& b) {
    return a.median_us != b.median_us ? a.median_us < b.median_us : a.id < b.id;
  });
  const std::size_t count = std::min(ok.size(), std::max(kFewest, (ok.size() + kKept - 1) / kKept));
  const auto is_kept = [&](int id) {
    const auto at = std::ranges::find(ok, id, &Result::id);
    return at != ok.end() &&
           (id == ids.front() || at - ok.begin() < static_cast<std::ptrdiff_t>(count));
  };
  std::vector<int> kept;
  std::ranges::copy_if(ids, std::back_inserter(kept), is_kept);
  return kept;
}

}  // namespace

void summarise(std::vector<double> times_us, Result& result) {
  if (times_us.empty()) return;
  const tools::Spread spread = tools::spread_of(std::move(times_us));
  result.median_us = spread.median_us;
  result.spread = (spread.high_us - spread.low_us) / spread.median_us;
}

Outcome halve(std::span<const int> ids, const Halving& halving) {
  Outcome outcome;
  outcome.complete = true;
  std::map<int, Result> latest;
  std::vector<int> climbing(ids.begin(), ids.end());
  std::vector<Result> last;  // of the highest rung that has any results
  for (int number = 0; number < static_cast<int>(halving.turns.size()); ++number) {
    const Rung rung = climb(number, climbing, halving);
    for (const Result& result : rung.results) latest.insert_or_assign(result.id, result);
    const bool is_whole = rung.results.size() == climbing.size();
    outcome.complete = outcome.complete && is_whole;
    // Part of a later rung says less than all of the one before it.
    if (number > 0 && !is_whole) break;
    if (best_of(rung.results)) last = rung.results;
    climbing = survivors(rung, climbing);
    if (climbing.empty()) break;
  }
  for (const int id : ids) {
    const auto found = latest.find(id);
    if (found == latest.end()) {
      outcome.unmeasured.push_back(id);
    } else {
      outcome.results.push_back(found->second);
    }
  }
  outcome.best = best_of(last);
  return outcome;
}

}  // namespace lacuna::tune
