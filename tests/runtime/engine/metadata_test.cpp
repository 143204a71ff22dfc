// Metadata of a store entry: read as it was written, and nothing where anything is missing.
#include "runtime/engine/build/metadata.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lacuna {
namespace {

KernelMetadata relieved_metadata() {
  return {.spec = "bsfa",
          .target = "sm_90a",
          .head_dim = 128,
          .dtype = "bf16",
          .batch = "pages",
          .nvrtc = "13.0",
          .lacuna = "0.1",
          .compile_ms = 1.5,
          .kernels = {{"a", 1, 2, 3, 4}, {"b", 5, 6, 7, 8}},
          .relief = 2,
          .relieved_source_sha256 = "abc",
          .complaints = {"first", "second"}};
}

TEST(Metadata, IsReadAsItWasWritten) {
  for (const bool is_relieved : {true, false}) {
    KernelMetadata written = relieved_metadata();
    if (!is_relieved)
      written.relief = 0, written.relieved_source_sha256 = "", written.complaints = {};
    const auto read = read_metadata(write_metadata(written));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->spec, written.spec);
    EXPECT_EQ(read->target, written.target);
    EXPECT_EQ(read->head_dim, written.head_dim);
    EXPECT_EQ(read->dtype, written.dtype);
    EXPECT_EQ(read->batch, written.batch);
    EXPECT_EQ(read->nvrtc, written.nvrtc);
    EXPECT_EQ(read->lacuna, written.lacuna);
    EXPECT_EQ(read->compile_ms, written.compile_ms);
    ASSERT_EQ(read->kernels.size(), written.kernels.size());
    for (std::size_t n = 0; n < written.kernels.size(); ++n) {
      EXPECT_EQ(read->kernels[n].name, written.kernels[n].name);
      EXPECT_EQ(read->kernels[n].registers, written.kernels[n].registers);
      EXPECT_EQ(read->kernels[n].spill_bytes, written.kernels[n].spill_bytes);
      EXPECT_EQ(read->kernels[n].stack_bytes, written.kernels[n].stack_bytes);
      EXPECT_EQ(read->kernels[n].smem_bytes, written.kernels[n].smem_bytes);
    }
    EXPECT_EQ(read->relief, written.relief);
    EXPECT_EQ(read->relieved_source_sha256, written.relieved_source_sha256);
    EXPECT_EQ(read->complaints, written.complaints);
  }
}

TEST(Metadata, WhereAnythingIsMissingThereIsNone) {
  const auto whole = nlohmann::json::parse(write_metadata(relieved_metadata()));
  for (const auto& [name, value] : whole.items()) {
    nlohmann::json part = whole;
    part.erase(name);
    EXPECT_EQ(read_metadata(part.dump()).has_value(), name == "relief") << name;
    part[name] = nlohmann::json::array({1});
    EXPECT_FALSE(read_metadata(part.dump()).has_value()) << name;
  }
  for (const char* text : {"", "{", "[]", "null", "{}"})
    EXPECT_FALSE(read_metadata(text).has_value()) << text;
}

}  // namespace
}  // namespace lacuna
