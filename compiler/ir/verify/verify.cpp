// The verifier: a list of rules in words, each with its predicate. The words are the diagnostic.
//
// Rules come in levels; a level is only looked at when the ones before it hold, so that predicates
// may rely on them (ids are in range, there is one attend, ...).
#include <cctype>
#include <span>
#include <string_view>

#include "compiler/ir/fields.hpp"
#include "compiler/ir/head_dims.hpp"
#include "compiler/ir/verify/verify_rules.hpp"

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
    for_each_operand(node.op, [&](int id, bool required) {
      holds = holds && id < defined && id >= (required ? 0 : -1);
    });
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

bool inputs_distinct(const Program& program) {
  std::vector<std::string_view> names;
  for (const Node& node : program.nodes) {
    if (const auto* input = std::get_if<Input>(&node.op)) names.push_back(input->name);
  }
  return distinct_identifiers(names, [](std::string_view name) { return name; });
}

/// If one tensor is permuted, all are; only `permute` reads them in the caller's order, and results
/// return to it.
bool one_token_order(const Program& program) {
  if (count<Permute>(program) == 0) return count<Unpermute>(program) == 0;
  const auto is_caller_tensor = [&](int id) {
    return defined_by<Input>(program, id) != nullptr && !tensor_name(program, id).empty();
  };
  const Attend& attend = attend_of(program);
  const int results = count<MergeBranch>(program) > 0 ? 0 : attend.lse ? 2 : 1;
  bool holds = count<Permute>(program) == 3 && count<Unpermute>(program) == results;
  for (const Node& node : program.nodes) {
    if (std::holds_alternative<Permute>(node.op)) continue;
    for_each_operand(node.op, [&](int id, bool) { holds = holds && !is_caller_tensor(id); });
  }
  return holds;
}

struct ProgramRule {
  std::string_view words;
  bool (*holds)(const Program&);
};

constexpr ProgramRule kStructure[] = {
    {"a program's name consists of letters, digits, '_', '-' and '.'",
     [](const Program& p) { return is_program_name(p.name); }},
    {"head_dim is a multiple of 8 between 8 and 576",
     [](const Program& p) { return is_head_dim(p.head_dim); }},
    {"head_dim_v, where it is not head_dim, is a multiple of 8 between 8 and 576, too",
     [](const Program& p) { return p.head_dim_v == 0 || is_head_dim(p.head_dim_v); }},
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

constexpr ProgramRule kOrder[] = {
    {"with permute, all of q, k and v are permuted, nothing else reads them, and every result of "
     "attend is unpermuted, but those of a branch",
     one_token_order},
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
void check_node(const Program& program, const Node& node, const T& op, Diagnostics& diagnostics) {
  const std::string where =
      std::string(Fields<T>::name) +
      (node.results.empty()
           ? ""
           : " %" + program.values[static_cast<std::size_t>(node.results[0])].name);
  for (const OpRule<T>& rule : rules_of(&op)) {
    if (!rule.holds(program, node, op)) report(where, rule.words, diagnostics);
  }
}

bool check_program(const Program& program, std::span<const ProgramRule> rules,
                   Diagnostics& diagnostics) {
  bool sound = true;
  for (const ProgramRule& rule : rules) {
    if (rule.holds(program)) continue;
    report("program @" + program.name, rule.words, diagnostics);
    sound = false;
  }
  return sound;
}

template <std::size_t... I>
void add_op_rules(std::vector<std::string_view>& all, std::index_sequence<I...>) {
  const auto add = [&all](const auto& rules) {
    for (const auto& rule : rules) all.push_back(rule.words);
  };
  (add(rules_of(static_cast<const std::variant_alternative_t<I, Op>*>(nullptr))), ...);
}

}  // namespace

void verify_program(const Program& program, Diagnostics& diagnostics) {
  if (!check_program(program, kStructure, diagnostics)) return;
  for (const Node& node : program.nodes) {
    std::visit([&](const auto& op) { check_node(program, node, op, diagnostics); }, node.op);
  }
  check_program(program, kOrder, diagnostics);
}

std::vector<std::string_view> verifier_rules() {
  std::vector<std::string_view> all;
  for (const ProgramRule& rule : kStructure) all.push_back(rule.words);
  for (const ProgramRule& rule : kOrder) all.push_back(rule.words);
  add_op_rules(all, std::make_index_sequence<std::variant_size_v<Op>>{});
  return all;
}

}  // namespace lacuna
