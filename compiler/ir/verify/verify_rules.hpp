// The verifier's rules for single ops, and helpers of their predicates. The text of a rule is the
// diagnostic. The tables are in verify_rules_*.cpp, one for each kind of op.
//
// Predicates may rely on what verify.cpp has checked: ids are in range, operands are defined above,
// and there is one attend.
#pragma once

#include <span>
#include <string_view>

#include "compiler/ir/program.hpp"

namespace lacuna {

template <class T>
struct OpRule {
  std::string_view words;
  bool (*holds)(const Program&, const Node&, const T&);
};

std::span<const OpRule<Input>> rules_of(const Input*);
std::span<const OpRule<Permute>> rules_of(const Permute*);
std::span<const OpRule<Unpermute>> rules_of(const Unpermute*);
std::span<const OpRule<Means>> rules_of(const Means*);
std::span<const OpRule<MergeBranch>> rules_of(const MergeBranch*);
std::span<const OpRule<Smooth>> rules_of(const Smooth*);
std::span<const OpRule<Summarise>> rules_of(const Summarise*);
std::span<const OpRule<Similarity>> rules_of(const Similarity*);
std::span<const OpRule<Quantise>> rules_of(const Quantise*);
std::span<const OpRule<QuantiseValues>> rules_of(const QuantiseValues*);
std::span<const OpRule<Project>> rules_of(const Project*);
std::span<const OpRule<Estimate>> rules_of(const Estimate*);
std::span<const OpRule<Select>> rules_of(const Select*);
std::span<const OpRule<Compact>> rules_of(const Compact*);
std::span<const OpRule<Attend>> rules_of(const Attend*);

/// The type of the input of this name; an empty shape if there is none.
ValueType input_type(std::string_view name, DType dtype);

/// The type of a value; an empty shape for -1.
const ValueType& type_of(const Program& program, int id);

/// Do the node's results have exactly these types?
bool defines(const Program& program, const Node& node, const std::vector<ValueType>& types);

/// The op that defines a value, if it is a T and the value is its result number `index`.
template <class T>
const T* defined_by(const Program& program, int id, std::size_t index = 0) {
  if (id < 0) return nullptr;
  const Node& node = definition_of(program, id);
  return index < node.results.size() && node.results[index] == id ? std::get_if<T>(&node.op)
                                                                  : nullptr;
}

/// "q", "k" or "v" if a value is that input, as it is or permuted; else "".
std::string_view tensor_name(const Program& program, int id);

/// Is a value the mean of `x`?
bool is_mean_of(const Program& program, int id, int x);

/// The head dimension of a tensor's type: heads of queries, KV heads of keys and values.
Dim heads_of(const Program& program, int x);

/// `queries` for what comes from q, `keys` for the others.
Dim side_of(const Program& program, int x, Dim queries, Dim keys);

bool yields(const Expr& expr, ExprType type);

/// Does the expression know the program's parameters, in its order?
bool reads_program_parameters(const Program& program, const Expr& expr);

/// Reads an expression this variable? Not given: no.
bool reads(const Expr& expr, Variable variable);

/// Quantised values as an operand: x's mean, bits and groups, or nullptr if `values` and `scales`
/// are not the two results of one quantise of the input `name`.
const Quantise* quantised(const Program& program, int values, int scales, std::string_view name);

/// The biases that make the logits of quantised values those of the tensors: a row bias exactly if
/// the keys were smoothed, a column bias exactly if the queries were.
bool has_right_biases(const Program& program, const Quantise& q, const Quantise& k, int row_bias,
                      int column_bias);

inline constexpr std::string_view kBiasWords =
    "what smoothing took from quantised operands comes back: row_bias is q projected onto the mean "
    "of k, column_bias k onto the mean of q, each where that mean was taken away";

inline constexpr int kRowsOfMma = 16;
inline constexpr int kLargestTile = 1024;

}  // namespace lacuna
