#include "tests/sass/tile_gate_order.hpp"

#include <algorithm>
#include <utility>

#include "tests/sass/wgmma_instructions.hpp"

namespace lacuna::sass {
namespace {

using Indices = std::vector<std::size_t>;

constexpr int kTurns = 2;                         ///< of the loop
constexpr int kScoresOfWgmma = 8;                 ///< weights that a thread has in one with V
constexpr const char* kBothWarpgroups = "0x100";  ///< threads at the barrier of a turn

bool takes_turn(const Instruction& i) { return i.is("BAR.SYNC") && i.has(kBothWarpgroups); }
bool passes_turn(const Instruction& i) { return i.is("BAR.ARV") && i.has(kBothWarpgroups); }
bool waits_for_all(const Instruction& i) { return is_wait(i) && i.has("gsb0, 0x0"); }
bool waits_for_first(const Instruction& i) { return is_wait(i) && i.has("gsb0, 0x1"); }
bool is_float_maximum(const Instruction& i) { return i.is("FMNMX"); }
bool is_wide_maximum(const Instruction& i) { return i.is("VIMNMX3"); }
bool is_copy(const Instruction& i) {
  return (i.is("MOV") || i.is("IMAD.MOV")) && registers_of(i).size() == 2;
}
bool keeps_apart(const Instruction& i) {
  return i.is("WARPGROUP") || i.is("BAR") || i.is("BRA") || i.is("SYNCS");
}

/// What one lane alone does counts as done: branches past a stretch with an arrival are none.
Code without_lane_branches(Code code) {
  for (std::size_t n = 0; n < code.size(); ++n) {
    const std::size_t target = code[n].target;
    if (code[n].guard.empty() || target == kNowhere || target <= n) continue;
    const auto begin = code.begin() + static_cast<std::ptrdiff_t>(n + 1);
    const auto end = code.begin() + static_cast<std::ptrdiff_t>(target);
    const bool is_straight = std::none_of(
        begin, end, [](const Instruction& i) { return i.target != kNowhere || i.is("EXIT"); });
    if (is_straight && std::any_of(begin, end, is_release)) code[n].target = kNowhere;
  }
  return code;
}

/// wgmmas that are waited for together. With K: the first does not add to anything, and some part
/// has a commit of its own. With V: the last one commits.
struct Product {
  bool has_keys = false;
  Indices wgmmas;
};

class AheadCheck {
 public:
  AheadCheck(const Code& code, const StepFacts& facts)
      : code_(without_lane_branches(code)), facts_(facts) {}

  std::vector<std::string> run() {
    for (const Instruction& i : code_) {
      if (uses_local_memory(i)) complain("local memory is used", i);
      // One that only commits waits for the tensor cores.
      if (is_empty_product(i)) complain("a product of nothing", i);
    }
    loop_ = find_loop(code_, {is_key_product, is_value_product});
    if (!loop_.exists()) {
      complaints_.emplace_back("there is no loop with a product with K and one with V");
      return complaints_;
    }
    find_products();
    for (const Product& product : products_) {
      check_shape(product);
      check_issue(product);
      check_untouched(product);
      if (product.has_keys) {
        check_key_product(product);
      } else {
        check_value_product(product);
      }
    }
    check_turns();
    check_ways();
    return complaints_;
  }

 private:
  void complain(const std::string& what, const Instruction& i) {
    complaints_.push_back(what + ": " + i.text());
  }
  void expect_count(const std::string& what, long got, long expected) {
    if (got != expected)
      complaints_.push_back(what + ": " + std::to_string(got) + " instead of " +
                            std::to_string(expected));
  }
  /// `needed` stands on each way to instruction `to` from one that `is_begin`.
  void expect_on_ways(const Predicate& is_begin, const Predicate& needed, std::size_t to,
                      const char* complaint) {
    const Indices before = reached_before(code_, to, needed);
    if (std::ranges::any_of(before, [&](std::size_t n) { return is_begin(code_[n]); }))
      complain(complaint, code_[to]);
  }
  /// Behind instruction `from`, `end` comes before anything that `is_early`.
  void expect_first(std::size_t from, const Predicate& end, const Predicate& is_early,
                    const char* complaint) {
    const Indices behind = reached_behind(code_, from, end);
    const auto early =
        std::ranges::find_if(behind, [&](std::size_t n) { return is_early(code_[n]); });
    if (early != behind.end()) complain(complaint, code_[*early]);
  }

