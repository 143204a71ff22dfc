#include "tools/measure/value_sets.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna::tools {
namespace {

struct ValueWord {
  std::string_view word;
  ValueKind kind;
  std::string_view doc;
};
/// All words of --values: the help, the errors and the reader follow this table.
constexpr ValueWord kValueWords[] = {
    {"normal", ValueKind::kNormal, "random normal values"},
    {"normal*S", ValueKind::kNormal, "the same, queries times S"},
    {"sink", ValueKind::kSink,
     "each query's logits with the first 4 keys lie about 10 above others"},
    {"rising", ValueKind::kRising,
     "each tile of 128 keys has a largest logit 1 above that of the tile before"},
    {"falling", ValueKind::kFalling, "1 below"},
    {"FILE.safetensors", ValueKind::kFile,
     "q, k and v of a sample: heads repeated until there are enough, the first n_k tokens"},
};
constexpr std::string_view kFactorMark = "*";
constexpr std::string_view kFileEnding = ".safetensors";

std::string word_list() {
  std::string text;
  const std::size_t count = std::size(kValueWords);
  for (std::size_t n = 0; n < count; ++n)
    text += (n == 0 ? "" : n + 1 == count ? " or " : ", ") + std::string(kValueWords[n].word);
  return text;
}

/// The S of "normal*S"; nothing if `text` is no such thing.
std::optional<double> read_factor(const std::string& text) {
  const std::string before = std::string(kValueWords[0].word) + std::string(kFactorMark);
  if (!text.starts_with(before)) return std::nullopt;
  double factor = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + before.size(), end, factor);
  const bool good = parsed.ec == std::errc() && parsed.ptr == end && std::isfinite(factor);
  return good && factor > 0 ? std::optional(factor) : std::nullopt;
}

}  // namespace

std::string parse_values(const std::string& text, ValueSet& values) {
  if (text.size() > kFileEnding.size() && text.ends_with(kFileEnding)) {
    values = {ValueKind::kFile, 1, text};
    return "";
  }
  if (const auto factor = read_factor(text)) {
    values = {ValueKind::kNormal, *factor, ""};
    return "";
  }
  std::vector<std::string> words;
  for (const ValueWord& known : kValueWords) {
    const bool is_form =
        known.word.find(kFactorMark) != std::string_view::npos || known.kind == ValueKind::kFile;
    if (is_form) continue;
    if (known.word == text) {
      values = {known.kind, 1, ""};
      return "";
    }
    words.emplace_back(known.word);
  }
  const std::string nearest = nearest_word(text, words);
  return "expected " + word_list() + ", got \"" + text + "\"" +
         (nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

std::string print_values(const ValueSet& values) {
  if (values.kind == ValueKind::kFile) return values.path;
  for (const ValueWord& known : kValueWords) {
    if (known.kind != values.kind) continue;
    if (values.query_factor == 1) return std::string(known.word);
    char factor[32];  // the shortest text that is read back as the same number
    const auto shortest = std::to_chars(factor, factor + sizeof factor, values.query_factor);
    return std::string(known.word) + std::string(kFactorMark) + std::string(factor, shortest.ptr);
  }
  return "";
}

void add_values_option(CLI::App& verb, ValueSet& values) {
  std::string help = "What q, k and v hold (" + print_values(values) + ").";
  for (const ValueWord& known : kValueWords)
    help += " " + std::string(known.word) + ": " + std::string(known.doc) + ".";
  verb.add_option_function<std::string>(
          "--values",
          [&values](const std::string& text) {
            const std::string error = parse_values(text, values);
            if (!error.empty()) throw CLI::ValidationError("--values", error);
          },
          help)
      ->type_name("SET");
}

}  // namespace lacuna::tools
