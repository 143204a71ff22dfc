#include "tests/numerics/harness/sequences.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>

#include "tests/numerics/harness/rows.hpp"
#include "tests/numerics/harness/sequence_formulas.hpp"
#include "tests/numerics/variants/random_variant.hpp"
#include "tests/numerics/variants/variant_parts.hpp"

namespace lacuna::numerics {
namespace {

constexpr int kGap = 3;  ///< rows between sequences

/// A few rows whose LSE is far off.
std::string worst_rows(const oracle::Output& expected, const Reported& got, int n_q) {
  std::ostringstream text;
  int shown = 0;
  for (std::size_t row = 0; row < got.lse.size() && shown < 8; ++row) {
    if (std::fabs(expected.lse[row] - got.lse[row]) < 0.01) continue;
    const int place = static_cast<int>(row);
    text << " (head " << place / n_q << " query " << place % n_q << ": lse " << got.lse[row]
         << ", expected " << expected.lse[row] << ")";
    ++shown;
  }
  return text.str();
}

int ceil_of(int count, int size) { return (count + size - 1) / size; }

}  // namespace

int SequenceCase::most_queries() const {
  if (room > 0) return room;
  int most = 0;
  for (const auto& [n_q, n_k] : lengths) most = std::max(most, n_q);
  return most + spare;
}

int SequenceCase::most_keys() const {
  if (room > 0) return room;
  int most = 0;
  for (const auto& [n_q, n_k] : lengths) most = std::max(most, n_k);
  return most + spare;
}

bool SequenceCase::is_tiled() const {
  if (is_random_name(variant)) return has_own_tiles(*random_spec(variant));
  return std::ranges::count(tiled_sequence_variants(), variant) > 0;
}

std::string SequenceCase::text() const {
  std::ostringstream out;
  out << variant << " d" << d << (d_v > 0 && d_v != d ? "v" + std::to_string(d_v) : "") << " heads "
      << n_h << ":" << n_h_kv << " pages " << page_tokens << (heads_inside ? " nhd" : " hnd")
      << (e4m3 ? " e4m3" : "") << " fill " << static_cast<int>(fill) << " lengths";
  for (const auto& [n_q, n_k] : lengths) out << " " << n_q << "/" << n_k;
  return out.str();
}

const std::vector<std::string>& sequence_variants() {
  static const std::vector<std::string> names = {
      "dense", "flash-decoding", "window", "sink", "alibi", "t5-bias", "sigmoid", "ordered-window"};
  return names;
}

const std::vector<std::string>& tiled_sequence_variants() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"skip-softmax",
                                    "bsfa",
                                    "warp-gate",
                                    "streaming",
                                    "topk-blocks",
                                    "flexprefill",
                                    "quest",
                                    "relmax",
                                    "cascade",
                                    "twilight",
                                    "fg-attn-cached",
                                    "fg-attn-pooled",
                                    "minference-vertical-slash",
                                    "xattention",
                                    "sale",
                                    "sparge",
                                    "sparge-topk",
                                    "external-mask",
                                    "sparge-video",
                                    "int8-dilated",
                                    "int8-tile-gate",
                                    "int8-lists-64x64-e4m3-unmasked",
                                    "natten",
                                    "neighbour-tiles"};
    for (const std::string& name : narrow_list_names())
      if (name.starts_with("lists-")) all.push_back(name);
    return all;
  }();
  return names;
}

