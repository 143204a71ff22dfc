#include "tools/tune/search.hpp"

#include <algorithm>

#include "runtime/engine/kernel.hpp"
#include "runtime/tune/bucket.hpp"
#include "tools/common/shape_option.hpp"
#include "tools/common/table.hpp"
#include "tools/measure/value_source.hpp"

namespace lacuna::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// Compiling and running what is used without tuning, twice: it is trusted to end.
constexpr double kPatienceToOpen = 3600;
constexpr double kUsualLaunches = 20;
/// Shares of the budget by the end of each rung.
constexpr double kShareOfRung[] = {0.6, 0.85, 1.0};
/// As many launches as a winner of the halving gets in all.
const std::vector kExhaustiveTurns{24};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TuneSearch::TuneSearch(TuneTask task, const SpecDocument& document, std::string values,
                       const TuneLimits& limits, const cache::TuningDatabase& database,
                       const Interrupts& interrupts, TuneProgress& progress, Session& session)
    : task_(std::move(task)),
      document_(document),
      values_(std::move(values)),
      limits_(limits),
      database_(database),
      interrupts_(interrupts),
      progress_(progress),
      session_(session),
      begin_(Clock::now()) {}

double TuneSearch::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

const tune::Config& TuneSearch::config_of(int id) const {
  return findings_.space.candidates[static_cast<std::size_t>(id)].config;
}

/// A reply that is no refusal. What goes wrong here has nothing to do with a candidate.
std::optional<TuneSearch::Json> TuneSearch::ask(const Json& request, double patience_s) {
  using End = TuneProcess::End;
  TuneProcess::Reply reply =
      process_.ask(request, std::chrono::duration<double>(patience_s), interrupts_);
  if (reply.end == End::kInterrupted) return std::nullopt;
  if (reply.end == End::kReply && !reply.message.contains("error")) return reply.message;
  is_broken_ = true;
  progress_.clear();
  if (reply.end == End::kReply) {
    session_.report_rendered(static_cast<ExitCode>(reply.message.value("exit", 70)),
                             reply.message.value("error", std::string()),
                             reply.message.value("error_json", std::string()));
  } else {
    session_.fail(ExitCode::kInternal,
                  document_.source.path + ": what is used without tuning " +
                      (reply.end == End::kHung ? "did not end" : reply.detail) +
                      "; nothing was tuned");
  }
  return std::nullopt;
}

bool TuneSearch::greet() {
  if (const std::string problem = process_.start(); !problem.empty()) {
    is_broken_ = true;
    session_.fail(ExitCode::kEnvironment, problem);
    return false;
  }
  verified_.clear();
  prepared_.clear();
  const auto message = ask(to_json(task_), kPatienceToOpen);
  if (message) findings_.facts = read_facts(*message);
  return message.has_value();
}

bool TuneSearch::read_space() {
  Diagnostics found;
  const tune::Machine machine = findings_.facts.machine();
  task_.build = with_family(task_.build, machine.target, found);
  findings_.space =
      tune::search_space(document_, task_.build, machine, task_.threads, task_.shape, found);
  session_.report(found, document_.source);
  if (found.has_errors()) return false;
  findings_.fixed = tune::fixed_fields(document_, findings_.space.candidates.front().plan, machine,
                                       task_.threads, task_.shape);
  findings_.variant = tune::variant_of(document_.spec, task_.build);
  findings_.problem = print_bucket(tune::bucket_of(task_.shape));
  return true;
}

bool TuneSearch::read_database() {
  const std::string& hardware = findings_.facts.hardware;
  if (const std::string problem = database_.check_writable(hardware); !problem.empty()) {
    session_.fail(ExitCode::kEnvironment, problem);
    return false;
  }
  cache::TuningRecords found = database_.read(hardware, findings_.variant);
  for (const std::string& warning : found.warnings) session_.note(warning);
  std::erase_if(found.records, [this](const cache::TuningRecord& record) {
    return record.problem != findings_.problem;
  });
  records_ = std::move(found.records);
  return true;
}

/// Measured by this library, with these inputs, driver and compiler?
bool TuneSearch::is_current(const cache::TuningRecord& record) const {
  const cache::TuningRecord now = record_of({});
  return record.library == now.library && record.driver == now.driver &&
         record.compiler == now.compiler && record.inputs == now.inputs;
}

/// A search of the same space that was gone through, or had at least as much time.
bool TuneSearch::is_known() {
  const std::string space = findings_.space.hash();
  for (const cache::TuningRecord& record : records_) {
    const bool is_through = record.budget_s == 0 || record.budget_s >= limits_.budget_s;
    if (record.best != space || !is_through || !is_current(record)) continue;
    findings_.best = record;
    findings_.density = record.density;
    return true;
  }
  return false;
}

