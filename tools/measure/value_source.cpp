#include "tools/measure/value_source.hpp"

#include <algorithm>
#include <vector>

#include "cache/key.hpp"
#include "tools/inputs/load_inputs.hpp"
#include "tools/io/file_io.hpp"
#include "tools/measure/random_problem.hpp"

namespace lacuna::tools {
namespace {

/// Sizes of a file's tensors; batch entries count as heads, since each has whole groups of them.
struct FileSizes {
  std::int64_t heads, heads_kv, queries, keys, head_dim;
};

FileSizes sizes_of(const Inputs& file) {
  const auto &q = file.q.shape, &k = file.k.shape;
  return {q[0] * q[1], k[0] * k[1], q[2], k[2], q[3]};
}

/// q, k and v belong together: v has the shape of k, and query heads are whole groups.
bool goes_together(const Inputs& inputs) {
  const auto &q = inputs.q.shape, &k = inputs.k.shape;
  const auto is_empty = [](std::int64_t extent) { return extent < 1; };
  return inputs.v.shape == k && q[0] == k[0] && q[3] == k[3] && std::ranges::none_of(q, is_empty) &&
         std::ranges::none_of(k, is_empty) && q[1] % k[1] == 0;
}

/// The query head and the KV head of the file that a query head of the problem, counted over the
/// batch, takes its values from. One of both group sizes divides the other.
struct HeadPlace {
  std::int64_t q, kv;
};
HeadPlace head_place(const FileSizes& file, std::int64_t group, std::int64_t head) {
  const std::int64_t file_group = file.heads / file.heads_kv;
  const std::int64_t sharing = std::max<std::int64_t>(file_group / group, 1);
  const std::int64_t kv = head / group / sharing % file.heads_kv;
  return {kv * file_group + head % file_group, kv};
}

/// Tokens [first, first + tokens) of some heads of a file's tensor, one after the other.
std::string copy_heads(const Array& array, const std::vector<std::int64_t>& heads,
                       std::int64_t first, std::int64_t tokens) {
  const std::int64_t row = array.shape[3] * size_bytes(array.type);
  std::string bytes;
  bytes.reserve(heads.size() * static_cast<std::size_t>(tokens * row));
  for (const std::int64_t head : heads)
    bytes.append(array.bytes, static_cast<std::size_t>((head * array.shape[2] + first) * row),
                 static_cast<std::size_t>(tokens * row));
  return bytes;
}

Array to_type(Array array, ArrayType type) {
  if (array.type == type) return array;
  return from_f32(to_f32(array), array.shape, type);
}

/// The first query of the file that a problem takes: its last query is that of its last key.
std::int64_t first_query(const FileSizes& file, const LaunchShape& shape) {
  return shape.n_k - file.keys + file.queries - shape.n_q;
}

Inputs inputs_of_file(const ValueSource& source, const LaunchShape& shape, ArrayType type) {
  const Inputs& stored = *source.file;
  const FileSizes file = sizes_of(stored);
  const std::int64_t group = shape.n_h / shape.n_h_kv;
  std::vector<std::int64_t> heads, heads_kv;
  for (std::int64_t head = 0; head < std::int64_t{shape.n_b} * shape.n_h; ++head) {
    const HeadPlace place = head_place(file, group, head);
    heads.push_back(place.q);
    if (head % group == 0) heads_kv.push_back(place.kv);
  }
  const auto tensor = [type](const Array& from, const std::vector<std::int64_t>& which,
                             std::int64_t first, std::vector<std::int64_t> extents) {
    const std::int64_t tokens = extents[2];
    return to_type({from.type, std::move(extents), copy_heads(from, which, first, tokens)}, type);
  };
  Inputs inputs;
  inputs.origin = stored.origin;
  inputs.q = tensor(stored.q, heads, first_query(file, shape),
                    {shape.n_b, shape.n_h, shape.n_q, file.head_dim});
  const std::vector<std::int64_t> extents{shape.n_b, shape.n_h_kv, shape.n_k, file.head_dim};
  inputs.k = tensor(stored.k, heads_kv, 0, extents);
  inputs.v = tensor(stored.v, heads_kv, 0, extents);
  return inputs;
}

}  // namespace

std::optional<ValueSource> open_values(const ValueSet& set, Session& session) {
  ValueSource source{set, print_values(set)};
  if (set.kind != ValueKind::kFile) return source;
  constexpr std::size_t kShownDigits = 12;
  source.file = load_tensors(set.path, std::nullopt, session);
  if (!source.file) return std::nullopt;
  if (!goes_together(*source.file)) {
    session.fail(ExitCode::kInput, set.path + ": q " + print_shape(source.file->q.shape) + ", k " +
                                       print_shape(source.file->k.shape) + " and v " +
                                       print_shape(source.file->v.shape) + " do not go together");
    return std::nullopt;
  }
  Diagnostics diagnostics;
  const auto bytes = read_file(set.path, diagnostics);
  session.report(diagnostics, {set.path, ""});
  if (!bytes) return std::nullopt;
  source.name += " (sha256 " + cache::sha256_hex(*bytes).substr(0, kShownDigits) + ")";
  return source;
}

std::string check_fits(const ValueSource& source, const LaunchShape& shape, int head_dim,
                       int head_dim_v) {
  if (!source.file) return "";
  const FileSizes file = sizes_of(*source.file);
  const std::string& path = source.set.path;
  if (file.head_dim != head_dim)
    return path + ": head dim: expected " + std::to_string(head_dim) + ", got " +
           std::to_string(file.head_dim) + "; pass --head-dim " + std::to_string(file.head_dim);
  if (head_dim_v > file.head_dim)
    return path + ": head_dim_v: expected at most " + std::to_string(file.head_dim) + ", got " +
           std::to_string(head_dim_v);
  const std::int64_t group = shape.n_h / shape.n_h_kv, file_group = file.heads / file.heads_kv;
  if (group % file_group != 0 && file_group % group != 0)
    return path + ": it has " + std::to_string(file_group) +
           " query heads for each KV head, --shape asks for " + std::to_string(group) +
           "; heads are repeated with their KV head, so one has to divide the other";
  if (shape.n_k > file.keys)
    return path + ": it has " + std::to_string(file.keys) + " tokens, --shape asks for " +
           std::to_string(shape.n_k) +
           "; tokens are cut, never repeated: pass --shape n=" + std::to_string(file.keys);
  if (const std::int64_t first = first_query(file, shape); first < 0)
    return path + ": with " + std::to_string(shape.n_k) + " keys it has " +
           std::to_string(std::max<std::int64_t>(first + shape.n_q, 0)) +
           " queries, --shape asks for " + std::to_string(shape.n_q);
  return "";
}

Inputs make_inputs(const ValueSource& source, const LaunchShape& shape, int head_dim, DType dtype,
                   std::uint64_t seed, int head_dim_v) {
  if (!source.file) return random_inputs(shape, head_dim, dtype, seed, source.set, head_dim_v);
  Inputs inputs = inputs_of_file(source, shape, array_type(dtype));
  if (head_dim_v > 0) inputs.v = first_elements(inputs.v, head_dim_v);
  return inputs;
}

}  // namespace lacuna::tools
