// The verifier: a list of rules in words, each with its predicate. The words are the diagnostic.
//
// Rules come in levels; a level is only looked at when the ones before it hold, so that predicates
// may rely on them (ids are in range, there is one attend, ...).
#include <cctype>
#include <cmath>
#include <span>
#include <string_view>

#include "compiler/ir/fields.hpp"
#include "compiler/ir/names.hpp"

namespace lacuna {
namespace {

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

bool is_program_name(std::string_view name) {
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.') {
      return false;
    }
  }
  return !name.empty();
}

template <class Items, class NameOf>
bool distinct_identifiers(const Items& items, NameOf name_of_item) {
  for (std::size_t a = 0; a < items.size(); ++a) {
    if (!is_identifier(name_of_item(items[a]))) return false;
    for (std::size_t b = 0; b < a; ++b) {
      if (name_of_item(items[a]) == name_of_item(items[b])) return false;
    }
  }
  return true;
}

bool results_count_up(const Program& program) {
  int next = 0;
  for (const Node& node : program.nodes) {
    for (const int id : node.results) {
      if (id != next++) return false;
    }
  }
  return next == static_cast<int>(program.values.size());
}

/// Every operand was defined by an earlier node; a required one is given.
bool operands_defined_above(const Program& program) {
  int defined = 0;
  bool holds = true;
  for (const Node& node : program.nodes) {
    std::visit(
        [&]<class T>(const T& op) {
          for_each_field<T>([&](const auto& field) {
            if constexpr (std::is_same_v<decltype(field), const Operand<T>&>) {
              const int id = op.*field.member;
              holds = holds && id < defined && id >= (field.required ? 0 : -1);
            }
          });
        },
        node.op);
    defined += static_cast<int>(node.results.size());
  }
  return holds;
}

template <class T>
int count(const Program& program) {
  int n = 0;
  for (const Node& node : program.nodes) n += std::holds_alternative<T>(node.op) ? 1 : 0;
  return n;
}

bool defaults_in_range(const Program& program) {
  for (const ParamSpec& p : program.params) {
    if (!(p.minimum <= p.maximum)) return false;
    if (p.has_default && !(p.minimum <= p.default_value && p.default_value <= p.maximum)) {
      return false;
    }
  }
  return true;
}

ValueType input_type(std::string_view name, DType dtype) {
  using enum Dim;
  if (name == "q") return {element_of(dtype), {kBatch, kHeads, kNQ, kHeadDim}};
  if (name == "k" || name == "v") return {element_of(dtype), {kBatch, kHeadsKv, kNK, kHeadDim}};
  if (name == "list_indices") return {Element::kI32, {kBatch, kHeads, kQTiles, kCapacity}};
  if (name == "list_counts") return {Element::kI32, {kBatch, kHeads, kQTiles}};
  return {};
}

const Value& value_of(const Program& program, int id) {
  return program.values[static_cast<std::size_t>(id)];
}

bool inputs_distinct(const Program& program) {
  std::vector<std::string_view> names;
  for (const Node& node : program.nodes) {
    if (const auto* input = std::get_if<Input>(&node.op)) names.push_back(input->name);
  }
  return distinct_identifiers(names, [](std::string_view name) { return name; });
}

/// The name of the input that defines a value; "" for other ops.
std::string_view input_name(const Program& program, int id) {
  for (const Node& node : program.nodes) {
    const auto* input = std::get_if<Input>(&node.op);
    if (input != nullptr && node.results.size() == 1 && node.results[0] == id) return input->name;
  }
  return "";
}

bool yields(const Expr& expr, ExprType type) { return expr.empty() || expr.root().type == type; }

bool reads_program_parameters(const Program& program, const Expr& expr) {
  if (expr.empty()) return true;
  if (expr.parameters.size() != program.params.size()) return false;
  for (std::size_t p = 0; p < program.params.size(); ++p) {
    if (expr.parameters[p] != program.params[p].symbol) return false;
  }
  return true;
}

bool is_tile_size(int size) { return size % 16 == 0 && size >= 16 && size <= 1024; }

struct ProgramRule {
  std::string_view words;
  bool (*holds)(const Program&);
};

constexpr ProgramRule kStructure[] = {
    {"a program's name consists of letters, digits, '_', '-' and '.'",
     [](const Program& p) { return is_program_name(p.name); }},
    {"head_dim is a multiple of 8 between 8 and 512",
     [](const Program& p) { return p.head_dim % 8 == 0 && p.head_dim >= 8 && p.head_dim <= 512; }},
    {"parameters have names, all different",
     [](const Program& p) {
       return distinct_identifiers(p.params, [](const ParamSpec& s) { return s.symbol.name; });
     }},
    {"a parameter's range is not empty and holds its default", defaults_in_range},
    {"values have names, all different",
     [](const Program& p) {
       return distinct_identifiers(p.values, [](const Value& v) { return v.name; });
     }},
    {"values are numbered in the order in which ops define them", results_count_up},
    {"an op reads only values that ops above it define", operands_defined_above},
    {"a program has exactly one attend", [](const Program& p) { return count<Attend>(p) == 1; }},
    {"each tensor is an input once", inputs_distinct},
};