bool TuneSearch::open_subject() {
  const auto message = ask({{"do", "open"}}, kPatienceToOpen);
  if (!message) return false;
  const std::string error = message->at("error_of_usual");
  if (!error.empty()) {
    is_broken_ = true;
    session_.fail(ExitCode::kNumerics, document_.source.path + ": " + print_config(config_of(0)) +
                                           ", which is used without tuning, is wrong: " + error +
                                           " against the interpreter; nothing was tuned");
    return false;
  }
  findings_.density = tune::density_bucket(message->at("density"));
  findings_.interpreted = message->at("interpreted");
  const double usual_s = message->at("usual_us").get<double>() * 1e-6;
  patience_s_ = std::max(limits_.watchdog_s, kUsualLaunches * usual_s);
  return true;
}

/// Compiles this candidate and the next ones, as many as there are cores: with more, a short budget
/// would end before any is measured. If a batch fails, its candidates are compiled one by one, to
/// find the one that does not compile. False: interrupted.
bool TuneSearch::prepare_from(int id) {
  if (!prepares_many_ || prepared_.contains(id)) return true;
  const auto& ids = findings_.ordered.ids;
  const auto batch = static_cast<std::size_t>(findings_.facts.cores);
  Json configs = Json::array();
  for (auto at = std::ranges::find(ids, id); at != ids.end() && configs.size() < batch; ++at) {
    if (*at != id && (done_.contains(*at) || known(*at, 0))) continue;
    configs.push_back(print_config(config_of(*at)));
    prepared_.insert(*at);
  }
  const TuneProcess::Reply reply = process_.ask(
      {{"do", "prepare"}, {"configs", configs}},
      std::chrono::duration<double>(patience_s_ * static_cast<double>(batch)), interrupts_);
  if (reply.end == TuneProcess::End::kInterrupted) return false;
  if (reply.end == TuneProcess::End::kReply && !reply.message.contains("error")) return true;
  prepares_many_ = false;
  process_.stop();
  return greet() && open_subject();
}

/// What a request about a candidate came to.
std::optional<tune::Sample> TuneSearch::sample_from(const Json& request) {
  using End = TuneProcess::End;
  TuneProcess::Reply reply =
      process_.ask(request, std::chrono::duration<double>(patience_s_), interrupts_);
  switch (reply.end) {
    case End::kInterrupted:
      return std::nullopt;
    case End::kHung:
      return tune::Sample{tune::TuningStatus::kHang,
                          "no answer within " + std::to_string(std::lround(patience_s_)) + " s",
                          {}};
    case End::kDied:
      return tune::Sample{tune::TuningStatus::kCrash, reply.detail, {}};
    case End::kReply:
      break;
  }
  if (!reply.message.contains("error")) return read_sample(reply.message);
  process_.stop();
  return tune::Sample{
      tune::TuningStatus::kCrash, first_line(reply.message.value("error", std::string())), {}};
}

std::optional<tune::Sample> TuneSearch::sample(int id) {
  show_progress();
  if (!process_.is_running() && (!greet() || !open_subject())) return std::nullopt;
  if (!prepare_from(id)) return std::nullopt;
  const std::string config = print_config(config_of(id));
  if (!verified_.contains(id)) {
    auto verdict = sample_from({{"do", "verify"}, {"config", config}});
    if (!verdict || verdict->status != tune::TuningStatus::kOk) return verdict;
    verified_.insert(id);
  }
  return sample_from({{"do", "time"}, {"config", config}});
}

std::optional<tune::Result> TuneSearch::known(int id, int rung) {
  const std::string config = print_config(config_of(id));
  for (const cache::TuningRecord& record : records_) {
    if (record.config != config || record.density != findings_.density || !is_current(record))
      continue;
    const bool failed = record.status != tune::TuningStatus::kOk;
    if (!failed && (record.rung < rung || limits_.exhaustive)) return std::nullopt;
    return tune::Result{id,          record.status,    record.detail,
                        record.rung, record.median_us, record.spread};
  }
  return std::nullopt;
}

