#include "runtime/cpu/ops/run_ops.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/cpu/ops/ops.hpp"
#include "runtime/cpu/ops/select.hpp"

namespace lacuna {
namespace {

using namespace predict;

std::span<const ParamView> params_of(const Program& program, const HostArgs& args) {
  return {args.params, program.params.size()};
}

/// Ids of the values an op reads, less what a decision taken earlier makes superfluous.
struct OperandsOf {
  bool decided;

  std::vector<int> operator()(const Input&) const { return {}; }
  std::vector<int> operator()(const Permute& op) const { return {op.x, op.order}; }
  std::vector<int> operator()(const Unpermute& op) const { return {op.x, op.order}; }
  std::vector<int> operator()(const Means& op) const { return {op.x}; }
  std::vector<int> operator()(const MergeBranch& op) const { return {op.o, op.lse, op.order}; }
  std::vector<int> operator()(const Smooth& op) const { return {op.x}; }
  std::vector<int> operator()(const Summarise& op) const { return {op.x, op.mean}; }
  std::vector<int> operator()(const Similarity& op) const { return {op.x, op.mean}; }
  std::vector<int> operator()(const Quantise& op) const { return {op.x, op.mean}; }
  std::vector<int> operator()(const QuantiseValues& op) const { return {op.x}; }
  std::vector<int> operator()(const Project& op) const { return {op.x, op.mean, op.onto}; }
  std::vector<int> operator()(const Estimate& op) const {
    return {op.q,       op.k,       op.q_scale,      op.k_scale,   op.row_bias,  op.column_bias,
            op.exact_q, op.exact_k, op.previous_lse, op.similar_q, op.similar_k, op.within};
  }
  std::vector<int> operator()(const Select& op) const {
    if (decided) return {};
    return {op.p, op.score, op.similar_q, op.similar_k, op.within, op.joins};
  }
  std::vector<int> operator()(const Compact& op) const { return {op.bits}; }
  std::vector<int> operator()(const Attend& op) const {
    return {op.q,       op.k,        op.v,           op.columns,      op.q_scale,    op.k_scale,
            op.v_scale, op.row_bias, op.column_bias, op.list_indices, op.list_counts};
  }
};

/// Which nodes attend needs.
std::vector<bool> needed_nodes(const Program& program, bool decided) {
  std::vector<bool> needed(program.nodes.size()), values(program.values.size());
  for (std::size_t n = program.nodes.size(); n-- > 0;) {
    const Node& node = program.nodes[n];
    needed[n] = std::holds_alternative<Attend>(node.op);
    for (const int result : node.results) {
      needed[n] = needed[n] || values[static_cast<std::size_t>(result)];
    }
    if (!needed[n]) continue;
    for (const int operand : std::visit(OperandsOf{decided}, node.op)) {
      if (operand >= 0) values[static_cast<std::size_t>(operand)] = true;
    }
  }
  return needed;
}

int count_in(const Program& program, const HostArgs& args, std::string_view name) {
  const auto found = std::ranges::find(program.params, name,
                                       [](const ParamSpec& param) { return param.symbol.name; });
  return args.params[found - program.params.begin()].value.i32;
}

/// Of the caller's k and v; n_k of a branch over means counts these.
int key_tokens(const Program& program, const HostArgs& args) {
  return key_means(program) == nullptr ? args.n_k : count_in(program, args, kTokensParam);
}

/// Walks the nodes before attend; the array of each value that was computed.
class OpsBeforeAttend {
 public:
  OpsBeforeAttend(const Program& program, const HostArgs& caller, KeptBits kept)
      : program_(program), caller_(caller), kept_(kept), arrays_(program.values.size()) {}

  void run() {
    const std::vector<bool> needed = needed_nodes(program_, kept_.decided);
    for (std::size_t n = 0; n < program_.nodes.size(); ++n) {
      if (!needed[n]) continue;
      node_ = &program_.nodes[n];
      std::visit(*this, node_->op);
    }
  }

  Array* find(int value) { return value < 0 ? nullptr : &arrays_[static_cast<std::size_t>(value)]; }