  void find_products() {
    for (std::size_t n = 0; n < code_.size(); ++n) {
      if (!is_product(code_[n])) continue;
      const bool has_keys = is_key_product(code_[n]);
      const bool is_new =
          products_.empty() || products_.back().has_keys != has_keys ||
          (has_keys ? code_[n].has(", RZ,") : commits(code_[products_.back().wgmmas.back()]));
      if (is_new) products_.push_back({has_keys, {}});
      products_.back().wgmmas.push_back(n);
    }
  }

  void check_shape(const Product& product) {
    const Indices& wgmmas = product.wgmmas;
    const std::string with = product.has_keys ? "K" : "V";
    expect_count("wgmmas of a product with " + with, std::ssize(wgmmas),
                 product.has_keys ? facts_.key_products : facts_.value_products);
    if (!commits(code_[wgmmas.back()]))
      complain("a product is not committed", code_[wgmmas.back()]);
    const auto own =
        std::ranges::count_if(wgmmas, [&](std::size_t n) { return commits(code_[n]); });
    expect_count("commits of a product with " + with, own, product.has_keys ? 2 : 1);
    for (std::size_t n = wgmmas.front(); n < wgmmas.back(); ++n) {
      if (keeps_apart(code_[n])) complain("the wgmmas of one product are kept apart", code_[n]);
    }
    if (!product.has_keys) return;
    const Instruction& first = code_[wgmmas.front()];
    expect_count("keys of a product", columns_of(first), facts_.scores * 2);
    if (!fragments_of(first).empty()) complain("queries are read from registers", first);
  }

  /// No two products are under way at a time, and what was written before is announced.
  void check_issue(const Product& product) {
    const std::size_t first = product.wgmmas.front();
    expect_on_ways(is_product, waits_for_all, first,
                   "a product is issued before the one before it is complete");
    const auto writes_fragment = [&](const Instruction& i) {
      return is_product(i) || (is_pack(i) && writes_fragment_of(product, i));
    };
    expect_on_ways(writes_fragment, is_arrive, first, "no WARPGROUP.ARRIVE before a product");
  }
  bool writes_fragment_of(const Product& product, const Instruction& i) const {
    const std::vector<int> named = registers_of(i);
    return !named.empty() && std::ranges::any_of(product.wgmmas, [&](std::size_t n) {
      return fragments_of(code_[n]).contains(named[0]);
    });
  }

  /// What is executed while a product is under way, apart from its own wgmmas.
  Indices under(const Product& product) const {
    const Indices& wgmmas = product.wgmmas;
    Indices under = reached_behind(code_, wgmmas.back(), waits_for_all);
    for (std::size_t n = wgmmas.front(); n < wgmmas.back(); ++n) {
      if (!is_product(code_[n])) under.push_back(n);
    }
    return under;
  }

  /// Nobody else touches what a product reads or writes.
  void check_untouched(const Product& product) {
    std::set<int> busy;
    for (const std::size_t n : product.wgmmas) busy.merge(product_registers(code_[n]));
    for (const std::size_t n : under(product)) {
      const std::vector<int> named = registers_of(code_[n]);
      if (std::ranges::any_of(named, [&](int number) { return busy.contains(number); }))
        return complain("a register of a product under way is touched", code_[n]);
    }
  }

  void check_key_product(const Product& product) {
    const std::size_t first = product.wgmmas.front(), last = product.wgmmas.back();
    const auto ends_step = [](const Instruction& i) { return is_product(i) || is_release(i); };
    expect_on_ways(ends_step, is_await, first, "no wait for K before its product");
    expect_on_ways(is_product, takes_turn, first,
                   "a product with K is issued before the warpgroup's turn");
    expect_first(last, passes_turn, waits_for_all,
                 "the turn is not passed on before the product is waited for");
    expect_first(last, waits_for_all, is_release, "an arrival before scores are complete");
  }

  void check_value_product(const Product& product) {
    const std::size_t first = product.wgmmas.front(), last = product.wgmmas.back();
    const auto ends_scores = [](const Instruction& i) { return is_product(i) || waits_for_all(i); };
    expect_on_ways(ends_scores, is_await, first, "no wait for V before its product");
    check_packed(product);
    // The weights of one part, where two count, are worked out under the product of the other.
    const Indices of_step = reached_behind(code_, last, is_release);
    if (any(of_step, is_value_product)) return;
    check_values_released(last);
    for (const std::size_t n : under(product)) {
      if (is_exponential(code_[n]))
        return complain("an exponential is under the last product with V", code_[n]);
    }
  }

