// The CUDA text of expressions: as a person would write it, and accepted by NVRTC where there is
// one.
#include "compiler/expr/text/print_cuda.hpp"

#include <gtest/gtest.h>

#include "compiler/expr/bounds/interval.hpp"
#include "runtime/cuda/nvrtc.hpp"
#include "tests/expr/random_expr.hpp"

namespace lacuna {
namespace {

const CudaNames kNames = {
    [](Variable variable) { return std::string(info(variable).name); },
    [](const ParamSymbol& symbol) { return "args." + symbol.name; },
};

struct PrintedCuda {
  const char *text, *cuda;
  Site site = Site::kMask;
};

TEST(print_cuda, reads_as_a_person_would_write_it) {
  const std::vector<ParamSymbol> parameters = {
      {"tau", ExprType::kF32, {}, false},
      {"start", ExprType::kI32, {ParamAxis::kHeads, ParamAxis::kNQ}, true},
      {"chunk", ExprType::kI32, {}, false, 1},
  };
  for (const PrintedCuda& row : std::vector<PrintedCuda>{
           {"k <= q + n_k - n_q", "k <= q + n_k - n_q"},
           {"k < 128 or q - k < 4096 and h == 0", "k < 128 || q - k < 4096 && h == 0"},
           {"(k < 128 or q < 4) and h == 0", "(k < 128 || q < 4) && h == 0"},
           {"not (k < q or h == 0)", "!(k < q || h == 0)"},
           {"q // 64 == k // (h + 1)",
            "lacuna::floor_divide<64>(q) == lacuna::floor_divide(k, h + 1)"},
           {"(q - k) % 4 == 0", "lacuna::modulo<4>(q - k) == 0"},
           {"q % -4 == 0", "lacuna::modulo(q, -4) == 0"},
           {"k >= start[q + 1]", "k >= lacuna::at(args.start, h, q + 1)"},
           {"k >= q - q % chunk + 1", "k >= lacuna::round_down(q, lacuna::at(args.chunk)) + 1"},
           {"k >= q - k % chunk", "k >= q - lacuna::modulo(k, lacuna::at(args.chunk))"},
           {"k >= q - q % b", "k >= q - lacuna::modulo(q, b)"},
           {"q * tau < inf", "float(q) * lacuna::at(args.tau) < lacuna::kInfinity"},
           {"tau > -inf", "lacuna::at(args.tau) > -lacuna::kInfinity"},
           {"q > -2147483648 + k", "q > (-2147483647 - 1) + k"},
           {"q - (k - h) > -(b + 1)", "q - (k - h) > -(b + 1)"},
           {"q * 1103515245 + 12345 > 0",
            "lacuna::wrap_add(lacuna::wrap_multiply(q, 1103515245), 12345) > 0"},
           {"select(q < k, q, k) > 0", "(q < k ? q : k) > 0"},
           {"select(q < k, select(q < 1, 1, 2), select(k < 1, 3, 4)) > 0",
            "(q < k ? (q < 1 ? 1 : 2) : k < 1 ? 3 : 4) > 0"},
           {"(q & 3 | k ^ h) == 0 and q & 1 == 1",
            "(lacuna::modulo<4>(q) | k ^ h) == 0 && lacuna::modulo<2>(q) == 1"},
           {"q & 5 == q << h >> 1", "(q & 5) == lacuna::floor_divide<2>(lacuna::shift_left(q, h))"},
           {"hash(h, q // 64) >> n_h > int(tau)",
            "lacuna::shift_right(lacuna::hash(h, lacuna::floor_divide<64>(q)), n_h) > "
            "lacuna::to_i32(lacuna::at(args.tau))"},
           {"min(q, k) > bit_length(h)", "min(q, k) > lacuna::bit_length(h)"},
           {"50 * tanh(s / 50)", "50.0f * lacuna::tanh_approx(lacuna::divide_by(s, 50.0f))",
            Site::kScore},
           {"max(s / 64, 0.1) - abs(s)", "fmaxf(s / 64.0f, 0.1f) - fabsf(s)", Site::kScore},
           {"exp2(s) + log(s) - sqrt(floor(s))",
            "lacuna::exp2_approx(s) + lacuna::log_approx(s) - sqrtf(floorf(s))", Site::kScore},
           {"1e-30 * s", "1e-30f * s", Site::kScore},
           {"-(-s * 2)", "-(-s * 2.0f)", Site::kScore},
       }) {
    const ParsedExpr parsed = parse_expr(row.text, row.site, parameters);
    ASSERT_TRUE(parsed.ok()) << row.text;
    EXPECT_EQ(print_cuda(parsed.expr, kNames), row.cuda) << row.text;
  }
}

struct PrintedBody {
  const char *text, *body;
};

TEST(print_cuda, costly_parts_that_return_are_constants_of_the_body) {
  for (const PrintedBody& row : {
           PrintedBody{"s + log(q + 1)", "s + lacuna::log_approx(float(q + 1))"},
           {"log(q + 1) * s - log(q + 1)",
            "const float v0 = lacuna::log_approx(float(q + 1)); v0 * s - v0"},
           // Of parts of parts, those that stand in several places still.
           {"log(exp(s)) * log(exp(s)) + exp(s) * exp(s)",
            "const float v0 = lacuna::exp_approx(s); const float v1 = lacuna::log_approx(v0); "
            "v1 * v1 + v0 * v0"},
           {"sqrt(exp(s) + 1) * sqrt(exp(s) + 1)",
            "const float v0 = sqrtf(lacuna::exp_approx(s) + 1.0f); v0 * v0"},
           // Integers are left to NVRTC.
           {"s + abs(q - k) * abs(q - k)",
            "s + float(lacuna::wrap_multiply(abs(q - k), abs(q - k)))"},
           {"s + (hash(q, k) % 8 - hash(q, k))",
            "const int v0 = lacuna::hash(q, k); "
            "s + float(lacuna::wrap_subtract(lacuna::modulo<8>(v0), v0))"},
           // What a condition may leave out is not worked out before it.
           {"select(k < q, log(s) * log(s), s)",
            "k < q ? [&] { const float v0 = lacuna::log_approx(s); return v0 * v0; }() : s"},
           {"select(k < q, log(s) * log(s), s) + log(q) * log(q)",
            "const float v0 = lacuna::log_approx(float(q)); (k < q ? [&] { const float v1 = "
            "lacuna::log_approx(s); return v1 * v1; }() : s) + v0 * v0"},
           {"select(k < q and exp(s) * exp(s) > 2, s, select(k < 4, log(s) - 1 / log(s), 1))",
            "k < q && [&] { const float v0 = lacuna::exp_approx(s); return v0 * v0 > 2.0f; }() ? "
            "s : k < 4 ? [&] { const float v1 = lacuna::log_approx(s); return v1 - 1.0f / v1; }() "
            ": 1.0f"},
           {"select(log(s) < 1, log(s), s)",
            "const float v0 = lacuna::log_approx(s); v0 < 1.0f ? v0 : s"},
           {"select(k < q and log(s) < 1, log(s), s)",
            "k < q && lacuna::log_approx(s) < 1.0f ? lacuna::log_approx(s) : s"},
       }) {
    const ParsedExpr parsed = parse_expr(row.text, Site::kScore, {});
    ASSERT_TRUE(parsed.ok()) << row.text;
    const CudaBody body = print_cuda_body(parsed.expr, kNames, "v");
    std::string text;
    for (const std::string& local : body.locals) text += local + " ";
    EXPECT_EQ(text + body.value, row.body) << row.text;
  }
}

TEST(print_cuda, what_has_a_name_is_no_constant_of_the_body) {
  const Expr expr = parse_expr("log(s) * log(s) - exp(log(s))", Site::kScore, {}).expr;
  CudaNames names = kNames;
  names.known = [&](std::int32_t node) {
    return expr.nodes[static_cast<std::size_t>(node)].op == ExprOp::kLog ? "row.x" : "";
  };
  const CudaBody body = print_cuda_body(expr, names);
  EXPECT_TRUE(body.locals.empty());
  EXPECT_EQ(body.value, "row.x * row.x - lacuna::exp_approx(row.x)");
}

/// One function for each expression, its values stored so that nothing is dropped.
class SourceWriter {
 public:
  explicit SourceWriter(const std::vector<ParamSymbol>& parameters) {
    text_ = "#include \"args/expr.cuh\"\nstruct Args {\n";
    for (const ParamSymbol& symbol : parameters) {
      text_ += std::string("  lacuna::Param<") + (symbol.type == ExprType::kF32 ? "float" : "int") +
               "> " + symbol.name + ";\n";
    }
    text_ +=
        "};\nextern \"C\" __global__ void lacuna_test(const __grid_constant__ Args args, "
        "const int* ints, const float* floats, float* out) {\n";
    for (const VariableInfo& row : all_variables()) {
      const bool is_f32 = row.type == ExprType::kF32;
      text_ += std::string("  const ") + (is_f32 ? "float " : "int ") + std::string(row.name) +
               " = " + (is_f32 ? "floats[" : "ints[") +
               std::to_string(static_cast<int>(row.variable)) + "];\n";
    }
  }

