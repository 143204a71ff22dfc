// What a kernel says of its launches: enough to make one without reading the spec.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cache/key.hpp"
#include "compiler/spec/spec.hpp"
#include "lacuna/lacuna.h"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

class KernelSignature : public testing::Test {
 protected:
  KernelSignature() {
    lacuna_engine_options options{};
    options.struct_size = sizeof(options);
    options.device = "cpu";
    EXPECT_EQ(lacuna_engine_create(&options, &engine_), LACUNA_OK) << lacuna_last_error();
  }
  ~KernelSignature() override { lacuna_engine_destroy(engine_); }

  nlohmann::json of(const std::string& spec, lacuna_batch batch = LACUNA_BATCH_UNIFORM) {
    lacuna_compile_options options{};
    options.struct_size = sizeof(options);
    options.head_dim = 64;
    options.batch = batch;
    lacuna_kernel* kernel = nullptr;
    EXPECT_EQ(lacuna_compile(engine_, spec.data(), spec.size(), &options, &kernel), LACUNA_OK)
        << lacuna_last_error();
    const auto signature = nlohmann::json::parse(lacuna_kernel_signature_json(kernel));
    lacuna_kernel_destroy(kernel);
    return signature;
  }

  static std::set<std::string> names(const nlohmann::json& signature, bool required) {
    std::set<std::string> result;
    for (const auto& argument : signature["arguments"])
      if (argument["required"] == required) result.insert(argument["name"].get<std::string>());
    return result;
  }

  const ScopedVariable interpreted_{"LACUNA_HOST_PLUGIN", "off"};
  lacuna_engine* engine_ = nullptr;
};

using Names = std::set<std::string>;

TEST_F(KernelSignature, NamesEveryTensorWithDtypeAndShape) {
  const auto dense = of(R"({"version": 1, "name": "dense"})");
  EXPECT_EQ(dense["spec"], "dense");
  EXPECT_EQ(dense["head_dim"], 64);
  EXPECT_EQ(dense["dtype"], "bf16");
  EXPECT_EQ(dense["batch"], "uniform");
  EXPECT_EQ(names(dense, true), (Names{"q", "k", "v", "o"}));
  EXPECT_EQ(names(dense, false), (Names{"lse", "counts", "tile_mask"}));
  const nlohmann::json k = {{"name", "k"},
                            {"dtype", "bf16"},
                            {"shape", {"batch", "heads_kv", "n_k", "d"}},
                            {"output", false},
                            {"required", true}};
  EXPECT_EQ(dense["arguments"][1], k);
  EXPECT_EQ(dense["arguments"][4]["dtype"], "f32");
  EXPECT_EQ(dense["arguments"][4]["output"], true);
}

TEST_F(KernelSignature, HasWhatTheSpecAsksForAndNothingElse) {
  const auto external = of(R"({"version": 1, "name": "listed", "attention": {"lse": false},
                               "mask": "external"})");
  EXPECT_EQ(names(external, true), (Names{"q", "k", "v", "o", "list_indices", "list_counts"}));
  EXPECT_EQ(names(external, false), (Names{"counts", "tile_mask"}));
  const auto pages = of(R"({"version": 1, "name": "dense"})", LACUNA_BATCH_PAGES);
  EXPECT_EQ(pages["batch"], "pages");
  EXPECT_EQ(names(pages, true),
            (Names{"q", "k", "v", "o", "sequences.q_begin", "sequences.n_k", "sequences.pages"}));
}

TEST_F(KernelSignature, HasRangeAndDefaultOfEachParameter) {
  const auto signature = of(R"({"version": 1, "name": "scaled",
    "attention": {"score": "s * c[h] + shift"},
    "params": {"c": {"shape": "[heads]", "range": [0, 2], "default": 0.5, "doc": "a factor"},
               "shift": {}}})");
  const auto& parameters = signature["parameters"];
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters[0]["name"], "c");
  EXPECT_EQ(parameters[0]["shape"], nlohmann::json({"heads"}));
  EXPECT_EQ(parameters[0]["dtype"], "f32");
  EXPECT_EQ(parameters[0]["minimum"], 0.0);
  EXPECT_EQ(parameters[0]["maximum"], 2.0);
  EXPECT_EQ(parameters[0]["default"], 0.5);
  EXPECT_FALSE(parameters[1].contains("default")) << "has to be passed";
}

TEST_F(KernelSignature, TheDigestIsThatOfTheMeaningOfTheText) {
  const std::string plain = R"({"version": 1, "name": "dense"})";
  const auto digest = of(plain)["digest"];
  EXPECT_EQ(of("{ \"name\": \"dense\",\n  \"version\": 1 }\n")["digest"], digest);
  EXPECT_NE(of(R"({"version": 1, "name": "dense", "attention": {"mask": "k <= q"}})")["digest"],
            digest);
  Diagnostics errors;
  const SpecDocument document = read_spec({"dense.json", plain}, errors);
  EXPECT_EQ(digest, cache::sha256_hex(print_spec(document.spec)));
}

}  // namespace
}  // namespace lacuna
