// Names and types of an expression while it is parsed: what a name means at a site, what an
// operator takes, where i32 is promoted, how parameters are indexed. Part of the parser.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/builder.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/expr_error.hpp"
#include "compiler/expr/text/lets.hpp"

namespace lacuna {

/// As messages name a word of a formula.
inline std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// A typed sub-expression with its source range; node -1: an error in it is reported already.
struct Operand {
  int node = -1;
  std::uint32_t begin = 0, end = 0;
  bool ok() const { return node >= 0; }
};

class Typing {
 public:
  Typing(std::string_view text, Site site, std::span<const ParamSymbol> parameters,
         const Lets& lets, std::vector<ExprError>& errors)
      : text_(text), site_(site), parameters_(parameters), lets_(lets), errors_(errors) {}

  /// `text` is a number as tokenised; `negative` if a minus sign stands before it.
  Operand number(std::string_view text, bool is_real, bool negative, std::uint32_t begin,
                 std::uint32_t end);
  Operand constant(ExprType type, double value, std::uint32_t begin, std::uint32_t end);

  /// A name on its own or with indices in brackets.
  Operand name(std::string_view name, std::uint32_t begin, std::uint32_t name_end);
  Operand indexed(std::string_view name, std::uint32_t begin, std::uint32_t name_end,
                  std::span<const Operand> indices, std::uint32_t end);

  Operand apply(const OperatorInfo& op, std::span<const Operand> operands, std::uint32_t begin,
                std::uint32_t end);
  /// Called something that is no function.
  Operand not_a_function(std::string_view name, std::uint32_t begin, std::uint32_t end);
  /// Called with more or fewer operands than it takes.
  Operand wrong_count(const OperatorInfo& function, std::span<const Operand> arguments,
                      std::uint32_t begin, std::uint32_t end);

  /// Checks and promotes the result to what the site yields; the node of the root, or -1.
  int result(Operand root);

  std::size_t count_errors() const { return errors_.size(); }
  bool has_error_at(std::uint32_t begin) const {
    return std::ranges::find(errors_, begin, &ExprError::begin) != errors_.end();
  }
  /// Errors of this code behind the first so many.
  void forget(Code code, std::size_t first) {
    const auto begin = errors_.begin() + std::ptrdiff_t(first);
    const auto is_such = [&](const ExprError& error) { return error.code == code; };
    errors_.erase(std::remove_if(begin, errors_.end(), is_such), errors_.end());
  }
  ExprError& report(Code code, std::uint32_t begin, std::uint32_t end, std::string message);
  ExprType type_of(const Operand& operand) const { return builder_[operand.node].type; }
  std::string source(const Operand& operand) const;
  const ExprBuilder& builder() const { return builder_; }
  /// The names of `let` that were read, by their index.
  std::vector<std::size_t> lets_read() const;

 private:
  const ParamSymbol* find_parameter(std::string_view name) const;
  Operand located(int node, std::uint32_t begin, std::uint32_t end);
  void explain_variable(const VariableInfo& variable, ExprError& error) const;
  Operand unknown_name(std::string_view name, std::uint32_t begin, std::uint32_t end,
                       std::span<const Operand> indices = {});
  void report_unknown(std::string_view name, std::uint32_t begin, std::uint32_t end,
                      std::span<const Operand> indices);
  bool reads(int node, std::initializer_list<Variable> variables) const;
  std::string dimension_of(const Operand& index) const;
  std::string_view arguments_behind(std::uint32_t begin) const;
  std::string shape_of(std::span<const Operand> indices) const;
  std::optional<std::size_t> find_let(std::string_view name) const;
  Operand defined(std::size_t let, std::uint32_t begin, std::uint32_t end);
  int copied(const Expr& expr, std::uint32_t begin, std::uint32_t end);
  void report_undefined(std::size_t let, std::uint32_t begin, std::uint32_t end);
  bool has_variables_of(std::size_t let, std::uint32_t begin, std::uint32_t end);
  Operand parameter(const ParamSymbol& symbol, std::span<const Operand> indices,
                    std::uint32_t begin, std::uint32_t end);
  bool check_missing_indices(const ParamSymbol& symbol, std::size_t count, std::uint32_t begin,
                             std::uint32_t end);
  std::string usual_index(const ParamDim& dim) const;
  std::string index_help(const Operand& index) const;
  bool check_counted(const ParamSymbol& symbol, const Operand& index, std::size_t dim,
                     std::size_t number);
  bool check_index(const ParamSymbol& symbol, const Operand& index, std::size_t dim,
                   std::size_t number);
  bool check_indices(const ParamSymbol& symbol, std::span<const Operand> indices,
                     std::uint32_t begin, std::uint32_t end);
  bool are_conditions(const OperatorInfo& op, std::span<const Operand> operands) const;
  bool chooses_conditions(const OperatorInfo& op, std::span<const Operand> operands) const;
  bool check_operands(const OperatorInfo& op, std::span<const Operand> operands);
  bool report_integers(const OperatorInfo& op, std::span<const Operand> operands);
  bool report_conditions(const OperatorInfo& op, std::span<const Operand> operands);
  std::string literal_help(const Operand& operand) const;
  int promoted(int node);
  std::string offered_variables() const;
  std::vector<std::string> offered_notes() const;

  std::string_view text_;
  Site site_;
  std::span<const ParamSymbol> parameters_;
  Lets lets_;
  std::vector<ExprError>& errors_;
  ExprBuilder builder_;
  std::vector<std::string> unknown_names_;  ///< that are reported
  static constexpr int kUnseen = -2;
  std::vector<int> let_nodes_;  ///< of each name of `let`: its node, -1 after an error, or kUnseen
};

/// "[heads, n_q]", or "scalar".
std::string print_shape(const ParamSymbol& symbol);

}  // namespace lacuna