SequenceBatch::SequenceBatch(bool is_cuda, const SequenceCase& c, std::uint32_t seed)
    : shape(c), tensors(is_cuda) {
  std::mt19937 random(seed);
  const int count = static_cast<int>(c.lengths.size());
  std::vector<std::int32_t> q_starts, k_starts, key_counts;
  std::vector<std::uint32_t> seeds;
  const int most_q = c.most_queries();
  const int most_k = c.most_keys();
  int tokens_q = kGap, tokens_k = kGap, pages_used = 0;
  for (const auto& [own_q, own_k] : c.lengths) {
    const auto own_seed = static_cast<std::uint32_t>(random());
    seeds.push_back(own_seed);
    if (c.has_branches()) joined.push_back(joined_sequence(c, {own_q, own_k}, own_seed));
    variants.push_back(c.has_branches() ? joined.back().variant
                                        : variant_of(c, {own_q, own_k}, own_seed,
                                                     static_cast<int>(variants.size())));
    q_starts.push_back(tokens_q);
    k_starts.push_back(tokens_k);
    key_counts.push_back(own_k);
    tokens_q += own_q;
    tokens_k += own_k + kGap;
    if (c.page_tokens > 0) pages_used += ceil_of(own_k, c.page_tokens);
  }
  q_starts.push_back(tokens_q);
  if (c.room > 0) {
    tokens_q = count * c.room, tokens_k = count * (c.room + kGap);
    if (c.page_tokens > 0) pages_used = count * ceil_of(c.room, c.page_tokens);
  }
  first_queries.assign(q_starts.begin(), q_starts.end());

  const bool has_pages = c.page_tokens > 0;
  const int entries = has_pages ? pages_used + 2 : 1;
  Rows queries(1, c.n_h, tokens_q + kGap, c.d);
  const int rows_k = has_pages ? c.page_tokens : tokens_k;
  Rows keys(entries, c.n_h_kv, rows_k, c.d), values(entries, c.n_h_kv, rows_k, c.value_dim());
  const int table_width = has_pages ? ceil_of(most_k, c.page_tokens) + 1 : 1;
  std::vector<std::int32_t> table(size_of(std::int64_t{count} * table_width), 0x7abcdef0);
  std::vector<std::int32_t> free_pages(size_of(entries));
  std::iota(free_pages.begin(), free_pages.end(), 0);
  std::shuffle(free_pages.begin(), free_pages.end(), random);
  Codes key_codes(keys.values.size(), entries * keys.heads, random),
      value_codes(values.values.size(), entries * values.heads, random);
  for (int b = 0; b < count; ++b) {
    oracle::Problem& problem = variants[size_of(b)].problem;
    scatter(problem.q, c.n_h, problem.n_q, c.d, queries,
            [&](int n) { return std::pair(0, q_starts[size_of(b)] + n); });
    std::int32_t* own = table.data() + std::int64_t{b} * table_width;
    for (int n = 0; has_pages && n < ceil_of(problem.n_k, c.page_tokens); ++n) {
      own[n] = free_pages.back();
      free_pages.pop_back();
    }
    const auto place = [&](int n) {
      return has_pages ? std::pair(int{own[n / c.page_tokens]}, n % c.page_tokens)
                       : std::pair(0, k_starts[size_of(b)] + n);
    };
    if (c.e4m3) {
      encode_rows(problem.k, c.dtype, c.n_h_kv, problem.n_k, key_codes, keys, place);
      encode_rows(problem.v, c.dtype, c.n_h_kv, problem.n_k, value_codes, values, place);
      if (c.has_branches()) {
        JoinedVariant& own = joined[size_of(b)];
        own.variant.problem.k = problem.k, own.variant.problem.v = problem.v;
        join_again(c.of_sequence(c.lengths[size_of(b)]), seeds[size_of(b)], own);
      }
    }
    scatter(problem.k, c.n_h_kv, problem.n_k, c.d, keys, place);
    scatter(problem.v, c.n_h_kv, problem.n_k, c.value_dim(), values, place);
  }

  const auto upload = [&](const Rows& rows, int n_entries) {
    return tensors.upload(rows.values, c.dtype, {n_entries, rows.heads, rows.rows, rows.d},
                          c.heads_inside);
  };
  q = upload(queries, 1), k = upload(keys, entries), v = upload(values, entries);
  if (c.e4m3) {
    const auto upload_codes = [&](const Codes& codes, const Rows& rows) {
      return tensors.upload_e4m3(codes.codes, {entries, rows.heads, rows.rows, rows.d},
                                 c.heads_inside);
    };
    k = upload_codes(key_codes, keys), v = upload_codes(value_codes, values);
    k_scale = tensors.upload(key_codes.scales, DType::kF32, {entries, keys.heads}, false);
    v_scale = tensors.upload(value_codes.scales, DType::kF32, {entries, keys.heads}, false);
    args.k_scale = k_scale.view(), args.v_scale = v_scale.view();
  }
  o = tensors.poisoned(c.dtype, {1, c.n_h, queries.rows, c.value_dim()}, c.heads_inside);
  lse = tensors.poisoned(DType::kF32, {1, c.n_h, queries.rows}, false);
  q_begin = tensors.upload_i32(q_starts, {count + 1});
  n_k = tensors.upload_i32(key_counts, {count});
  k_begin = tensors.upload_i32(k_starts, {count});
  pages = tensors.upload_i32(table, {count, table_width});
  sequences.struct_size = sizeof sequences;
  sequences.count = count, sequences.max_n_q = most_q, sequences.max_n_k = most_k;
  sequences.q_begin = q_begin.view(), sequences.n_k = n_k.view();
  sequences.k_begin = has_pages ? nullptr : k_begin.view();
  sequences.pages = has_pages ? pages.view() : nullptr;

  if (c.is_tiled()) {
    const oracle::Tiling& tiling = variants.front().tiling;
    const int q_tiles = ceil_of(most_q, tiling.tile_q), k_tiles = ceil_of(most_k, tiling.tile_k);
    counts = tensors.poisoned_i32({count, c.n_h, q_tiles, 3});
    tile_mask = tensors.poisoned_u8({count, c.n_h, q_tiles, k_tiles});
    args.counts = counts.view(), args.tile_mask = tile_mask.view();
    upload_lists(q_tiles, k_tiles);
  }
  param_values = c.has_branches()    ? params_of_branches(most_q)
                 : has_own_params(c) ? variants.front().params
                                     : params_of(c);
  param_tensors.reserve(param_values.size());
  for (const ParamValue& p : param_values) {
    if (!p.shape.empty()) param_tensors.push_back(tensors.upload_param(p));
    params.push_back({p.name.c_str(), p.shape.empty() ? nullptr : param_tensors.back().view(),
                      p.shape.empty() ? p.values[0] : 0});
  }
  args.struct_size = sizeof args;
  args.q = q.view(), args.k = k.view(), args.v = v.view(), args.o = o.view();
  has_lse = c.has_lse();
  if (c.has_order()) upload_order(queries.rows);
  args.lse = has_lse ? lse.view() : nullptr;
  args.params = params.data(), args.params_count = params.size();
  args.sequences = &sequences;
  args.stream = tensors.stream();
}