cache::TuningRecord TuneSearch::record_of(const tune::Result& result) const {
  cache::TuningRecord record;
  record.hardware = findings_.facts.hardware;
  record.variant = findings_.variant;
  record.problem = findings_.problem;
  record.density = findings_.density;
  if (!findings_.space.candidates.empty()) record.config = print_config(config_of(result.id));
  record.status = result.status;
  record.detail = result.detail;
  record.rung = result.rung;
  record.median_us = result.median_us;
  record.spread = result.spread;
  for (const std::string& param : task_.params)
    record.inputs += (record.inputs.empty() ? "" : " ") + param;
  // Random normal values are not named, as in records made before there were others.
  if (values_ != ValueSource().name)
    record.inputs += (record.inputs.empty() ? "" : " ") + ("values=" + values_);
  record.spec = document_.spec.name;
  record.shape = print_shape(task_.shape);
  record.library = LACUNA_VERSION;
  record.driver = findings_.facts.driver;
  record.compiler = findings_.facts.compiler;
  return record;
}

void TuneSearch::keep(const tune::Result& result) {
  done_.insert(result.id);
  if (result.status == tune::TuningStatus::kOk &&
      (!fastest_ || result.median_us < fastest_->median_us))
    fastest_ = result;
  const std::string problem = database_.append({record_of(result)});
  if (problem.empty() || is_broken_) return;
  is_broken_ = true;
  progress_.clear();
  session_.fail(ExitCode::kEnvironment, problem);
}

void TuneSearch::show_progress() {
  const std::string best = fastest_ ? print_time_us(fastest_->median_us) + " (" +
                                          print_config(config_of(fastest_->id)) + ")"
                                    : "";
  progress_.show(
      progress_line(document_.spec.name, done_.size(), findings_.ordered.ids.size(), best));
}

void TuneSearch::search() {
  tune::Halving halving;
  if (limits_.exhaustive) halving.turns = kExhaustiveTurns;
  halving.first_in_turns = limits_.exhaustive;
  halving.sample = [this](int id) { return sample(id); };
  halving.known = [this](int id, int rung) {
    auto result = known(id, rung);
    if (result && done_.insert(id).second) ++findings_.reused;
    return result;
  };
  halving.keep = [this](const tune::Result& result) { keep(result); };
  halving.may_go_on = [this](int rung) {
    if (is_broken_ || interrupts_.arrived()) return false;
    // However short the time, what is used without tuning is measured.
    return limits_.exhaustive || done_.empty() ||
           elapsed_s() < limits_.budget_s * kShareOfRung[rung];
  };
  findings_.outcome = tune::halve(findings_.ordered.ids, halving);
}

void TuneSearch::write_best() {
  const auto& best = findings_.outcome.best;
  if (!best) return;
  cache::TuningRecord record = record_of(*best);
  const bool is_interrupted = interrupts_.arrived();
  findings_.state = is_interrupted ? TuneState::kInterrupted : TuneState::kTuned;
  if (!is_interrupted) {
    record.best = findings_.space.hash();
    record.budget_s = findings_.outcome.complete ? 0 : limits_.budget_s;
    const std::string problem = database_.append({record});
    if (!problem.empty()) session_.fail(ExitCode::kEnvironment, problem);
  }
  findings_.best = record;
  const std::string problem = database_.compact(record.hardware, record.variant);
  if (!problem.empty()) session_.note(problem);
}

std::optional<TuneFindings> TuneSearch::run() {
  const auto finish = [this](TuneState state) {
    findings_.state = state;
    findings_.seconds = elapsed_s();
    return findings_;
  };
  const auto give_up = [&]() -> std::optional<TuneFindings> {
    if (!is_broken_ && interrupts_.arrived()) return finish(TuneState::kInterrupted);
    return std::nullopt;
  };
  if (!greet()) return give_up();
  if (!findings_.facts.note.empty()) session_.note(findings_.facts.note);
  if (!read_space()) return std::nullopt;
  if (findings_.space.candidates.size() == 1) return finish(TuneState::kNothingOpen);
  if (!read_database()) return std::nullopt;
  if (!limits_.exhaustive && is_known()) return finish(TuneState::kKnown);
  if (!open_subject()) return give_up();
  const tune::Machine machine = findings_.facts.machine();
  findings_.ordered = tune::order_by_cost(findings_.space, machine, task_.shape,
                                          tune::density_of(findings_.density));
  if (limits_.exhaustive) {
    findings_.ordered = {};
    for (const auto& candidate : findings_.space.candidates)
      findings_.ordered.ids.push_back(candidate.id);
  }
  search();
  progress_.clear();
  if (is_broken_) return std::nullopt;
  write_best();
  if (interrupts_.arrived()) return finish(TuneState::kInterrupted);
  if (!findings_.outcome.best) {
    session_.fail(ExitCode::kNumerics,
                  document_.source.path + ": no configuration passed; the records say why");
  }
  return finish(TuneState::kTuned);
}

}  // namespace lacuna::tools
