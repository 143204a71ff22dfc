#include "compiler/lower/config.hpp"

#include <charconv>

namespace lacuna {

void append_kernels(Kernels& all, Kernels some) {
  for (Kernel& kernel : some) all.push_back(std::move(kernel));
}

std::string declaration(const ConfigField& field) {
  if (field.type == "using") return "using " + field.name + " = " + field.value;
  return "static constexpr " + field.type + " " + field.name + " = " + field.value;
}

ConfigField integer(const char* name, int value, const char* pointer, Origin origin,
                    std::string reason) {
  return {"int", name, std::to_string(value), pointer, origin, std::move(reason)};
}

ConfigField boolean(const char* name, bool value, const char* pointer, Origin origin,
                    std::string reason) {
  return {"bool", name, value ? "true" : "false", pointer, origin, std::move(reason)};
}

ConfigField number(const char* name, float value, const char* pointer, Origin origin,
                   std::string reason) {
  char digits[32];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return {"float", name, text + "f", pointer, origin, std::move(reason)};
}

ConfigField enumerator(const char* type, const char* name, const char* value, const char* pointer,
                       Origin origin, std::string reason) {
  const std::string full = std::string("lacuna::") + type;
  return {full, name, full + "::" + value, pointer, origin, std::move(reason)};
}

ConfigField integer(const char* name, const Chosen<int>& chosen, const char* pointer) {
  return integer(name, chosen.value, pointer, chosen.origin, chosen.reason);
}

void add_batch_fields(const Program& program, std::vector<ConfigField>& fields) {
  if (find_op<Permute>(program) != nullptr)
    fields.push_back(boolean("kPermutes", true, "/permute"));
  if (program.batch == BatchLayout::kUniform) return;
  const bool has_pages = program.batch == BatchLayout::kPages;
  fields.push_back(enumerator("BatchLayout", "kBatch", has_pages ? "kPages" : "kSequences",
                              kNoField, Origin::kCaller));
  if (find_op<MergeBranch>(program) != nullptr)
    fields.push_back(boolean("kIsBranch", true, kNoField, Origin::kDerived,
                             "attend's results lie in the workspace"));
  const Means* keys = key_means(program);
  if (keys != nullptr && keys->tokens > 1)
    fields.push_back(integer("kMeanTokens", keys->tokens, "/means"));
  if (keys != nullptr && keys->tokens == 1)
    fields.push_back(boolean("kWidensKeys", true, kNoField, Origin::kDerived,
                             "16-bit keys and values, made of codes, lie in the workspace"));
  if (const Means* means = query_means(program))
    fields.push_back(integer("kQueryMeanTokens", means->tokens, "/query_means"));
  if (find_op<Compact>(program) != nullptr)
    fields.push_back(boolean("kMakesLists", true, "/predictor", Origin::kDerived,
                             "the lists lie in the workspace"));
}

void add_code_field(std::vector<ConfigField>& fields) {
  fields.push_back(boolean("kHasE4m3Rows", true, kNoField, Origin::kCaller));
}

ConfigField tensor_field(Tensor tensor) {
  return integer("kTensor", static_cast<int>(tensor), kNoField, Origin::kDerived,
                 std::string(name_of(tensor)));
}

ConfigField predictor_tile_q(int tile) { return integer("kTileQ", tile, "/predictor/tile/q"); }
ConfigField predictor_tile_k(int tile) { return integer("kTileK", tile, "/predictor/tile/k"); }
ConfigField has_mask(const Expr& mask) {
  return boolean("kHasMask", !mask.empty(), "/attention/mask");
}
ConfigField split_kv_field(const AttendPlan& chosen) {
  return integer("kSplitKv", chosen.split_kv, "/tile/split_kv");
}
void add_weight_kind(const Attend& attend, std::vector<ConfigField>& fields) {
  if (has_denominator(attend.normalise)) return;
  const char* kind = attend.normalise == Weights::kSigmoid ? "kSigmoid" : "kScore";
  fields.push_back(enumerator("WeightKind", "kWeightKind", kind, "/attention/normalise"));
}
void add_row_end_fields(const Attend& attend, std::vector<ConfigField>& fields) {
  if (!attend.sink.empty()) fields.push_back(boolean("kHasSink", true, "/attention/sink"));
  if (attend.lse_base == LseBase::k2)
    fields.push_back(boolean("kLseIsBase2", true, "/attention/lse_base"));
}

const char* group_name(QuantGroup group) {
  switch (group) {
    case QuantGroup::kBlock:
      return "kBlock";
    case QuantGroup::kWarp:
      return "kWarp";
    case QuantGroup::kThread:
      return "kThread";
  }
  return "";
}

const char* normalise_name(Normalise normalise) {
  switch (normalise) {
    case Normalise::kNone:
      return "kNone";
    case Normalise::kSoftmax:
      return "kSoftmax";
    case Normalise::kLse:
      return "kLse";
    case Normalise::kPreviousLse:
      return "kPreviousLse";
    case Normalise::kRowMax:
      return "kRowMax";
  }
  return "";
}

const char* scope_name(const std::optional<Gate>& gate) {
  if (!gate) return "kNone";
  switch (gate->scope) {
    case GateScope::kWarp:
      return "kWarp";
    case GateScope::kTile:
      return "kTile";
    case GateScope::kWarpgroup:
      return "kWarpgroup";
  }
  return "";
}

}  // namespace lacuna
