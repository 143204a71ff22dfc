#include "tests/sass/wgmma_order.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/sass/tile_gate_order.hpp"
#include "tests/sass/wgmma_instructions.hpp"

namespace lacuna::sass {
namespace {

using Indices = std::vector<std::size_t>;

/// wgmmas that are issued together: the last of them commits.
using Run = Indices;

class Check {
 public:
  Check(const Code& code, const StepFacts& facts) : code_(code), facts_(facts) {}

  std::vector<std::string> run() {
    for (const Instruction& i : code_) {
      if (uses_local_memory(i)) complain("local memory is used", i);
    }
    loop_ = find_loop(code_, {is_key_product, is_value_product});
    if (!loop_.exists()) {
      complaints_.emplace_back("there is no loop with a product with K and one with V");
      return complaints_;
    }
    find_runs();
    waits_ = all(is_wait);
    check_serialised(key_runs_);
    check_serialised(value_runs_);
    check_products();
    check_waits();
    // The rest is about places between products and waits, which have to be there.
    if (complaints_.empty()) check_rest();
    return complaints_;
  }

 private:
  void complain(const std::string& what) { complaints_.push_back(what); }
  void complain(const std::string& what, const Instruction& i) { complain(what + ": " + i.text()); }
  void expect_count(const std::string& what, std::size_t got, std::size_t expected) {
    if (got != static_cast<std::size_t>(expected))
      complain(what + ": " + std::to_string(got) + " instead of " + std::to_string(expected));
  }

  /// Indices in the loop of the instructions of a kind.
  Indices all(IsKind kind) const {
    Indices found;
    for (std::size_t n = loop_.first; n <= loop_.last; ++n) {
      if (kind(code_[n])) found.push_back(n);
    }
    return found;
  }
  bool any_between(std::size_t first, std::size_t last, IsKind kind) const {
    for (std::size_t n = first; n < last; ++n) {
      if (kind(code_[n])) return true;
    }
    return false;
  }

  void find_runs() {
    Run run;
    for (const std::size_t n : all(is_product)) {
      if (!run.empty() && is_value_product(code_[n]) != is_value_product(code_[run.back()])) {
        complain("a product is not committed", code_[run.back()]);
        run.clear();
      }
      run.push_back(n);
      if (!commits(code_[n])) continue;
      (is_value_product(code_[n]) ? value_runs_ : key_runs_).push_back(run);
      run.clear();
    }
    if (!run.empty()) complain("a product is not committed", code_[run.back()]);
  }

  void check_products() {
    expect_count("commits of products with K", key_runs_.size(), facts_.groups);
    for (const Run& run : key_runs_)
      expect_count("wgmmas of a product with K", run.size(), facts_.key_products);
    // With a gate: one for each choice of parts, save none.
    expect_count("commits of products with V", value_runs_.size(),
                 facts_.has_gate ? (1 << facts_.parts) - 1 : 1);
    std::size_t longest = 0;
    for (const Run& run : value_runs_) longest = std::max(longest, run.size());
    expect_count("wgmmas of the product with V", longest, facts_.value_products);
    if (key_runs_.empty() || value_runs_.empty()) return;
    if (key_runs_.back().back() > value_runs_.front().front())
      complain("a product with V is issued before those with K",
               code_[value_runs_.front().front()]);
    expect_arrive(loop_.first, key_runs_.front());
    std::size_t before = key_runs_.back().back();
    for (const Run& run : value_runs_) {
      expect_arrive(before, run);
      before = run.back();
    }
  }

  /// Registers written before are announced to a product.
  void expect_arrive(std::size_t before, const Run& run) {
    if (!any_between(before, run.front(), is_arrive))
      complain("no WARPGROUP.ARRIVE before a product", code_[run.front()]);
  }

