// Random specs (tests/compile/random_spec.hpp) run on the device under test and are compared with
// the oracle, in batches of one length and of sequences. LACUNA_TEST_BATCHES says how many specs of
// each are drawn, from seed LACUNA_TEST_SEED on; what a test prints of a failure repeats it alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tests/numerics/harness/sequence_kernels.hpp"
#include "tests/numerics/variants/random_variant.hpp"
#include "tests/tier.hpp"

namespace lacuna::numerics {
namespace {

constexpr int kWildTries = 4;  ///< draws of values until there are none that say nothing

/// The variable's number, if it is set.
int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

/// The seeds of this run that draw legal specs.
std::vector<std::uint64_t> legal_seeds(int whole, int sample) {
  auto seed = static_cast<std::uint64_t>(from_environment("LACUNA_TEST_SEED", 1));
  const int count = from_environment("LACUNA_TEST_BATCHES", test::by_tier(whole, sample));
  std::vector<std::uint64_t> seeds;
  for (int tries = 0; static_cast<int>(seeds.size()) < count && tries < 50 + 3 * count; ++tries) {
    if (random_spec(random_name(seed)) != nullptr) seeds.push_back(seed);
    ++seed;
  }
  EXPECT_EQ(static_cast<int>(seeds.size()), count) << "hardly any spec is legal";
  return seeds;
}

/// For shapes and values; the spec has a stream of its own.
test::Random shape_stream(std::uint64_t seed, std::uint64_t kind) {
  return test::Random(seed * 1000003 + kind);
}

/// f32 exists on the CPU alone.
DType dtype_of(const test::DrawnSpec& drawn, test::Random& random) {
  if (random.chance(12) && !engine().is_cuda) return DType::kF32;
  return drawn.options.dtype == lacuna::DType::kF16 ? DType::kF16 : DType::kBF16;
}

/// Logits that are weights themselves stay small: of large ones o does not fit f16.
Fill draw_fill(const test::DrawnSpec& drawn, test::Random& random) {
  if (drawn.document.spec.attention.normalise == Weights::kNone)
    return random.pick(std::array{Fill::kNormal, Fill::kUneven, Fill::kClustered});
  return random.pick(std::array{Fill::kNormal, Fill::kNormal, Fill::kUneven, Fill::kClustered,
                                Fill::kClustered, Fill::kSharp, Fill::kRising});
}

/// One token, less than a tile, next to its end, several of them.
int draw_length(test::Random& random, int most) {
  switch (random.below(6)) {
    case 0:
      return random.pick(std::array{1, 1, 2, 7, 16});
    case 1:
      return 64 * random.between(1, 3) + random.between(-1, 1);
    case 2:
      return random.between(3, 80);
    default:
      return random.between(80, most);
  }
}

Case draw_case(std::uint64_t seed) {
  test::Random random = shape_stream(seed, 1);
  const auto drawn = random_spec(random_name(seed));
  Case c;
  c.variant = random_name(seed);
  c.dtype = dtype_of(*drawn, random);
  c.d = drawn->options.head_dim, c.d_v = drawn->options.head_dim_v;
  c.n_b = random.chance(30) ? 2 : 1;
  c.n_h_kv = random.between(1, 2), c.n_h = c.n_h_kv * random.between(1, 3);
  c.n_q = draw_length(random, 300), c.n_k = random.chance(25) ? c.n_q : draw_length(random, 450);
  if (drawn->document.spec.gate && random.chance(70)) c.n_k = random.between(250, 600);
  if (drawn->document.spec.permute.order != TokenOrder::kNone) c.n_k = c.n_q;
  c.fill = draw_fill(*drawn, random);
  c.token_major = random.chance(30);
  return c;
}

std::string description(std::uint64_t seed, const std::string& shape) {
  return "LACUNA_TEST_BATCHES=1 LACUNA_TEST_SEED=" + std::to_string(seed) + ": " + shape + "\n" +
         random_spec(random_name(seed))->document.source.text;
}

/// A seed of values whose logits can be compared, or nothing.
std::optional<std::uint32_t> tame_values(const Case& c, const KernelTile& tile,
                                         std::uint64_t seed) {
  for (int n = 0; n < kWildTries; ++n) {
    const auto values = static_cast<std::uint32_t>(seed * kWildTries) + static_cast<unsigned>(n);
    if (wild_logit(make_variant(c, tile, values)).empty()) return values;
  }
  return std::nullopt;
}

TEST(RunRandomSpecs, AgreeWithTheOracle) {
  std::vector<Case> cases;
  const std::vector<std::uint64_t> seeds = legal_seeds(150, 10);
  for (const std::uint64_t seed : seeds) cases.push_back(draw_case(seed));
  compile_ahead(engine(), cases);
  int wild = 0;
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const Case& c = cases[n];
    SCOPED_TRACE(description(seeds[n], c.text()));
    const TestKernel kernel(engine(), c);
    EXPECT_EQ(kernel.error, "");
    if (!kernel.error.empty()) continue;
    const auto values = tame_values(c, kernel.tile, seeds[n]);
    wild += values ? 0 : 1;
    if (!values) continue;
    EXPECT_EQ(check_case(c, *values), "");
  }
  RecordProperty("wild", wild);
  EXPECT_LE(wild, 1 + static_cast<int>(cases.size()) / 4) << "values say too little";
}

/// Is the spec legal for keys and values of e4m3?
bool takes_codes(const test::DrawnSpec& drawn, bool has_pages) {
  BuildOptions options = drawn.options;
  options.kv = KvFormat::kE4M3;
  options.batch = has_pages ? BatchLayout::kPages : BatchLayout::kSequences;
  Diagnostics found;
  for (const char* target : test::kTargets)
    (void)make_plan(drawn.document, options, find_target(target).value(), found);
  return !found.has_errors();
}

SequenceCase draw_sequences(std::uint64_t seed) {
  test::Random random = shape_stream(seed, 2);
  const auto drawn = random_spec(random_name(seed));
  SequenceCase c;
  c.variant = random_name(seed);
  c.dtype = dtype_of(*drawn, random);
  c.d = drawn->options.head_dim, c.d_v = drawn->options.head_dim_v;
  c.n_h_kv = random.between(1, 2), c.n_h = c.n_h_kv * random.between(1, 4);
  c.page_tokens = random.chance(50) ? 0 : 16 << random.below(4);
  c.heads_inside = random.chance(50);
  c.e4m3 = random.chance(15) && takes_codes(*drawn, c.page_tokens > 0);
  c.spare = 1 + random.below(2) * random.below(200);
  c.fill = draw_fill(*drawn, random);
  for (int n = random.between(1, 4); n > 0; --n) {
    const int n_k = random.chance(15) ? 0 : draw_length(random, 400);
    const int n_q = random.chance(30) ? random.below(9) : draw_length(random, 200);
    c.lengths.emplace_back(n_q, n_k);
  }
  return c.fitting_order();
}

TEST(RunRandomSpecs, SequencesAgreeWithTheOracle) {
  std::vector<SequenceCase> cases;
  const std::vector<std::uint64_t> seeds = legal_seeds(60, 5);
  for (const std::uint64_t seed : seeds) cases.push_back(draw_sequences(seed));
  compile_ahead(cases);
  for (std::size_t n = 0; n < cases.size(); ++n) {
    SequenceCase& c = cases[n];
    SCOPED_TRACE(description(seeds[n], c.text()));
    const CompiledKernel kernel = kernel_for(c);
    EXPECT_EQ(kernel.error, "");
    if (!kernel.error.empty()) continue;
    c.tile = kernel.tile;
    SequenceBatch batch(engine().is_cuda, c, static_cast<std::uint32_t>(seeds[n]));
    const bool is_tame =
        std::ranges::all_of(batch.variants, [](const Variant& v) { return wild_logit(v).empty(); });
    if (!is_tame) continue;
    EXPECT_EQ(launch(batch), "");
  }
}

}  // namespace
}  // namespace lacuna::numerics
