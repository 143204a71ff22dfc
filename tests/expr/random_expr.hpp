// Random well-typed expressions and values for their parameters, from a seed. For property and
// differential tests of everything that consumes an Expr.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler/expr/evaluate.hpp"
#include "compiler/expr/expr_tables.hpp"
#include "compiler/expr/text/parse.hpp"

namespace lacuna::test {

/// A deterministic stream; distributions are our own, as those of <random> differ by library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int count) { return static_cast<int>(engine_() % static_cast<unsigned>(count)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  float unit() { return static_cast<float>(engine_() >> 40) * 0x1p-24f; }
  template <class List>
  const auto& pick(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

/// One parameter of every kind of shape, with values; views stay valid while this lives unmoved.
struct ParameterSet {
  std::vector<ParamSymbol> symbols;
  std::vector<std::vector<float>> f32;
  std::vector<std::vector<std::int32_t>> i32;
  std::vector<ParamView> views;
};

struct ProblemSize {
  int batch = 2, heads = 3, n_q = 48, n_k = 56;
};

/// `special`: f32 values include infinities, NaN and zeros.
inline ParameterSet random_parameters(Random& random, const ProblemSize& size, bool special) {
  using enum ParamAxis;
  ParameterSet set;
  set.symbols = {
      {"tau", ExprType::kF32, {}, false},
      {"slope", ExprType::kF32, {kHeads}, false},
      {"limit", ExprType::kI32, {}, false},
      {"window", ExprType::kI32, {kBatch, kHeads}, false},
      {"start", ExprType::kI32, {kNQ}, true},
      {"document", ExprType::kI32, {kHeads, kNK}, true},
      {"group", ExprType::kI32, {kNQ}, false},
      {"level", ExprType::kF32, {kNK}, true},
      {"threshold", ExprType::kF32, {kHeads, kQTiles}, false},
      {"bucket", ExprType::kF32, {kHeads, {kFixed, 7}}, false},
      {"pairs", ExprType::kI32, {kBatch, kHeads, kNQ, kNK}, false},
  };
  const auto extent_of = [&](const ParamDim& dim) {
    switch (dim.axis) {
      case kBatch:
        return size.batch;
      case kHeads:
        return size.heads;
      case kNQ:
        return size.n_q;
      case kNK:
        return size.n_k;
      case kFixed:
        return static_cast<int>(dim.extent);
      default:
        return 4;
    }
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> specials = {infinity, -infinity, std::nanf(""), 0.0f, -0.0f, 1e-42f};
  for (const ParamSymbol& symbol : set.symbols) {
    ParamView view;
    std::size_t count = 1;
    for (std::size_t d = symbol.shape.size(); d-- > 0;) {
      view.extent[d] = extent_of(symbol.shape[d]);
      view.stride[d] = static_cast<std::int64_t>(count);
      count *= static_cast<std::size_t>(view.extent[d]);
    }
    std::vector<float>& reals = set.f32.emplace_back(count);
    std::vector<std::int32_t>& integers = set.i32.emplace_back(count);
    for (float& x : reals) x = random.unit() * 40 - 10;
    for (std::int32_t& x : integers) x = random.between(-4, 60);
    if (special && !symbol.monotone) {
      for (float& x : reals) x = random.chance(30) ? random.pick(specials) : x;
    }
    if (symbol.monotone) {  // along the last dimension
      const auto row = static_cast<std::size_t>(view.extent[symbol.shape.size() - 1]);
      for (std::size_t begin = 0; begin < count; begin += row) {
        const auto at = static_cast<std::ptrdiff_t>(begin), end = at + std::ptrdiff_t(row);
        std::sort(reals.begin() + at, reals.begin() + end);
        std::sort(integers.begin() + at, integers.begin() + end);
      }
    }
    view.value.i32 = 0;
    view.data = symbol.type == ExprType::kF32 ? static_cast<const void*>(reals.data())
                                              : static_cast<const void*>(integers.data());
    if (symbol.shape.empty()) {  // scalars travel by value
      if (symbol.type == ExprType::kF32) view.value.f32 = reals[0];
      if (symbol.type == ExprType::kI32) view.value.i32 = integers[0];
      view.data = nullptr;
    }
    set.views.push_back(view);
  }
  return set;
}

/// Writes expressions that parse at a site without an error.
class RandomExpr {
 public:
  RandomExpr(Random& random, Site site, const std::vector<ParamSymbol>& parameters)
      : random_(random), site_(site), parameters_(parameters) {}

  std::string text(int depth) { return text(info(site_).yields.value_or(ExprType::kF32), depth); }

  std::string text(ExprType type, int depth) {
    if (type == ExprType::kBool) return boolean(depth);
    if (depth <= 0) return leaf(type);
    return type == ExprType::kI32 ? integer(depth) : real(depth);
  }

 private:
  std::string operand(ExprType type, int depth) { return text(type, depth - 1 - random_.below(2)); }

  std::string infix(const char* sign, ExprType type, int depth) {
    return "(" + operand(type, depth) + " " + sign + " " + operand(type, depth) + ")";
  }

  std::string call(const char* name, ExprType type, int arity, int depth) {
    std::string out = std::string(name) + "(";
    for (int n = 0; n < arity; ++n) out += (n > 0 ? ", " : "") + operand(type, depth);
    return out + ")";
  }

  std::string numeric(ExprType type, int depth) {
    switch (random_.below(10)) {
      case 0:
        return infix("*", type, depth);
      case 1:
        return infix("+", type, depth);
      case 2:
      case 3:
        return infix("-", type, depth);
      case 4:
        return "(-" + operand(type, depth) + ")";
      case 5:
        return call("min", type, 2, depth);
      case 6:
        return call("max", type, 2, depth);
      case 7:
        return call("abs", type, 1, depth);
      case 8:
        return call("clamp", type, 3, depth);
      default:
        return "select(" + operand(ExprType::kBool, depth) + ", " + operand(type, depth) + ", " +
               operand(type, depth) + ")";
    }
  }

  std::string integer(int depth) {
    static const std::vector<const char*> kBits = {"&", "^", "|", "<<", ">>"};
    switch (random_.below(9)) {
      case 6:
        return infix(random_.pick(kBits), ExprType::kI32, depth);
      case 7:
        return "(" + operand(ExprType::kI32, depth) + " " + random_.pick(kBits) + " " +
               std::to_string(random_.below(34)) + ")";
      case 8:
        return random_.chance(50) ? call("hash", ExprType::kI32, 2, depth)
                                  : call("int", ExprType::kF32, 1, depth);
      case 0:
        return infix("//", ExprType::kI32, depth);
      case 1:
        return infix("%", ExprType::kI32, depth);
      case 2:
        return "(" + operand(ExprType::kI32, depth) + " % " + positive() + ")";
      case 3:
        return "(" + operand(ExprType::kI32, depth) + " // " + positive() + ")";
      case 4:
        return random_.chance(30) ? call("bit_length", ExprType::kI32, 1, depth)
                                  : leaf(ExprType::kI32);
      default:
        return numeric(ExprType::kI32, depth);
    }
  }

  std::string real(int depth) {
    static const std::vector<const char*> kFunctions = {"exp",  "exp2", "log",   "log2",
                                                        "sqrt", "tanh", "floor", "ceil"};
    switch (random_.below(6)) {
      case 0:
        return call(random_.pick(kFunctions), ExprType::kF32, 1, depth);
      case 1:
        return infix("/", random_.chance(50) ? ExprType::kF32 : ExprType::kI32, depth);
      case 2:
        return "(" + operand(ExprType::kI32, depth) + " * 1.0)";
      default:
        return numeric(ExprType::kF32, depth);
    }
  }

  std::string boolean(int depth) {
    static const std::vector<const char*> kSigns = {"<", "<=", ">", ">=", "==", "!="};
    if (depth <= 0) return random_.chance(90) ? boolean(1) : random_.chance(50) ? "true" : "false";
    switch (random_.below(8)) {
      case 0:
        return infix("and", ExprType::kBool, depth);
      case 1:
        return infix("or", ExprType::kBool, depth);
      case 2:
        return "(not " + operand(ExprType::kBool, depth) + ")";
      case 3:
        return infix(random_.pick(kSigns), ExprType::kF32, depth);
      default:
        return infix(random_.pick(kSigns), ExprType::kI32, depth);
    }
  }

  std::string positive() {
    return std::to_string(1 << random_.below(6)) + (random_.chance(30) ? "7" : "");
  }

  std::string literal(ExprType type) {
    static const std::vector<const char*> kReals = {"0.5", "2.0", "-1.25", "10.0", "1e-3",
                                                    "0.0", "inf", "3.7",   "-inf", "1e30"};
    static const std::vector<const char*> kIntegers = {
        "0",  "1",   "-1",  "2",          "7",          "16",
        "64", "-33", "100", "1103515245", "2147483647", "-2147483648"};
    return type == ExprType::kF32 ? random_.pick(kReals) : random_.pick(kIntegers);
  }

  std::string leaf(ExprType type) {
    if (random_.chance(25)) return literal(type);
    if (random_.chance(30)) {
      if (const std::string name = parameter(type); !name.empty()) return name;
    }
    std::vector<std::string> names;
    for (const VariableInfo& row : all_variables()) {
      if (row.type == type && offers(site_, row.variable)) names.emplace_back(row.name);
    }
    return names.empty() ? literal(type) : random_.pick(names);
  }

  std::string index(ParamAxis dim) {
    if (dim == ParamAxis::kFixed) return text(ExprType::kI32, 1);
    const bool has_tokens = offers(site_, Variable::kQ);
    const bool is_query = dim == ParamAxis::kNQ || dim == ParamAxis::kQTiles;
    const bool has_keys = offers(site_, Variable::kK);  // a sink has a query alone
    std::string token = is_query || (has_tokens && !has_keys) ? "q" : "k";
    if (!has_tokens) token += "0";
    if (dim == ParamAxis::kQTiles || dim == ParamAxis::kKTiles) token += " // 16";
    return random_.chance(70) ? token : token + " + " + literal(ExprType::kI32);
  }

  std::string parameter(ExprType type) {
    if (parameters_.empty() || site_ == Site::kLaunch) return "";
    const ParamSymbol& symbol = random_.pick(parameters_);
    if (symbol.type != type) return "";
    std::string indices;
    for (const ParamDim& dim : symbol.shape) {
      const auto implied = info(dim.axis).index;
      const bool supplied = implied && offers(site_, *implied);
      if (indices.empty() && supplied) continue;
      if (!indices.empty()) indices += ", ";
      indices += supplied ? std::string(info(*implied).name) : index(dim.axis);
    }
    return symbol.name + (indices.empty() ? "" : "[" + indices + "]");
  }

  Random& random_;
  Site site_;
  const std::vector<ParamSymbol>& parameters_;
};

}  // namespace lacuna::test
