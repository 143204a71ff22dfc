#include "compiler/ir/text_reader.hpp"

#include <cctype>
#include <charconv>

namespace lacuna {

bool TextReader::next_line() {
  failed_ = false;
  for (;;) {
    if (started_) {
      const std::size_t end = text_.find('\n', cursor_);
      if (end == std::string_view::npos) {
        cursor_ = text_.size();
        return false;
      }
      cursor_ = line_begin_ = end + 1;
      ++line_;
    }
    started_ = true;
    if (position() >= text_.size()) return false;
    if (!at_line_end()) return true;
  }
}

std::size_t TextReader::position() {
  while (cursor_ < text_.size() && (text_[cursor_] == ' ' || text_[cursor_] == '\t')) ++cursor_;
  return cursor_;
}

bool TextReader::at_line_end() {
  position();
  return cursor_ >= text_.size() || text_[cursor_] == '\n' || text_[cursor_] == '#';
}

bool TextReader::next_is(std::string_view token) {
  return text_.substr(position(), token.size()) == token;
}

bool TextReader::accept(std::string_view token) {
  if (failed_ || !next_is(token)) return false;
  cursor_ += token.size();
  return true;
}

bool TextReader::expect(std::string_view token) {
  if (accept(token)) return true;
  fail_expected("'" + std::string(token) + "'");
  return false;
}

void TextReader::expect_line_end() {
  if (!failed_ && !at_line_end()) fail_expected("the end of the line");
}

void TextReader::fail_expected(std::string_view what) {
  const std::size_t begin = position();
  if (at_line_end()) {
    fail(Code::kProgramSyntax, "expected " + std::string(what) + ", got the end of the line",
         span(begin, begin + 1));
    return;
  }
  std::size_t end = begin + 1;
  while (end < text_.size() && std::isalnum(static_cast<unsigned char>(text_[end])) != 0 &&
         std::isalnum(static_cast<unsigned char>(text_[begin])) != 0) {
    ++end;
  }
  fail(Code::kProgramSyntax,
       "expected " + std::string(what) + ", got '" + std::string(text_.substr(begin, end - begin)) +
           "'",
       span(begin, end));
}

void TextReader::fail(Code code, std::string message, Span span, std::vector<std::string> notes,
                      std::vector<std::string> helps) {
  if (!failed_) {
    diagnostics_.add(
        {code, Severity::kError, std::move(message), "", span, std::move(notes), std::move(helps)});
  }
  failed_ = true;
}

std::string_view TextReader::word(std::string_view what, std::string_view extra) {
  const std::size_t begin = position();
  std::size_t end = begin;
  while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 ||
                                extra.find(text_[end]) != std::string_view::npos)) {
    ++end;
  }
  if (failed_ || end == begin) {
    fail_expected(what);
    return {};
  }
  cursor_ = end;
  return text_.substr(begin, end - begin);
}

std::string TextReader::quoted(std::string_view what) {
  if (!accept("\"")) {
    fail_expected(what);
    return {};
  }
  const std::size_t begin = cursor_;
  std::string text;
  while (cursor_ < text_.size() && text_[cursor_] != '\n' && text_[cursor_] != '"') {
    if (text_[cursor_] == '\\' && cursor_ + 1 < text_.size()) ++cursor_;
    text += text_[cursor_++];
  }
  if (cursor_ >= text_.size() || text_[cursor_] != '"') {
    fail(Code::kProgramSyntax, "the string has no closing '\"'", span(begin - 1, cursor_));
    return {};
  }
  ++cursor_;
  return text;
}

template <class Number>
Number TextReader::parse_number(std::string_view what) {
  Number value{};
  const char* const begin = text_.data() + position();
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (failed_ || error != std::errc{}) {
    fail_expected(what);
    return {};
  }
  cursor_ += static_cast<std::size_t>(end - begin);
  return value;
}

double TextReader::number(std::string_view what) { return parse_number<double>(what); }
float TextReader::number_f32(std::string_view what) { return parse_number<float>(what); }
int TextReader::integer(std::string_view what) { return parse_number<int>(what); }

Span TextReader::span(std::size_t begin, std::size_t end) const {
  return {line_, static_cast<int>(begin - line_begin_) + 1, static_cast<int>(end - begin)};
}

}  // namespace lacuna