template <class T>
struct OpRule {
  std::string_view words;
  bool (*holds)(const Program&, const Node&, const T&);
};

constexpr OpRule<Input> kInputRules[] = {
    {"inputs are q, k, v, list_indices and list_counts",
     [](const Program&, const Node&, const Input& input) {
       return !input_type(input.name, DType::kF32).shape.empty();
     }},
    {"an input defines one value, whose type follows from the input's name",
     [](const Program& p, const Node& node, const Input& input) {
       return node.results.size() == 1 &&
              value_of(p, node.results[0]).type == input_type(input.name, p.dtype);
     }},
};

constexpr OpRule<Attend> kAttendRules[] = {
    {"q, k and v are the inputs of these names",
     [](const Program& p, const Node&, const Attend& a) {
       return input_name(p, a.q) == "q" && input_name(p, a.k) == "k" && input_name(p, a.v) == "v";
     }},
    {"list_indices and list_counts come together, from the inputs of these names",
     [](const Program& p, const Node&, const Attend& a) {
       if (a.list_indices < 0 && a.list_counts < 0) return true;
       return input_name(p, a.list_indices) == "list_indices" &&
              input_name(p, a.list_counts) == "list_counts";
     }},
    {"attend defines o, of q's type, and with lse a second value [batch, heads, n_q] f32",
     [](const Program& p, const Node& node, const Attend& a) {
       using enum Dim;
       if (node.results.size() != (a.lse ? 2u : 1u)) return false;
       return value_of(p, node.results[0]).type == input_type("q", p.dtype) &&
              (!a.lse || value_of(p, node.results[1]).type ==
                             ValueType{Element::kF32, {kBatch, kHeads, kNQ}});
     }},
    {"mask yields bool, score f32",
     [](const Program&, const Node&, const Attend& a) {
       return yields(a.mask, ExprType::kBool) && yields(a.score, ExprType::kF32);
     }},
    {"a gate has a skip; skip and exempt yield bool",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || (!a.gate->skip.empty() && yields(a.gate->skip, ExprType::kBool) &&
                          yields(a.gate->exempt, ExprType::kBool));
     }},
    {"expressions know the program's parameters, in its order",
     [](const Program& p, const Node&, const Attend& a) {
       return reads_program_parameters(p, a.mask) && reads_program_parameters(p, a.score) &&
              (!a.gate || (reads_program_parameters(p, a.gate->skip) &&
                           reads_program_parameters(p, a.gate->exempt)));
     }},
    {"scale is a positive finite number",
     [](const Program&, const Node&, const Attend& a) {
       return std::isfinite(a.scale) && a.scale > 0;
     }},
    {"tile_q and tile_k are multiples of 16 up to 1024, or both still open",
     [](const Program&, const Node&, const Attend& a) {
       return (a.tile_q == 0 && a.tile_k == 0) ||
              (is_tile_size(a.tile_q) && is_tile_size(a.tile_k));
     }},
    {"a gate skips something: v_load, exp or pv",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || a.gate->skips_v_load || a.gate->skips_exp || a.gate->skips_pv;
     }},
    {"a gate that skips exp or v_load also skips pv: without P or V there is no product",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || a.gate->skips_pv || !(a.gate->skips_exp || a.gate->skips_v_load);
     }},
    {"a gate that skips v_load has scope tile: all warps of a block share one copy of V",
     [](const Program&, const Node&, const Attend& a) {
       return !a.gate || !a.gate->skips_v_load || a.gate->scope == GateScope::kTile;
     }},
};

void report(std::string_view where, std::string_view words, Diagnostics& diagnostics) {
  diagnostics.add({Code::kProgramRule,
                   Severity::kError,
                   std::string(where) + ": " + std::string(words),
                   "",
                   {},
                   {},
                   {}});
}

template <class T>
void check_node(const Program& program, const Node& node, const T& op,
                std::span<const OpRule<T>> rules, Diagnostics& diagnostics) {
  const std::string where =
      std::string(Fields<T>::name) +
      (node.results.empty() ? "" : " %" + value_of(program, node.results[0]).name);
  for (const OpRule<T>& rule : rules) {
    if (!rule.holds(program, node, op)) report(where, rule.words, diagnostics);
  }
}

}  // namespace

void verify_program(const Program& program, Diagnostics& diagnostics) {
  bool sound = true;
  for (const ProgramRule& rule : kStructure) {
    if (rule.holds(program)) continue;
    report("program @" + program.name, rule.words, diagnostics);
    sound = false;
  }
  if (!sound) return;
  for (const Node& node : program.nodes) {
    if (const auto* input = std::get_if<Input>(&node.op)) {
      check_node<Input>(program, node, *input, kInputRules, diagnostics);
    } else if (const auto* attend = std::get_if<Attend>(&node.op)) {
      check_node<Attend>(program, node, *attend, kAttendRules, diagnostics);
    }
  }
}

std::vector<std::string_view> verifier_rules() {
  std::vector<std::string_view> all;
  const auto add = [&all](const auto& rules) {
    for (const auto& rule : rules) all.push_back(rule.words);
  };
  add(kStructure);
  add(kInputRules);
  add(kAttendRules);
  return all;
}

}  // namespace lacuna
