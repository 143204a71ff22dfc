#include "compiler/expr/text/tokens.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace lacuna {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// What people write who come from another language.
struct Foreign {
  std::string_view spelling, meant, help;
};
constexpr std::array kForeign = std::to_array<Foreign>({
    {"&&", "and", "write `and`"},
    {"||", "or", "write `or`"},
    {"**", "*", "there are no powers; write `x * x`, or `exp2(y * log2(x))`"},
    {"<>", "!=", "write `!=`"},
    {"=<", "<=", "write `<=`"},
    {"=>", ">=", "write `>=`"},
    {"=", "==", "write `==` to compare"},
    {"!", "not", "write `not`"},
    {"~", "not", "write `not`; for the bits of an integer `x ^ -1`"},
    {"≤", "<=", "write `<=`"},
    {"≥", ">=", "write `>=`"},
    {"≠", "!=", "write `!=`"},
    {"×", "*", "write `*`"},
    {"·", "*", "write `*`"},
    {"÷", "/", "write `/`, or `//` for integers"},
    {"−", "-", "write `-`, the sign on the keyboard"},
    {"∧", "and", "write `and`"},
    {"∨", "or", "write `or`"},
    {"¬", "not", "write `not`"},
});

constexpr std::array<std::string_view, 22> kSymbols = {
    "//", "<=", ">=", "==", "!=", "<<", ">>", "+", "-", "*", "/",
    "%",  "<",  ">",  "&",  "^",  "|",  "(",  ")", "[", "]", ","};

class Tokenizer {
 public:
  Tokenizer(std::string_view text, std::vector<ExprError>& errors) : text_(text), errors_(errors) {}

  std::vector<Token> run() {
    tokens_.reserve(text_.size() / 2 + 1);
    while (true) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      if (at_ == text_.size()) break;
      next();
    }
    const auto end = static_cast<std::uint32_t>(text_.size());
    tokens_.push_back({TokenKind::kEnd, end, end, "", nullptr});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void push(TokenKind kind, std::size_t length, std::string_view meant = {}) {
    const std::string_view text = meant.empty() ? text_.substr(at_, length) : meant;
    const auto begin = static_cast<std::uint32_t>(at_);
    at_ += length;
    const bool may_be_infix = kind == TokenKind::kOperator || kind == TokenKind::kName;
    const OperatorInfo* infix = may_be_infix ? find_infix(text) : nullptr;
    if (infix || text == "not") kind = TokenKind::kOperator;
    tokens_.push_back({kind, begin, static_cast<std::uint32_t>(at_), text, infix});
  }

  void next() {
    const char c = peek(0);
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (is_word(c)) {
      std::size_t length = 1;
      while (is_word(peek(length))) ++length;
      if (tokens_.empty() && skip_lambda(length)) return;
      if (skip_let(length)) return;
      return push(TokenKind::kName, length);
    }
    const std::string_view rest = text_.substr(at_);
    for (const Foreign& row : kForeign) {
      // `==` and `!=` are ours; `=` and `!` alone are not.
      if (!rest.starts_with(row.spelling) || rest.starts_with("==") || rest.starts_with("!=")) {
        continue;
      }
      report(row.spelling.size(), "'" + std::string(row.spelling) + "' is not an operator here",
             std::string(row.help));
      return push(TokenKind::kOperator, row.spelling.size(), row.meant);
    }
    for (const std::string_view symbol : kSymbols) {
      if (rest.starts_with(symbol)) {
        const bool is_operator = std::string_view("()[],").find(c) == std::string_view::npos;
        return push(is_operator ? TokenKind::kOperator : TokenKind::kPunctuation, symbol.size());
      }
    }
    unknown();
  }

