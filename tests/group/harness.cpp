#include "tests/group/harness.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

namespace lacuna::test {
namespace {

std::vector<float> wave(std::int64_t count, float step) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<float>(i % 7919);
    values[i] = 2 * std::sin(step * x) + std::sin(0.011F * x);
  }
  return values;
}

/// Heads and tokens that a rank holds, worked out here once more.
struct Held {
  std::int32_t first_head = 0, heads = 0;
  std::vector<std::int32_t> tokens;
};

Held held_by(const GroupCase& c, int rank, std::int32_t heads, std::int32_t heads_kv,
             std::int32_t tokens, bool of_keys) {
  Held held{0, of_keys ? heads_kv : heads, {}};
  const std::int32_t per_kv = of_keys ? 1 : heads / heads_kv;
  if (c.layout == Layout::kHeads) {
    held.first_head = heads_kv * rank / c.ranks * per_kv;
    held.heads = heads_kv * (rank + 1) / c.ranks * per_kv - held.first_head;
  }
  for (std::int32_t t = 0; t < tokens; ++t) {
    bool mine = true;
    if (c.layout == Layout::kContiguous)
      mine = tokens * rank / c.ranks <= t && t < tokens * (rank + 1) / c.ranks;
    if (c.layout == Layout::kStriped) {
      const std::int32_t stripe = t / c.stripe, place = stripe % c.ranks;
      mine = (stripe / c.ranks % 2 == 0 ? place : c.ranks - 1 - place) == rank;
    }
    if (mine) held.tokens.push_back(t);
  }
  return held;
}

/// A rank's part of a tensor of the whole.
class Part {
 public:
  Part(Held held, const Shape& shape, std::int32_t all_heads, std::int32_t all_tokens, int dim,
       bool token_major)
      : held_(std::move(held)),
        batch_(shape.batch),
        all_heads_(all_heads),
        all_tokens_(all_tokens),
        dim_(dim),
        token_major_(token_major),
        values_(static_cast<std::size_t>(batch_ * held_.heads * rows() * dim), -7.0F) {}

  void take(const std::vector<float>& whole) {
    each_row([&](std::size_t in_whole, std::size_t here) {
      std::copy_n(&whole[in_whole], dim_, &values_[here]);
    });
  }
  void give(std::vector<float>& whole) const {
    each_row([&](std::size_t in_whole, std::size_t here) {
      std::copy_n(&values_[here], dim_, &whole[in_whole]);
    });
  }
  Tensor tensor() {
    const std::int64_t rows = this->rows(), heads = held_.heads, d = dim_;
    if (token_major_)
      return Tensor(data(), f32, {batch_, heads, rows, d}, cpu(),
                    {rows * heads * d, d, heads * d, 1});
    return Tensor(data(), f32, {batch_, heads, rows, d});
  }
  Tensor numbers() { return Tensor(data(), f32, {batch_, held_.heads, rows()}); }

 private:
  std::int64_t rows() const { return static_cast<std::int64_t>(held_.tokens.size()); }
  float* data() { return values_.empty() ? &none_ : values_.data(); }

  template <class Visit>
  void each_row(Visit visit) const {
    for (std::int32_t b = 0; b < batch_; ++b) {
      for (std::int32_t h = 0; h < held_.heads; ++h) {
        for (std::int32_t r = 0; r < rows(); ++r) {
          const std::int64_t in_whole =
              (std::int64_t{b * all_heads_ + held_.first_head + h}) * all_tokens_ +
              held_.tokens[static_cast<std::size_t>(r)];
          const std::int64_t here = token_major_ ? (b * rows() + r) * held_.heads + h
                                                 : (std::int64_t{b} * held_.heads + h) * rows() + r;
          visit(static_cast<std::size_t>(in_whole * dim_), static_cast<std::size_t>(here * dim_));
        }
      }
    }
  }

  Held held_;
  std::int32_t batch_, all_heads_, all_tokens_;
  int dim_;
  bool token_major_;
  std::vector<float> values_;
  float none_ = 0;
};

/// At a multiple of 256 bytes.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : bytes_(bytes), memory_(bytes + 256) {}
  void* data() {
    void* at = memory_.data();
    std::size_t space = memory_.size();
    return std::align(256, bytes_, at, space);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
};

std::int64_t q_tiles_of(const Shape& s, const Tile& tile) { return (s.n_q + tile.q - 1) / tile.q; }

void add_counts(Results& results, const Shape& s, const Tile& tile) {
  results.counts.assign(static_cast<std::size_t>(s.batch * s.heads * q_tiles_of(s, tile) * 3), -1);
}

Tensor counts_of(Results& results, const Shape& s, const Tile& tile) {
  return Tensor(results.counts.data(), i32, {s.batch, s.heads, q_tiles_of(s, tile), 3});
}

CompileOptions options_of(const Whole& whole) {
  CompileOptions options;
  options.head_dim = whole.dim;
  options.dtype = f32;
  if (whole.ragged.count() > 0) options.batch = Batch::kSequences;
  return options;
}