  /// Before the next turn at the latest, and behind the wait for their product.
  void check_values_released(std::size_t last) {
    for (std::size_t n = 0; n < code_.size(); ++n) {
      if (!waits_for_all(code_[n])) continue;
      const Indices before = reached_before(code_, n, waits_for_all);
      if (!std::ranges::binary_search(before, last)) continue;
      if (any(reached_behind(code_, n, is_release), takes_turn))
        complain("V is not released when its product is complete", code_[n]);
    }
  }

  /// Each register of weights is packed on each way from the scores to the product.
  void check_packed(const Product& product) {
    for (const std::size_t wgmma : product.wgmmas) {
      for (const int number : fragments_of(code_[wgmma])) {
        const auto packs = [&](const Instruction& i) {
          return is_pack(i) && registers_of(i).front() == number;
        };
        const Indices before = reached_before(code_, product.wgmmas.front(), packs);
        if (any(before, is_key_product)) return complain("weights are not packed", code_[wgmma]);
      }
    }
  }

  void check_turns() {
    for (std::size_t n = 0; n < code_.size(); ++n) {
      if (!passes_turn(code_[n])) continue;
      expect_on_ways(is_product, waits_for_first, n,
                     "the turn is passed on before some of the product is complete");
    }
  }

  bool any(const Indices& which, const Predicate& kind) const {
    return std::ranges::any_of(which, [&](std::size_t n) { return kind(code_[n]); });
  }
  long count(const Indices& which, const Predicate& kind) const {
    return std::ranges::count_if(which, [&](std::size_t n) { return kind(code_[n]); });
  }

  /// The shortest way round the loop leaves out all tiles of both steps; the shortest through a
  /// product with V weighs those of one.
  void check_ways() {
    const Indices gated = shortest_way(code_, loop_.first, loop_.last);
    check_way(gated);
    expect_count("wgmmas with V on the gated way", count(gated, is_value_product), 0);
    expect_count("exponentials on the gated way", count(gated, is_exponential), 0);
    expect_count("waits for barriers on the gated way", count(gated, is_await), kTurns * 2);
    expect_count("arrivals on the gated way", count(gated, is_release), kTurns * 2);
    for (const Product& product : products_) {
      const std::size_t first = product.wgmmas.front();
      if (product.has_keys || first < loop_.first || first > loop_.last) continue;
      Indices way = shortest_way(code_, loop_.first, first);
      const Indices rest = shortest_way(code_, first, loop_.last);
      if (way.empty() || rest.empty()) continue;
      way.insert(way.end(), rest.begin() + 1, rest.end());
      check_way(way);
      check_weights(way);
    }
  }

  /// What any way consists of.
  void check_way(const Indices& way) {
    expect_count("turns on the way", count(way, takes_turn), kTurns);
    expect_count("wgmmas with K on the way", count(way, is_key_product),
                 kTurns * facts_.key_products);
    expect_count("FMNMX on the way", count(way, is_float_maximum), 0);
    // Each takes two scores.
    const long maxima = count(way, is_wide_maximum), least = kTurns * facts_.scores / 2;
    if (maxima < least) expect_count("VIMNMX3 on the way", maxima, least);
    bool is_decided = true;
    for (const std::size_t n : way) {
      const Instruction& i = code_[n];
      is_decided = (is_decided || is_await(i)) && !passes_turn(i);
      if (waits_for_all(i) && !is_decided)
        complain("scores are waited for before tiles are decided about", i);
      if (is_copy(i) && holds_scores(registers_of(i).back())) complain("scores are copied", i);
    }
  }
  bool holds_scores(int number) const {
    return std::ranges::any_of(products_, [&](const Product& product) {
      return product.has_keys && accumulators_of(code_[product.wgmmas[0]]).contains(number);
    });
  }

  /// K, votes and V are released, and the other step does without V. Each part has its product.
  void check_weights(const Indices& way) {
    const long wgmmas = count(way, is_value_product);
    expect_count("arrivals on a way with weights", count(way, is_release), kTurns * 2 + 1);
    expect_count("exponentials on a way with weights", count(way, is_exponential),
                 wgmmas * kScoresOfWgmma);
    expect_count("packs on a way with weights", count(way, is_pack), wgmmas * kScoresOfWgmma / 2);
  }

  const Code code_;
  const StepFacts& facts_;
  Loop loop_;
  std::vector<Product> products_;
  std::vector<std::string> complaints_;
};

}  // namespace

std::vector<std::string> violations_ahead(const Code& code, const StepFacts& facts) {
  return AheadCheck(code, facts).run();
}

}  // namespace lacuna::sass
