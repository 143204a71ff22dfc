// A cursor over the text of a program: words, numbers, strings and punctuation, with line and
// column. The first error of a line is reported; from then on, reads of that line return nothing.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diag/diagnostic.hpp"

namespace lacuna {

class TextReader {
 public:
  TextReader(std::string_view text, Diagnostics& diagnostics)
      : text_(text), diagnostics_(diagnostics) {}

  /// Moves to the next line that is neither blank nor a comment; false at the end of the text.
  bool next_line();
  bool at_line_end();
  bool failed() const { return failed_; }

  /// Takes `token` if it comes next (spaces are skipped first).
  bool accept(std::string_view token);
  bool expect(std::string_view token);
  void expect_line_end();
  bool next_is(std::string_view token);
  /// Reports what should have stood at the cursor.
  void fail_expected(std::string_view what);
  void fail(Code code, std::string message, Span span, std::vector<std::string> notes = {},
            std::vector<std::string> helps = {});

  /// Letters, digits and `extra`; what: "a value name". Empty on failure.
  std::string_view word(std::string_view what, std::string_view extra = "_");
  /// A quoted string; \" and \\ stand for " and \.
  std::string quoted(std::string_view what);
  double number(std::string_view what);
  float number_f32(std::string_view what);
  int integer(std::string_view what);

  Span span(std::size_t begin, std::size_t end) const;
  std::size_t position();  ///< of the next token

 private:
  template <class Number>
  Number parse_number(std::string_view what);

  std::string_view text_;
  Diagnostics& diagnostics_;
  std::size_t cursor_ = 0, line_begin_ = 0;
  int line_ = 1;
  bool failed_ = false, started_ = false;
};

}  // namespace lacuna
