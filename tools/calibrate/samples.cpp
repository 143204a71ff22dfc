#include "tools/calibrate/samples.hpp"

#include <charconv>
#include <cmath>
#include <filesystem>

#include "cache/key.hpp"
#include "tools/inputs/load_inputs.hpp"
#include "tools/io/file_io.hpp"

namespace lacuna::tools {
namespace {

/// One batch entry and a stretch of tokens of [batch, heads, tokens, d].
Array cut(const Array& array, std::int64_t batch, TokenRange range) {
  const auto row = static_cast<std::size_t>(array.shape[3] * size_bytes(array.type));
  const auto begin = static_cast<std::size_t>(range.begin) * row;
  const auto bytes = static_cast<std::size_t>(range.end - range.begin) * row;
  Array part{array.type, {1, array.shape[1], range.end - range.begin, array.shape[3]}, {}};
  for (std::int64_t head = 0; head < array.shape[1]; ++head) {
    const auto plane = static_cast<std::size_t>(batch * array.shape[1] + head);
    part.bytes +=
        array.bytes.substr(plane * static_cast<std::size_t>(array.shape[2]) * row + begin, bytes);
  }
  return part;
}

/// The place of the first value that is not finite: "[0, 3, 17, 5]".
std::optional<std::string> find_not_finite(const Array& array) {
  const std::vector<float> values = to_f32(array);
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (std::isfinite(values[at])) continue;
    std::vector<std::int64_t> place(array.shape.size());
    auto rest = static_cast<std::int64_t>(at);
    for (std::size_t d = place.size(); d-- > 0; rest /= array.shape[d])
      place[d] = rest % array.shape[d];
    return print_shape(place) + " is " + std::to_string(values[at]);
  }
  return std::nullopt;
}

bool check_finite(const std::string& path, const Inputs& inputs, Session& session) {
  const std::pair<const char*, const Array*> tensors[] = {
      {"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}};
  bool good = true;
  for (const auto& [name, array] : tensors) {
    const auto place = find_not_finite(*array);
    if (!place) continue;
    session.fail(ExitCode::kInput, path + ": tensor " + name + " at " + *place +
                                       "; a sample holds finite numbers only");
    good = false;
  }
  return good;
}

/// The files go into one calibration: heads and head dim agree with those of the first.
bool check_alike(const std::string& first_path, const Inputs& first, const std::string& path,
                 const Inputs& inputs, Session& session) {
  const auto same = [&](const char* what, std::int64_t expected, std::int64_t got) {
    if (expected == got) return true;
    session.fail(ExitCode::kInput, path + ": " + what + ": expected " + std::to_string(expected) +
                                       ", as in " + first_path + ", got " + std::to_string(got));
    return false;
  };
  const bool heads = same("heads of q", first.q.shape[1], inputs.q.shape[1]);
  const bool heads_kv = same("heads of k", first.k.shape[1], inputs.k.shape[1]);
  const bool head_dim = same("head dim", first.q.shape[3], inputs.q.shape[3]);
  if (inputs.q.type != first.q.type) {
    session.fail(ExitCode::kInput, path + ": dtype: expected " +
                                       std::string(name_of(first.q.type)) + ", as in " +
                                       first_path + ", got " + std::string(name_of(inputs.q.type)) +
                                       "; pass --dtype");
    return false;
  }
  return heads && heads_kv && head_dim;
}

bool check_range(const std::string& path, const char* flag, TokenRange range, const Inputs& inputs,
                 Session& session) {
  const std::int64_t tokens = inputs.k.shape[2];
  if (inputs.q.shape[2] != tokens) {
    session.fail(ExitCode::kInput, path + ": " + flag + " needs as many queries as keys, got " +
                                       std::to_string(inputs.q.shape[2]) + " and " +
                                       std::to_string(tokens));
    return false;
  }
  if (range.end <= tokens) return true;
  session.fail(ExitCode::kInput, path + ": " + flag + " " + std::to_string(range.begin) + ":" +
                                     std::to_string(range.end) + ": it has only " +
                                     std::to_string(tokens) + " tokens");
  return false;
}

std::optional<std::string> hash_file(const std::string& path, Session& session) {
  Diagnostics diagnostics;
  const auto bytes = read_file(path, diagnostics);
  session.report(diagnostics, {path, ""});
  return bytes ? std::optional(cache::sha256_hex(*bytes)) : std::nullopt;
}

struct File {
  std::string path, sha256;
  Inputs inputs;
};

void add_parts(const File& file, const std::optional<TokenRange>& range, bool held_out,
               std::vector<Sample>& samples) {
  const Inputs& whole = file.inputs;
  const TokenRange all{0, whole.k.shape[2]};
  for (std::int64_t batch = 0; batch < whole.q.shape[0]; ++batch) {
    Sample sample;
    sample.origin.file = std::filesystem::path(file.path).filename().string();
    sample.origin.sha256 = file.sha256;
    sample.origin.batch = batch;
    sample.origin.first_token = range.value_or(all).begin;
    sample.origin.held_out = held_out;
    sample.inputs.origin = file.path;
    const TokenRange queries{0, whole.q.shape[2]};
    sample.inputs.q = cut(whole.q, batch, range.value_or(queries));
    sample.inputs.k = cut(whole.k, batch, range.value_or(all));
    sample.inputs.v = cut(whole.v, batch, range.value_or(all));
    sample.origin.tokens = sample.inputs.k.shape[2];
    samples.push_back(std::move(sample));
  }
}

/// q, k and v belong together, and hold something to calibrate on: the same batch, tokens and head
/// dim, and KV heads that divide.
bool check_together(const std::string& path, const Inputs& inputs, Session& session) {
  const auto &q = inputs.q.shape, &k = inputs.k.shape, &v = inputs.v.shape;
  if (q[0] == 0) {
    session.fail(ExitCode::kInput,
                 path + ": q " + print_shape(q) + " has no batch entry; a sample has at least one");
    return false;
  }
  const bool good = k == v && q[0] == k[0] && q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0 &&
                    q[1] > 0 && q[2] > 0 && k[2] > 0;
  if (!good)
    session.fail(ExitCode::kInput, path + ": q " + print_shape(q) + ", k " + print_shape(k) +
                                       " and v " + print_shape(v) + " do not go together");
  return good;
}

}  // namespace

std::optional<TokenRange> parse_token_range(const std::string& text) {
  TokenRange range;
  const char* end = text.data() + text.size();
  const auto begin_parsed = std::from_chars(text.data(), end, range.begin);
  if (begin_parsed.ec != std::errc() || begin_parsed.ptr == end || *begin_parsed.ptr != ':')
    return std::nullopt;
  const auto end_parsed = std::from_chars(begin_parsed.ptr + 1, end, range.end);
  if (end_parsed.ec != std::errc() || end_parsed.ptr != end) return std::nullopt;
  if (range.begin < 0 || range.begin >= range.end) return std::nullopt;
  return range;
}

/// What is held out is not calibrated on.
bool check_held_out(const SampleOptions& options, Session& session) {
  if (!options.held_out) return true;
  const TokenRange held = *options.held_out;
  const bool is_apart =
      options.tokens && (options.tokens->end <= held.begin || held.end <= options.tokens->begin);
  if (is_apart) return true;
  session.fail(ExitCode::kInput,
               "--held-out " + std::to_string(held.begin) + ":" + std::to_string(held.end) +
                   ": these tokens are calibrated on, too; name others with --tokens BEGIN:END");
  return false;
}

std::optional<std::vector<Sample>> load_samples(const SampleOptions& options, Session& session) {
  if (!check_held_out(options, session)) return std::nullopt;
  std::vector<File> files;
  bool good = true;
  for (const std::string& path : options.files) {
    auto inputs = load_tensors(path, options.dtype, session);
    const auto sha256 = inputs ? hash_file(path, session) : std::nullopt;
    good &=
        sha256 && check_together(path, *inputs, session) && check_finite(path, *inputs, session);
    if (!sha256) continue;
    if (!files.empty())
      good &= check_alike(files.front().path, files.front().inputs, path, *inputs, session);
    if (options.tokens) good &= check_range(path, "--tokens", *options.tokens, *inputs, session);
    if (options.held_out)
      good &= check_range(path, "--held-out", *options.held_out, *inputs, session);
    files.push_back({path, *sha256, std::move(*inputs)});
  }
  if (!good) return std::nullopt;
  std::vector<Sample> samples;
  for (const File& file : files) add_parts(file, options.tokens, false, samples);
  if (options.held_out)
    for (const File& file : files) add_parts(file, options.held_out, true, samples);
  return samples;
}

}  // namespace lacuna::tools
