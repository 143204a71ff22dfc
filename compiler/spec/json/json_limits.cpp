#include "compiler/spec/json/json_limits.hpp"

#include <vector>

namespace lacuna {
namespace {

constexpr std::size_t kDeepest = 64;        ///< levels of nesting; a spec has five
constexpr std::size_t kMostValues = 10000;  ///< a spec with every field and parameter has some 400
constexpr std::size_t kLongestKey = 256;    ///< bytes as written; a name has 64

/// Goes through a valid text, token by token.
class ExcessFinder {
 public:
  explicit ExcessFinder(std::string_view text) : text_(text) {}

  std::optional<JsonExcess> find() {
    for (at_ = 0; at_ < text_.size() && !excess_; ++at_) token(text_[at_]);
    return excess_;
  }

 private:
  void token(char c) {
    switch (c) {
      case '"':
        string();
        break;
      case '{':
      case '[':
        open(c == '[');
        break;
      case '}':
      case ']':
        in_array_.pop_back();
        break;
      case ',':
        if (in_array_.back()) value();
        break;
      case ':':
        if (string_end_ - string_begin_ > kLongestKey)
          exceed(string_begin_, string_end_,
                 "a key is longer than " + std::to_string(kLongestKey) + " bytes");
        else
          value();
        break;
      default:
        break;
    }
  }

  void string() {
    string_begin_ = at_ + 1;
    for (++at_; text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    string_end_ = at_;
  }

  void open(bool is_array) {
    in_array_.push_back(is_array);
    if (in_array_.size() > kDeepest)
      exceed(at_, at_ + 1, "values are nested deeper than " + std::to_string(kDeepest));
    else if (is_array && text_[text_.find_first_not_of(" \t\r\n", at_ + 1)] != ']')
      value();
  }

  void value() {
    if (++values_ > kMostValues)
      exceed(at_, at_ + 1, "the text has more than " + std::to_string(kMostValues) + " values");
  }

  void exceed(std::size_t begin, std::size_t end, std::string message) {
    excess_ = JsonExcess{begin, end, std::move(message)};
  }

  std::string_view text_;
  std::optional<JsonExcess> excess_;
  std::vector<bool> in_array_;
  std::size_t at_ = 0, values_ = 1, string_begin_ = 0, string_end_ = 0;
};

}  // namespace

std::optional<JsonExcess> find_excess(std::string_view text) { return ExcessFinder(text).find(); }

}  // namespace lacuna