/// Garbage where no sequence has a row.
void SequenceBatch::upload_order(int rows) {
  std::vector<std::int32_t> all(size_of(rows), 0x7abcdef0);
  for (std::size_t b = 0; b < variants.size(); ++b)
    std::ranges::copy(variants[b].order, all.begin() + first_queries[b]);
  order = tensors.upload_i32(all, {rows});
  args.order = order.view();
}

void SequenceBatch::upload_lists(int q_tiles, int k_tiles) {
  const bool is_listed =
      is_random_name(shape.variant)
          ? random_spec(shape.variant)->document.spec.external_mask
          : shape.variant == "external-mask" || shape.variant.find("lists-") != std::string::npos;
  if (!is_listed) return;
  constexpr std::int32_t kGarbage = 0x7abcdef0, kNeedsMask = std::numeric_limits<int>::min();
  const std::int64_t rows = std::int64_t{sequences.count} * shape.n_h * q_tiles;
  std::vector<std::int32_t> indices(size_of(rows * k_tiles), kGarbage),
      lengths(size_of(rows), kGarbage);
  for (int b = 0; b < sequences.count; ++b) {
    const oracle::Problem& problem = variants[size_of(b)].problem;
    const oracle::Tiling& tiling = variants[size_of(b)].tiling;
    const int own_q = ceil_of(problem.n_q, tiling.tile_q),
              own_k = ceil_of(problem.n_k, tiling.tile_k);
    for (int row = 0; row < shape.n_h * own_q; ++row) {
      const std::int64_t to = (std::int64_t{b} * shape.n_h + row / own_q) * q_tiles + row % own_q;
      std::int32_t listed = 0;
      for (int j = 0; j < own_k; ++j) {
        if (tiling.listed[size_of(std::int64_t{row} * own_k + j)] != 0)
          indices[size_of(to * k_tiles + listed++)] = j | kNeedsMask;
      }
      lengths[size_of(to)] = listed;
    }
  }
  list_indices = tensors.upload_i32(indices, {sequences.count, shape.n_h, q_tiles, k_tiles});
  list_counts = tensors.upload_i32(lengths, {sequences.count, shape.n_h, q_tiles});
  args.list_indices = list_indices.view(), args.list_counts = list_counts.view();
}

void SequenceBatch::take(const SequenceBatch& other) {
  const std::pair<Tensor*, const Tensor*> all[] = {
      {&q, &other.q},        {&k, &other.k},
      {&v, &other.v},        {&q_begin, &other.q_begin},
      {&n_k, &other.n_k},    {&k_begin, &other.k_begin},
      {&pages, &other.pages}};
  for (const auto& [to, from] : all) tensors.take(*to, *from);
  if (args.order != nullptr) tensors.take(order, other.order);
  if (args.list_indices != nullptr) {
    tensors.take(list_indices, other.list_indices);
    tensors.take(list_counts, other.list_counts);
  }
  for (std::size_t p = 0; p < param_tensors.size() && shape.has_branches(); ++p)
    tensors.take(param_tensors[p], other.param_tensors[p]);
  variants = other.variants, joined = other.joined;
  first_queries = other.first_queries;
}

void SequenceBatch::poison() {
  tensors.poison(o);
  tensors.poison(lse);
  if (shape.is_tiled()) tensors.poison(counts), tensors.poison(tile_mask);
}

lacuna_shape SequenceBatch::launch_shape() const {
  lacuna_shape made{};
  made.struct_size = sizeof made;
  made.batch = sequences.count, made.heads = shape.n_h, made.heads_kv = shape.n_h_kv;
  made.n_q = sequences.max_n_q, made.n_k = sequences.max_n_k;
  return made;
}

