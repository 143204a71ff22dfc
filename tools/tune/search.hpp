// One search: a spec at a shape on a device, from the space to the record of the winner.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/tuning/tuning.hpp"
#include "tools/common/session.hpp"
#include "tools/tune/cost_model.hpp"
#include "tools/tune/halving.hpp"
#include "tools/tune/messages.hpp"
#include "tools/tune/process.hpp"
#include "tools/tune/progress.hpp"

namespace lacuna::tools {

struct TuneLimits {
  double budget_s = 60;
  double watchdog_s = 30;   ///< without an answer for longer, and 20 times the usual launch: hung
  bool exhaustive = false;  ///< every legal point, equally long, whatever the time
};

enum class TuneState { kTuned, kKnown, kNothingOpen, kInterrupted };

struct TuneFindings {
  TuneState state = TuneState::kTuned;
  TuneFacts facts;
  std::string variant, problem, density;
  tune::Space space;
  tune::Ordered ordered;
  tune::Outcome outcome;
  std::optional<cache::TuningRecord> best;  ///< as it stands in the database
  std::vector<std::string> fixed;           ///< fields that are not open, and why
  bool interpreted = false;                 ///< candidates were held against the interpreter, too
  std::size_t reused = 0;                   ///< results that the database had
  double seconds = 0;
};

class TuneSearch {
 public:
  /// `values`: the name of what is measured on, for records.
  TuneSearch(TuneTask task, const SpecDocument& document, std::string values,
             const TuneLimits& limits, const cache::TuningDatabase& database,
             Interrupts& interrupts, TuneProgress& progress, Session& session);

  /// Nothing if it failed, which has then been reported.
  std::optional<TuneFindings> run();

 private:
  using Json = nlohmann::ordered_json;
  bool greet();
  bool read_space();
  bool read_database();
  bool is_known();
  bool open_subject();
  bool prepare_from(int id);
  void search();
  void write_best();

  std::optional<Json> ask(const Json& request, double patience_s);
  std::optional<tune::Sample> sample(int id);
  std::optional<tune::Sample> sample_from(const Json& request);
  std::optional<tune::Result> known(int id, int rung);
  void keep(const tune::Result& result);
  cache::TuningRecord record_of(const tune::Result& result) const;
  bool is_current(const cache::TuningRecord& record) const;
  const tune::Config& config_of(int id) const;
  double elapsed_s() const;
  void show_progress();

  TuneTask task_;
  const SpecDocument& document_;
  std::string values_;
  TuneLimits limits_;
  const cache::TuningDatabase& database_;
  Interrupts& interrupts_;
  TuneProgress& progress_;
  Session& session_;
  TuneProcess process_;
  TuneFindings findings_;
  std::vector<cache::TuningRecord> records_;  ///< of this variant, at the beginning
  std::set<int> prepared_, verified_;         ///< by the child that is running
  bool prepares_many_ = true;                 ///< until a batch has failed
  std::set<int> done_;
  std::optional<tune::Result> fastest_;
  std::chrono::steady_clock::time_point begin_;
  double patience_s_ = 0;
  bool is_broken_ = false;  ///< no child can be had, or the database not be written
};

}  // namespace lacuna::tools