  void add(const Expr& expr) {
    const CudaBody body = print_cuda_body(expr, kNames);
    text_ += "  {\n";
    for (const std::string& local : body.locals) text_ += "    " + local + "\n";
    text_ += "    out[" + std::to_string(count_++) + "] = float(" + body.value + ");\n  }\n";
  }

  CudaSource finish() {
    return {
        "", {{"test", "lacuna_test", text_ + "}\n"}}, {"--std=c++17", "--gpu-architecture=sm_80"}};
  }

 private:
  std::string text_;
  int count_ = 0;
};

TEST(print_cuda, random_expressions_compile) {
  Diagnostics diagnostics;
  const auto nvrtc = load_nvrtc(0, diagnostics);
  if (!nvrtc) GTEST_SKIP() << "no NVRTC here: " << diagnostics.items[0].message;
  test::Random random(3);
  const auto set = test::random_parameters(random, {}, false);
  SourceWriter writer(set.symbols);
  for (const SiteInfo& site : all_sites()) {
    const std::vector<ParamSymbol> none;
    const bool has_heads = offers(site.site, Variable::kH);
    const auto& parameters = has_heads ? set.symbols : none;
    for (int n = 0; n < 20; ++n) {
      const std::string text = test::RandomExpr(random, site.site, parameters).text(1 + n % 5);
      const ParsedExpr parsed = parse_expr(text, site.site, parameters);
      ASSERT_TRUE(parsed.ok()) << text;
      writer.add(parsed.expr);
      if (site.site != Site::kMask) continue;
      const TileClassifier classifier = classify_mask(parsed.expr);
      writer.add(classifier.must);
      writer.add(classifier.may);
    }
  }
  CudaSource source = writer.finish();
  source.options.emplace_back("-fdevice-syntax-only");  // code that is generated shows no more
  const Compilation result = compile_cuda(*nvrtc, source, "sm_80", {}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << result.log << source_text(source);
}

}  // namespace
}  // namespace lacuna