std::string SequenceBatch::check_dense(int b, const Reported& got, bool is_cuda) const {
  const Variant& variant = variants[size_of(b)];
  const oracle::Problem& problem = variant.problem;
  const oracle::Output expected =
      joined.empty() ? oracle::oracle_dense(problem) : joined[size_of(b)].expected;
  const double more = joined.empty() ? 1 : joined[size_of(b)].cancellation;
  const OutputError error = compare_output(variant, expected, got, 0);
  const Tolerance allowed = tolerance_of(shape.dtype, problem, is_cuda);
  if (error.mismatch.empty() && error.rel_l1 <= more * allowed.rel_l1 &&
      error.rel_max <= more * allowed.rel_max && error.lse <= allowed.lse)
    return "";
  std::ostringstream text;
  text << error.mismatch << " rel_l1 " << error.rel_l1 << " rel_max " << error.rel_max << " lse "
       << error.lse << worst_rows(expected, got, problem.n_q) << "; ";
  return text.str();
}

/// Reports have rows and tiles for the longest sequence; what the others do not have is 0.
std::string SequenceBatch::check_tiles(int b, Reported got, bool is_cuda) {
  const Variant& variant = variants[size_of(b)];
  const oracle::Problem& problem = variant.problem;
  const int q_tiles = ceil_of(problem.n_q, variant.tiling.tile_q),
            k_tiles = ceil_of(problem.n_k, variant.tiling.tile_k);
  const auto most_q = static_cast<int>(tile_mask.shape[2]),
             most_k = static_cast<int>(tile_mask.shape[3]);
  const std::vector<std::int32_t> all_counts = tensors.download_i32(counts);
  const std::vector<std::uint8_t> mask = tensors.download_u8(tile_mask);
  std::ostringstream text;
  for (int h = 0; h < shape.n_h; ++h) {
    for (int i = 0; i < most_q; ++i) {
      const std::int64_t row = (std::int64_t{b} * shape.n_h + h) * most_q + i;
      const auto counted = all_counts.begin() + row * 3;
      const auto marked = mask.begin() + row * most_k;
      const bool exists = i < q_tiles;
      if (exists) got.counts.insert(got.counts.end(), counted, counted + 3);
      if (exists) got.tile_mask.insert(got.tile_mask.end(), marked, marked + k_tiles);
      const auto is_zero = [](auto x) { return x == 0; };
      if (!std::all_of(marked + (exists ? k_tiles : 0), marked + most_k, is_zero) ||
          (!exists && !std::all_of(counted, counted + 3, is_zero)))
        text << "reports of head " << h << " row " << i << " go beyond the sequence; ";
    }
  }
  text << check_variant(shape.of_sequence({problem.n_q, problem.n_k}), variant, got, is_cuda);
  return text.str();
}

std::string SequenceBatch::check(bool is_cuda) {
  tensors.synchronise();
  bool padding_touched = false;
  const std::vector<double> all_o = tensors.download(o, &padding_touched);
  const std::vector<double> all_lse = tensors.download(lse, nullptr);
  std::ostringstream text;
  if (padding_touched) text << "bytes between the rows of o were written; ";
  const std::int64_t rows = o.shape[2], width = o.shape[3];
  std::vector<char> is_owned(size_of(rows), 0);
  for (std::size_t b = 0; b < variants.size(); ++b) {
    const oracle::Problem& problem = variants[b].problem;
    Reported got;
    for (int h = 0; h < shape.n_h; ++h) {
      const std::int64_t first = std::int64_t{h} * rows + first_queries[b];
      got.o.insert(got.o.end(), all_o.begin() + first * width,
                   all_o.begin() + (first + problem.n_q) * width);
      got.lse.insert(got.lse.end(), all_lse.begin() + first, all_lse.begin() + first + problem.n_q);
      if (!has_lse) std::ranges::fill(got.lse, 0.0);  // as the oracle's
    }
    for (int n = 0; n < problem.n_q; ++n) is_owned[size_of(first_queries[b] + n)] = 1;
    if (problem.n_q == 0) continue;
    const int number = static_cast<int>(b);
    const std::string wrong =
        shape.is_tiled() ? check_tiles(number, got, is_cuda) : check_dense(number, got, is_cuda);
    if (!wrong.empty()) text << "sequence " << b << ": " << wrong;
  }
  for (std::int64_t n = 0; n < rows; ++n) {
    for (int h = 0; is_owned[size_of(n)] == 0 && h < shape.n_h; ++h) {
      const std::int64_t row = std::int64_t{h} * rows + n;
      const bool is_poison =
          std::isnan(all_lse[size_of(row)]) &&
          std::all_of(all_o.begin() + row * width, all_o.begin() + (row + 1) * width,
                      [](double x) { return std::isnan(x); });
      if (!is_poison) text << "row " << n << " of head " << h << ", of no sequence, was written; ";
    }
  }
  return text.str();
}

}  // namespace lacuna::numerics