  void check_serialised(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
      for (std::size_t n = run.front(); n < run.back(); ++n) {
        if (code_[n].is("WARPGROUP") || code_[n].is("BRA") || code_[n].is("SYNCS"))
          complain("the wgmmas of one product are kept apart", code_[n]);
      }
    }
  }

  void check_waits() {
    if (waits_.size() != static_cast<std::size_t>(facts_.groups) + 1)
      return expect_count("waits for products", waits_.size(), facts_.groups + 1);
    for (int n = 0; n <= facts_.groups; ++n) {
      const Instruction& wait = code_[waits_[static_cast<std::size_t>(n)]];
      const std::string pending = "gsb0, 0x" + std::to_string(facts_.groups - n);
      if (wait.operands != pending) complain("expected a wait for " + pending, wait);
    }
    if (!value_runs_.empty() && waits_.front() < value_runs_.back().back())
      complain("a wait before the product with V is issued", code_[waits_.front()]);
  }

  void check_rest() {
    for (std::size_t g = 0; g < key_runs_.size(); ++g) check_untouched(key_runs_[g], waits_[g]);
    for (const Run& run : value_runs_) check_untouched(run, waits_.back());
    check_barriers();
    check_way();
  }

  /// From issue to wait, which may be on the next way round, nobody else touches what a product
  /// reads or writes.
  void check_untouched(const Run& run, std::size_t wait) {
    std::set<int> busy;
    for (std::size_t n = run.front(); n != wait; n = n == loop_.last ? loop_.first : n + 1) {
      if (std::ranges::find(run, n) != run.end()) busy.merge(product_registers(code_[n]));
      if (is_product(code_[n])) continue;
      for (const int number : registers_of(code_[n])) {
        if (!busy.contains(number)) continue;
        complain("a register of a product under way is touched", code_[n]);
        break;
      }
    }
  }

  void check_barriers() {
    const std::size_t first = key_runs_.front().front(), last = value_runs_.back().back();
    if (!any_between(loop_.first, first, is_await)) complain("no wait for K before its product");
    if (!any_between(key_runs_.back().back(), value_runs_.front().front(), is_await))
      complain("no wait for V before its product");
    // Of K when the last group is complete, of V when O is; with a gate, a vote behind each group,
    // or one on the step and one for each part of steps that are decided about before.
    const Indices releases = all(is_release);
    const int votes = !facts_.has_gate ? 0 : facts_.decides_late ? 1 + facts_.parts : facts_.groups;
    expect_count("arrivals", releases.size(), 2 + votes);
    const auto behind = [&](std::size_t wait) {
      return std::ranges::count_if(releases, [&](std::size_t n) { return n > waits_[wait]; });
    };
    const std::size_t last_group = waits_.size() - 2;
    if (!releases.empty()) {
      const int last_votes = facts_.decides_late ? votes : facts_.has_gate ? 1 : 0;
      if (behind(last_group) - behind(last_group + 1) != 1 + last_votes)
        complain("K is not released between the wait for its product and that for V's",
                 code_[releases.front()]);
      if (releases.back() < waits_.back())
        complain("V is released before its product is complete", code_[releases.back()]);
    }
    if (!facts_.ping_pong) return;
    if (!any_between(loop_.first, first, [](const Instruction& i) { return i.is("BAR.SYNC"); }))
      complain("products are issued before the warpgroup's turn");
    if (!any_between(last, waits_.front(), [](const Instruction& i) { return i.is("BAR.ARV"); }))
      complain("the turn is not passed on between the products and the wait for them");
  }

  /// What most steps execute: the shortest way round the loop with an exponential on it. With a
  /// gate that is decided before them, what a gated step does: the shortest of all.
  Indices usual_way() const {
    if (facts_.has_gate && !facts_.decides_late)
      return shortest_way(code_, loop_.first, loop_.last);
    Indices shortest;
    for (const std::size_t n : all(is_exponential)) {
      Indices way = shortest_way(code_, loop_.first, n);
      const Indices rest = shortest_way(code_, n, loop_.last);
      if (way.empty() || rest.empty()) continue;
      way.insert(way.end(), rest.begin() + 1, rest.end());
      if (shortest.empty() || way.size() < shortest.size()) shortest = way;
    }
    return shortest;
  }