  void operator()(const Input& op) { define(0, input(op.name)); }
  void operator()(const Permute& op) {
    define(0, permute(*find(op.x), order_of(program_, caller_), caller_.threads));
  }
  void operator()(const Smooth& op) { define(0, token_mean(*find(op.x), caller_.threads)); }
  void operator()(const Summarise& op) {
    if (op.bounds) return define(0, bound(*find(op.x), op.tile, caller_.threads));
    Array means = summarise(*find(op.x), find(op.mean), op.tile, caller_.threads);
    if (op.rounded) means = convert(means, element_of(program_.dtype), caller_.threads);
    define(0, std::move(means));
  }
  void operator()(const Similarity& op) {
    define(0, similarity(*find(op.x), find(op.mean), op.tile, op.form, caller_.threads));
  }
  void operator()(const Quantise& op) {
    define(quantise(*find(op.x), find(op.mean), op, is_query(op.x), caller_.threads));
  }
  void operator()(const QuantiseValues& op) {
    define(quantise_values(*find(op.x), op.range, caller_.threads));
  }
  void operator()(const Project& op) {
    define(0, project(*find(op.x), find(op.mean), *find(op.onto), caller_.n_h, caller_.threads));
  }
  void operator()(const Estimate&) {}  // runs within the selection, row by row
  void operator()(const Select& op) { define(0, select(op)); }
  void operator()(const Compact& op) {
    Lists lists = compact(*find(op.bits), op, caller_, params_of(program_, caller_));
    define(0, std::move(lists.indices));
    define(1, std::move(lists.counts));
  }
  void operator()(const Attend&) {}
  void operator()(const Unpermute&) {}  // run_ops_behind_attend
  void operator()(const Means& op) {
    define(0, token_means(*find(op.x), op.tokens, caller_.threads));
  }
  void operator()(const MergeBranch&) {}  // run_ops_behind_attend

 private:
  void define(std::size_t result, Array array) {
    arrays_[static_cast<std::size_t>(node_->results[result])] = std::move(array);
  }
  void define(Quantised quantised) {
    define(0, std::move(quantised.values));
    define(1, std::move(quantised.scales));
  }

  bool is_query(int value) const {
    const std::vector<Dim>& shape = program_.values[static_cast<std::size_t>(value)].type.shape;
    return shape.size() > 2 && shape[2] == Dim::kNQ;
  }

  Array input(std::string_view name) const;
  Array select(const Select& op);
  EstimateJob estimate_job(const Estimate& op, const Array* visible);