void run_rank(const Whole& whole, const Spec& spec, const GroupCase& c, const MakeParams& params,
              int launches, const Loopback& loopback, int rank, GroupRun& run) {
  const Engine engine = cpu_engine();
  const Group group = Group::create(engine, {.rank = rank,
                                             .size = c.ranks,
                                             .timeout_s = 60,
                                             .link_gb_s = c.link_gb_s,
                                             .exchange = c.exchange,
                                             .loopback = &loopback});
  const GroupKernel kernel = group.compile(spec, options_of(whole));
  const Shape& s = whole.shape;
  Ragged ragged = whole.ragged;
  const GroupPlan plan = kernel.plan({.shape = s,
                                      .layout = c.layout,
                                      .stripe = c.stripe,
                                      .scheme = c.scheme,
                                      .lse = has_lse(spec),
                                      .strided = c.token_major,
                                      .work = c.work,
                                      .sequences = ragged.count(),
                                      .max_n_q = ragged.max_n_q,
                                      .max_n_k = ragged.max_n_k});
  run.plans[static_cast<std::size_t>(rank)] = plan.json();
  const Held of_q = held_by(c, rank, s.heads, s.heads_kv, s.n_q, false);
  const Held of_k = held_by(c, rank, s.heads, s.heads_kv, s.n_k, true);
  Part q(of_q, s, s.heads, s.n_q, whole.dim, c.token_major), o = q;
  Part k(of_k, s, s.heads_kv, s.n_k, whole.dim, c.token_major), v = k;
  Part lse(of_q, s, s.heads, s.n_q, 1, false);
  q.take(whole.q), k.take(whole.k), v.take(whole.v);
  Workspace workspace(plan.workspace_bytes());
  LaunchArgs args;
  args.q = q.tensor(), args.k = k.tensor(), args.v = v.tensor(), args.o = o.tensor();
  if (has_lse(spec)) args.lse = lse.numbers();
  // Ranks write to different places.
  if (c.with_counts) args.counts = counts_of(run.results, s, kernel.tile());
  args.params = params();
  if (ragged.count() > 0) args.sequences = sequences_of(ragged);
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.bytes();
  for (int i = 0; i < launches; ++i) plan.launch(args);
  group.synchronize(nullptr);
  o.give(run.results.o);  // ranks write to different places
  if (has_lse(spec)) lse.give(run.results.lse);
}

Results empty_results(const Whole& whole) {
  const Shape& s = whole.shape;
  const auto rows = static_cast<std::size_t>(s.batch * s.heads * s.n_q);
  return {std::vector<float>(rows * static_cast<std::size_t>(whole.dim), -9.0F),
          std::vector<float>(rows, -9.0F)};
}

}  // namespace

Whole make_whole(const Shape& shape, int dim) {
  const std::int64_t q = std::int64_t{shape.batch} * shape.heads * shape.n_q * dim;
  const std::int64_t k = std::int64_t{shape.batch} * shape.heads_kv * shape.n_k * dim;
  return {shape, dim, wave(q, 0.37F), wave(k, 0.53F), wave(k, 0.71F)};
}

Sequences sequences_of(Ragged& ragged) {
  const std::int64_t count = ragged.count();
  return {.count = ragged.count(),
          .max_n_q = ragged.max_n_q,
          .max_n_k = ragged.max_n_k,
          .q_begin = Tensor(ragged.q_begin.data(), i32, {count + 1}),
          .n_k = Tensor(ragged.n_k.data(), i32, {count}),
          .k_begin = Tensor(ragged.k_begin.data(), i32, {count})};
}

Engine cpu_engine() {
  EngineOptions options;
  options.device = "cpu";
  options.threads = 1;
  return Engine::create(options);
}

bool has_lse(const Spec& spec) { return spec.text().find("\"weight\"") == std::string::npos; }

Spec shipped(const std::string& name) {
  return Spec::load(LACUNA_SOURCE_DIR "/specs/" + name + ".json");
}

Results run_alone(const Whole& whole, const Spec& spec, const MakeParams& params,
                  bool with_counts) {
  const Shape& s = whole.shape;
  Whole copy = whole;
  Results results = empty_results(whole);
  const Kernel kernel = cpu_engine().compile(spec, options_of(whole));
  LaunchArgs args;
  if (copy.ragged.count() > 0) args.sequences = sequences_of(copy.ragged);
  args.q = Tensor(copy.q.data(), f32, {s.batch, s.heads, s.n_q, whole.dim});
  args.k = Tensor(copy.k.data(), f32, {s.batch, s.heads_kv, s.n_k, whole.dim});
  args.v = Tensor(copy.v.data(), f32, {s.batch, s.heads_kv, s.n_k, whole.dim});
  args.o = Tensor(results.o.data(), f32, {s.batch, s.heads, s.n_q, whole.dim});
  if (has_lse(spec)) args.lse = Tensor(results.lse.data(), f32, {s.batch, s.heads, s.n_q});
  if (with_counts) {
    add_counts(results, s, kernel.tile());
    args.counts = counts_of(results, s, kernel.tile());
  }
  args.params = params();
  kernel.launch(args);
  return results;
}

std::string name_of(const GroupCase& c) {
  constexpr const char* kLayouts[] = {"contiguous", "striped", "heads"};
  constexpr const char* kSchemes[] = {"auto", "gather", "rows", "heads"};
  return std::to_string(c.ranks) + " ranks, " + kLayouts[static_cast<int>(c.layout)] + " " +
         std::to_string(c.stripe) + ", scheme " + kSchemes[static_cast<int>(c.scheme)] +
         (c.token_major ? ", token-major" : "") + (c.link_gb_s > 0 ? ", in chunks" : "") +
         (c.exchange == Exchange::kMessages ? ", by messages" : "");
}

std::vector<std::string> in_threads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& e) {
        errors[static_cast<std::size_t>(rank)] = e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

GroupRun run_together(const Whole& whole, const Spec& spec, const GroupCase& c,
                      const MakeParams& params, int launches) {
  GroupRun run{
      empty_results(whole), {}, std::vector<std::string>(static_cast<std::size_t>(c.ranks))};
  if (c.with_counts)
    add_counts(run.results, whole.shape, cpu_engine().compile(spec, options_of(whole)).tile());
  const Loopback loopback(c.ranks);
  run.errors = in_threads(
      c.ranks, [&](int rank) { run_rank(whole, spec, c, params, launches, loopback, rank, run); });
  return run;
}

}  // namespace lacuna::test