  void check_way() {
    const Indices way = usual_way();
    const auto on_way = [&](IsKind kind) {
      return std::ranges::count_if(way, [&](std::size_t n) { return kind(code_[n]); });
    };
    const auto expect = [&](const char* what, IsKind kind, int expected) {
      expect_count(what, static_cast<std::size_t>(on_way(kind)), expected);
    };
    const bool gated = facts_.has_gate && !facts_.decides_late;
    expect("wgmmas with K on the way", is_key_product, facts_.groups * facts_.key_products);
    // The shortest way leaves the product out where a gate may.
    expect("wgmmas with V on the way", is_value_product,
           facts_.has_gate ? 0 : facts_.value_products);
    expect("exponentials on the way", is_exponential, gated ? 0 : facts_.scores);
    if (gated) return;
    expect(
        "FFMA on the way", [](const Instruction& i) { return i.is("FFMA"); }, facts_.scores);
    expect(
        "FMUL on the way", [](const Instruction& i) { return i.is("FMUL"); },
        facts_.decides_late ? facts_.parts : 0);
    if (facts_.decides_late) {
      expect("waits for barriers on the way, of K and of V alone", is_await, 2);
    } else {
      expect(
          "FMNMX on the way", [](const Instruction& i) { return i.is("FMNMX"); }, 0);
    }
    expect("packs on the way", is_pack, facts_.scores / 2);
    for (const std::size_t n : way) {
      if (is_exponential(code_[n]) && (n < waits_.front() || n > waits_.back()))
        complain("an exponential is not under the product with V", code_[n]);
    }
  }

  const Code& code_;
  const StepFacts& facts_;
  Loop loop_;
  std::vector<Run> key_runs_, value_runs_;
  Indices waits_;
  std::vector<std::string> complaints_;
};

}  // namespace

StepFacts step_facts(const Plan& plan) {
  constexpr int kThreads = 128, kRows = 64, kDepth = 16, kKeysAhead = 64;
  const AttendPlan& attend = plan.attend;
  const int keys = attend.step_keys.value;
  StepFacts facts;
  facts.scores = kRows * keys / kThreads;
  facts.has_gate = find_op<Attend>(plan.program)->gate.has_value();
  facts.looks_ahead = attend.consumer.value == Consumer::kWgmmaTileGate;
  facts.decides_late = attend.gate_policy.value == GatePolicy::kTileVotes;
  facts.parts = facts.has_gate && !facts.looks_ahead ? keys / attend.tile_k.value : 1;
  facts.groups = facts.decides_late ? 1 : facts.parts;
  facts.key_products = plan.program.head_dim / kDepth;
  facts.value_products = (facts.looks_ahead ? kKeysAhead : keys) / kDepth;
  facts.ping_pong = facts.looks_ahead || facts.decides_late || attend.warpgroups.value > 2;
  return facts;
}

std::vector<std::string> violations(const Code& code, const StepFacts& facts) {
  std::vector<std::string> found =
      facts.looks_ahead ? violations_ahead(code, facts) : Check(code, facts).run();
  const Loop loop = find_loop(code, {is_key_product, is_value_product});
  if (!loop.exists()) return found;
  std::ranges::copy(gatherings(code, loop), std::back_inserter(found));
  return found;
}

std::vector<std::string> gatherings(const Code& code, const Loop& loop) {
  std::vector<std::string> found;
  for (std::size_t n = loop.first; n <= loop.last; ++n) {
    if (gathers_warp(code[n]))
      found.push_back("the warp is taken for divergent: " + code[n].text());
  }
  return found;
}

}  // namespace lacuna::sass
