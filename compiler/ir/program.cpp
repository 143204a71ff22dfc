// Equality and hash of programs.
#include "compiler/ir/program.hpp"

#include <cstdlib>

#include "compiler/expr/text/parse.hpp"

namespace lacuna {

bool reads(const Gate& gate, Variable variable) {
  return uses(gate.skip, variable) || uses(gate.exempt, variable);
}

namespace {

bool same_parameter(const ParamSpec& a, const ParamSpec& b) {
  return a.symbol == b.symbol && a.minimum == b.minimum && a.maximum == b.maximum &&
         a.has_default == b.has_default && (!a.has_default || a.default_value == b.default_value);
}

}  // namespace

bool operator==(const Program& a, const Program& b) {
  if (a.params.size() != b.params.size()) return false;
  for (std::size_t p = 0; p < a.params.size(); ++p) {
    if (!same_parameter(a.params[p], b.params[p])) return false;
  }
  return a.name == b.name && a.head_dim == b.head_dim && value_dim(a) == value_dim(b) &&
         a.dtype == b.dtype && a.batch == b.batch && a.kv == b.kv && a.values == b.values &&
         a.nodes == b.nodes;
}

std::uint64_t hash_program(const Program& program) {
  // FNV-1a over the canonical text: equal programs print alike.
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : print_program(program)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

void derive_classifiers(Op& op) {
  std::visit(
      []<class T>(T& fields) {
        if constexpr (requires { fields.classifier; })
          fields.classifier = classify_mask(fields.mask);
        if constexpr (requires { fields.reference_classifier; })
          fields.reference_classifier = classify_mask(fields.reference);
      },
      op);
}

Attend& attend_of(Program& program) {
  for (Node& node : program.nodes) {
    if (auto* attend = std::get_if<Attend>(&node.op)) return *attend;
  }
  std::abort();  // the verifier admits no program without one
}

const Estimate* estimate_of(const Program& program, const Select& select) {
  const int read = select.p >= 0 ? select.p : select.score;
  return read < 0 ? nullptr : std::get_if<Estimate>(&definition_of(program, read).op);
}

std::vector<PredictStep> predict_steps(const Program& program) {
  std::vector<PredictStep> steps;
  for (const Node& node : program.nodes) {
    const auto* select = std::get_if<Select>(&node.op);
    if (select == nullptr) continue;
    steps.push_back({select, estimate_of(program, *select)});
  }
  return steps;
}

PredictStep last_step(const Program& program) {
  const std::vector<PredictStep> steps = predict_steps(program);
  return steps.empty() ? PredictStep{} : steps.back();
}

const Node& definition_of(const Program& program, int value) {
  for (const Node& node : program.nodes) {
    for (const int id : node.results) {
      if (id == value) return node;
    }
  }
  std::abort();  // the verifier admits no value without a node
}

namespace {

const Means* means_of(const Program& program, bool of_queries) {
  for (const Node& node : program.nodes) {
    const auto* means = std::get_if<Means>(&node.op);
    if (means == nullptr || means->x < 0) continue;
    const std::vector<Dim>& rows = program.values[static_cast<std::size_t>(means->x)].type.shape;
    const bool is_query = rows.size() > 1 && rows[1] == Dim::kHeads;
    if (is_query == of_queries) return means;
  }
  return nullptr;
}

}  // namespace

const Means* key_means(const Program& program) { return means_of(program, false); }
bool makes_keys(const Program& program) {
  return key_means(program) != nullptr || find_op<Permute>(program) != nullptr;
}
const Means* query_means(const Program& program) { return means_of(program, true); }

const Attend& attend_of(const Program& program) { return attend_of(const_cast<Program&>(program)); }

}  // namespace lacuna