  const Program& program_;
  const HostArgs& caller_;
  KeptBits kept_;
  std::vector<Array> arrays_;
  Array visible_;  ///< of visible_tiles: steps of a predictor have the same tiles and mask
  const Node* node_ = nullptr;
};

Array OpsBeforeAttend::input(std::string_view name) const {
  const HostArgs& a = caller_;
  const Element element = element_of(program_.dtype);
  const int d = program_.head_dim;
  if (name == "q") return view_array(a.q, element, a.n_b, a.n_h, query_tokens(program_, a), d);
  const int n_k = key_tokens(program_, a);
  if (name == "k") return view_array(a.k, element, a.n_b, a.n_h_kv, n_k, d);
  if (name == "v") return view_array(a.v, element, a.n_b, a.n_h_kv, n_k, value_dim(program_));
  if (name == "previous_lse") {
    return view_array(a.previous_lse, Element::kF32, a.n_b, a.n_h, a.n_q);
  }
  return {};  // "order", "list_indices", "list_counts": read where the caller has them
}

EstimateJob OpsBeforeAttend::estimate_job(const Estimate& op, const Array* visible) {
  return {op,
          caller_,
          params_of(program_, caller_),
          find(op.q),
          find(op.k),
          find(op.q_scale),
          find(op.k_scale),
          find(op.row_bias),
          find(op.column_bias),
          find(op.exact_q),
          find(op.exact_k),
          find(op.previous_lse),
          find(op.similar_q),
          find(op.similar_k),
          find(op.within),
          visible,
          element_of(program_.dtype)};
}

Array OpsBeforeAttend::select(const Select& op) {
  if (op.pairs && !kept_.decided && visible_.tensor.data == nullptr)
    visible_ = visible_tiles(op, caller_, params_of(program_, caller_));
  const Array* const visible = visible_.tensor.data != nullptr ? &visible_ : nullptr;
  std::optional<EstimateJob> estimate;
  if (const Estimate* read = estimate_of(program_, op))
    estimate.emplace(estimate_job(*read, visible));
  const SelectJob job{op,
                      caller_,
                      params_of(program_, caller_),
                      estimate ? &*estimate : nullptr,
                      find(op.similar_q),
                      find(op.similar_k),
                      find(op.within),
                      find(op.joins),
                      visible};
  // What the caller keeps is the last step's.
  const bool is_last = &op == last_step(program_).select;
  Array bits = is_last && kept_.data ? view_contiguous(kept_.data, Element::kU32, caller_.n_b,
                                                       caller_.n_h, job.q_tiles(), job.words())
                                     : make_array(Element::kU32, caller_.n_b, caller_.n_h,
                                                  job.q_tiles(), job.words());
  if (!kept_.decided) select_tiles(job, bits);
  return bits;
}

/// Hands an array over to the launch.
HostTensor give(Array array, PreparedLaunch& prepared) {
  if (array.memory) prepared.memory.push_back(std::move(array.memory));
  return array.tensor;
}

/// Where attend reads q, k and v: numbers of the Program's type.
void hand_over_tensor(const Program& program, Array& array, HostTensor& tensor,
                      PreparedLaunch& prepared) {
  if (array.element == Element::kI8 || array.element == Element::kE4M3) {
    array = convert(array, element_of(program.dtype), prepared.args.threads);
  }
  tensor = give(std::move(array), prepared);
}

void hand_over_columns(const Program& program, const Attend& attend, Array& bits,
                       PreparedLaunch& prepared) {
  const int keep_q = std::get<Select>(definition_of(program, attend.columns).op).tile_q;
  if (keep_q != attend.tile_q) {
    bits = spread_rows(bits, keep_q, attend.tile_q, prepared.args.n_q);
  }
  prepared.args.columns = give(std::move(bits), prepared);
}

/// Attend writes o and lse in its own order, or those of one branch; run_ops_behind_attend hands
/// them to the caller.
void hand_over_results(const Program& program, PreparedLaunch& prepared) {
  HostArgs& args = prepared.args;
  args.o =
      give(make_array(element_of(program.dtype), args.n_b, args.n_h, args.n_q, value_dim(program)),
           prepared);
  const auto* merge = find_op<MergeBranch>(program);
  if (merge != nullptr ? merge->lse < 0 : args.lse.data == nullptr) return;
  args.lse = give(make_array(Element::kF32, args.n_b, args.n_h, args.n_q), prepared);
}

}  // namespace

int query_tokens(const Program& program, const HostArgs& args) {
  return query_means(program) == nullptr ? args.n_q : count_in(program, args, kQueriesParam);
}

std::span<const std::int32_t> order_of(const Program& program, const HostArgs& args) {
  return {static_cast<const std::int32_t*>(args.order.data),
          static_cast<std::size_t>(query_tokens(program, args))};
}

bool has_other_ops(const Program& program) {
  for (const Node& node : program.nodes) {
    if (!std::holds_alternative<Input>(node.op) && !std::holds_alternative<Attend>(node.op)) {
      return true;
    }
  }
  return false;
}

std::size_t kept_words(const Program& program, const HostArgs& args) {
  const Select* select = last_step(program).select;
  if (!select) return 0;
  return static_cast<std::size_t>(args.n_b) * static_cast<std::size_t>(args.n_h) *
         static_cast<std::size_t>(ceil_div(args.n_q, select->tile_q)) *
         static_cast<std::size_t>(ceil_div(ceil_div(args.n_k, select->tile_k), 32));
}

void run_ops_before_attend(const Program& program, const HostArgs& caller, KeptBits kept,
                           PreparedLaunch& prepared) {
  const Attend& attend = attend_of(program);
  OpsBeforeAttend ops(program, caller, kept);
  ops.run();
  HostArgs& args = prepared.args = caller;
  hand_over_tensor(program, *ops.find(attend.q), args.q, prepared);
  hand_over_tensor(program, *ops.find(attend.k), args.k, prepared);
  hand_over_tensor(program, *ops.find(attend.v), args.v, prepared);
  const std::pair<int, HostTensor HostArgs::*> others[] = {
      {attend.q_scale, &HostArgs::q_scale},         {attend.k_scale, &HostArgs::k_scale},
      {attend.v_scale, &HostArgs::v_scale},         {attend.row_bias, &HostArgs::row_bias},
      {attend.column_bias, &HostArgs::column_bias}, {attend.list_indices, &HostArgs::list_indices},
      {attend.list_counts, &HostArgs::list_counts}};
  for (const auto& [value, member] : others) {
    // Lists of the caller have no array: they are in the arguments already.
    Array* const array = ops.find(value);
    if (array && array->tensor.data) args.*member = give(std::move(*array), prepared);
  }
  if (attend.columns >= 0) hand_over_columns(program, attend, *ops.find(attend.columns), prepared);
  if (find_op<Unpermute>(program) || find_op<MergeBranch>(program))
    hand_over_results(program, prepared);
}

void run_ops_behind_attend(const Program& program, const HostArgs& caller,
                           const PreparedLaunch& prepared, const BranchSums& sums) {
  if (const auto* merge = find_op<MergeBranch>(program)) {
    merge_branch(*merge, {program, caller, prepared.args, sums});
    return;
  }
  if (!find_op<Unpermute>(program)) return;
  const HostArgs& made = prepared.args;
  const auto copy = [&](const HostTensor& from, const HostTensor& to, Element element, int width) {
    unpermute(view_array(from, element, made.n_b, made.n_h, made.n_q, width),
              order_of(program, caller),
              view_array(to, element, made.n_b, made.n_h, made.n_q, width), caller.threads);
  };
  copy(made.o, caller.o, element_of(program.dtype), value_dim(program));
  if (caller.lse.data) copy(made.lse, caller.lse, Element::kF32, 1);
}

}  // namespace lacuna