  /// `lambda b, h, q, k: ` before a formula: one error, and the formula is read. A parameter may
  /// have this name.
  bool skip_lambda(std::size_t length) {
    const std::size_t colon = text_.find(':', at_);
    if (text_.substr(at_, length) != "lambda" || colon == std::string_view::npos) return false;
    report(colon + 1 - at_, "a formula is no function", "write what stands behind the colon alone");
    at_ = colon + 1;
    return true;
  }

  /// `let.near` is read as `near`; behind `let near = ` nothing is known. A parameter may have this
  /// name.
  bool skip_let(std::size_t length) {
    if (text_.substr(at_, length) != "let") return false;
    const std::size_t next = text_.find_first_not_of(' ', at_ + length);
    if (next == std::string_view::npos) return false;
    if (text_[next] == '.') {
      report(next + 1 - at_, "names of let stand alone",
             "write what stands behind the point alone");
      at_ = next + 1;
      return true;
    }
    const std::size_t equals = text_.find('=', next);
    std::size_t end = next;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end == next || equals == std::string_view::npos ||
        text_.find_first_not_of(' ', end) != equals || text_.substr(equals).starts_with("=="))
      return false;
    report(equals + 1 - at_, "a formula defines no names",
           "names for parts of formulas stand beside \"attention\": \"let\": { \"" +
               std::string(text_.substr(next, end - next)) + "\": \"...\" }");
    errors_.back().loses_place = true;
    at_ = text_.size();
    return true;
  }

  void number() {
    std::size_t length = 0;
    bool real = false;
    const auto digits = [&] {
      while (is_digit(peek(length))) ++length;
    };
    digits();
    if (peek(length) == '.') {
      real = true;
      ++length;
      digits();
    }
    if (peek(length) == 'e' || peek(length) == 'E') {
      const std::size_t sign = peek(length + 1) == '+' || peek(length + 1) == '-' ? 1 : 0;
      if (is_digit(peek(length + 1 + sign))) {
        real = true;
        length += 1 + sign;
        digits();
      }
    }
    if (is_word(peek(length))) {  // 12abc, 0x10, 1.5f
      const std::size_t good = length;
      while (is_word(peek(length))) ++length;
      const std::string word(text_.substr(at_, length));
      report(length, "'" + word + "' is not a number", number_help(word, good));
      return push(real ? TokenKind::kReal : TokenKind::kInteger, length, text_.substr(at_, good));
    }
    push(real ? TokenKind::kReal : TokenKind::kInteger, length);
  }

  /// `good`: how many characters of the word are a number.
  static std::string number_help(const std::string& word, std::size_t good) {
    const int base = word.starts_with("0x") || word.starts_with("0X")   ? 16
                     : word.starts_with("0b") || word.starts_with("0B") ? 2
                     : word.starts_with("0o") || word.starts_with("0O") ? 8
                                                                        : 0;
    std::string digits = word;  // 1_000
    std::erase(digits, '_');
    const bool is_grouped = digits.size() < word.size() && word.back() != '_' &&
                            digits.find_first_not_of("0123456789") == std::string::npos;
    if (is_grouped) return "write '" + digits + "'; nothing stands between digits";
    std::int64_t value = 0;
    const char* const end = word.data() + word.size();
    if (base != 0) {
      const auto parsed = std::from_chars(word.data() + 2, end, value, base);
      if (parsed.ec == std::errc() && parsed.ptr == end)
        return "numbers are decimal: write '" + std::to_string(value) + "'";
    }
    const std::int64_t unit = word.size() != good + 1                    ? 1
                              : word.back() == 'k' || word.back() == 'K' ? 1 << 10
                              : word.back() == 'm' || word.back() == 'M' ? 1 << 20
                                                                         : 1;
    const auto parsed = std::from_chars(word.data(), word.data() + good, value);
    const bool is_whole = parsed.ec == std::errc() && parsed.ptr == word.data() + good;
    const std::string number =
        unit > 1 && is_whole ? std::to_string(value * unit) : word.substr(0, good);
    return "write '" + number + "'; numbers are decimal and have no suffix";
  }

  // One error for a run of characters that mean nothing here.
  void unknown() {
    const auto strange = [](char c) {
      return !is_word(c) && !is_space(c) &&
             std::string_view("()[],+-*/%<>=!&|^~.").find(c) == std::string_view::npos;
    };
    std::size_t length = 1;
    while (at_ + length < text_.size() && strange(text_[at_ + length])) ++length;
    if (text_[at_] == ':' && peek(1) == '=' && peek(2) != '=') length = 2;
    const bool is_text = is_quote(text_[at_]);
    if (is_text) length = quoted_length();
    const std::string text(text_.substr(at_, length));
    constexpr std::size_t kMostShown = 40;
    const bool printable = length <= kMostShown && std::ranges::all_of(text, [&](char c) {
                             return (c > ' ' || (is_text && c == ' ')) && c != 0x7f;
                           });
    const std::string what = is_text ? "text" : length > 1 ? "characters" : "character";
    const std::string shown = !printable ? "" : is_text ? " " + text : " '" + text + "'";
    const bool is_choice = text_[at_] == '?' || text_[at_] == ':';
    const bool is_mark = std::string_view("${}").find(text_[at_]) != std::string_view::npos;
    if (!(is_choice && chooses_) && !(is_mark && marks_)) {
      report(length, "unexpected " + what + shown, strange_help(text));
      errors_.back().loses_place = !is_mark;
    }
    marks_ = marks_ || is_mark;
    chooses_ = chooses_ || text_[at_] == '?';
    at_ += length;
  }

  static bool is_quote(char c) { return c == '\'' || c == '"'; }
  /// With the quote that ends the text, if there is one.
  std::size_t quoted_length() const {
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    return end == std::string_view::npos ? 1 : end + 1 - at_;
  }

  /// The way out of characters that mean nothing here; "" if none is known.
  std::string strange_help(const std::string& text) const {
    const auto opened = std::count_if(tokens_.begin(), tokens_.end(),
                                      [](const Token& token) { return token.is("["); });
    const auto closed = std::count_if(tokens_.begin(), tokens_.end(),
                                      [](const Token& token) { return token.is("]"); });
    if (text[0] == ':' && opened > closed)
      return "an index is one number; batch, head and tile are not written: `start[q]`";
    if (text[0] == '@') return "`s` is the product of q and k; it is read in attention.score";
    if (text[0] == '$' || text[0] == '{' || text[0] == '}')
      return "names stand as they are: `window`";
    if (text.starts_with(":=")) return "names for parts of formulas are defined by \"let\"";
    if (text[0] == '?' || text[0] == ':') return "write `select(condition, x, y)`";
    if (text[0] == ';') return "arguments have `,` between them, conditions `and` or `or`";
    if (text[0] == '.') return "what is known of a place has a name without `.`";
    if (!is_quote(text[0])) return "";
    return text.find("inf") != std::string::npos ? "write `inf` or `-inf`"
                                                 : "a formula has numbers and names, and no texts";
  }

  /// A text that is no expression at all would give an error for each character: there is a limit.
  void report(std::size_t length, std::string message, std::string help) {
    constexpr std::size_t kMostErrors = 100;
    if (errors_.size() >= kMostErrors) return;
    ExprError error{Code::kExprSyntax,
                    static_cast<std::uint32_t>(at_),
                    static_cast<std::uint32_t>(at_ + length),
                    std::move(message),
                    {},
                    {},
                    false};
    if (!help.empty()) error.helps.push_back(std::move(help));
    errors_.push_back(std::move(error));
  }

  std::string_view text_;
  std::vector<ExprError>& errors_;
  std::size_t at_ = 0;
  bool chooses_ = false;  ///< `c ? x : y`: said where the `?` stands
  bool marks_ = false;    ///< `$window`, `{window}`: said at the first of them
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, std::vector<ExprError>& errors) {
  return Tokenizer(text, errors).run();
}

}  // namespace lacuna
