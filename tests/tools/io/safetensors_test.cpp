// safetensors: round trips, the shipped files, exact errors, and no crash on any bytes.
#include "tools/io/safetensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/tools/command.hpp"
#include "tests/tools/mutation.hpp"

namespace lacuna::tools {
namespace {

/// A file with this header text and data.
std::string with_json_header(const std::string& header, const std::string& data = "") {
  const std::uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + data;
}

std::string safetensors_errors(const std::string& bytes) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_safetensors(bytes, diagnostics).has_value());
  std::string text;
  for (const Diagnostic& d : diagnostics.items) text += code_name(d.code) + " " + d.message + "\n";
  return text;
}

Safetensors small_file() {
  Safetensors file;
  file.metadata = {{"source", "a test"}, {"note", "with \"quotes\" and \u00e9"}};
  const std::vector<float> values = {0, 1.5f, -2, 1e-3f, 65504, 7};
  for (const ArrayType type : {ArrayType::kF64, ArrayType::kF32, ArrayType::kF16, ArrayType::kBF16,
                               ArrayType::kI32, ArrayType::kI64, ArrayType::kU8}) {
    const std::vector<float> small = {0, 1, 2, 3, 4, 5};
    const bool is_float = type <= ArrayType::kBF16;
    file.tensors[std::string(name_of(type))] = from_f32(is_float ? values : small, {2, 3}, type);
  }
  return file;
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const Safetensors file = small_file();
  Diagnostics diagnostics;
  const auto read = parse_safetensors(print_safetensors(file), diagnostics);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, file);
}

TEST(Safetensors, TheShippedSamplesAreWhatTheirMetadataSays) {
  for (const char* layer : {"layer2", "layer5"}) {
    const std::string stem = "tests/data/lm-" + std::string(layer) + "-4k.";
    Diagnostics diagnostics;
    const auto sample =
        parse_safetensors(tests::read_bytes(tests::source_file(stem + "safetensors")), diagnostics);
    const auto thresholds = parse_safetensors(
        tests::read_bytes(tests::source_file(stem + "bsfa-k16.safetensors")), diagnostics);
    ASSERT_TRUE(sample && thresholds);
    EXPECT_EQ(sample->tensors.at("q").shape, (std::vector<std::int64_t>{4, 4096, 128}));
    EXPECT_EQ(sample->tensors.at("k").shape, (std::vector<std::int64_t>{1, 4096, 128}));
    EXPECT_EQ(sample->tensors.at("v").type, ArrayType::kBF16);
    EXPECT_TRUE(sample->metadata.at("slice").starts_with("tokens 0 to 4095 of the "));
    EXPECT_EQ(thresholds->metadata.at("kept_tiles"), "16");
    EXPECT_EQ(thresholds->tensors.at("threshold").shape, (std::vector<std::int64_t>{4, 32}));
    // A row of 128 queries has 2 off-diagonal tiles for each row before it: 16 or fewer up to
    // row 8.
    const std::vector<float> values = to_f32(thresholds->tensors.at("threshold"));
    EXPECT_EQ(values[8], -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isfinite(values[9]));
  }
}

TEST(Safetensors, SaysExactlyWhatIsWrong) {
  EXPECT_EQ(safetensors_errors("abc"),
            "E0603 safetensors: expected 8 bytes of header length, got a file of 3 bytes\n");
  EXPECT_EQ(safetensors_errors(with_json_header("{}").substr(0, 9)),
            "E0603 safetensors: expected a header of 2 bytes, got a file of 9 bytes\n");
  EXPECT_EQ(safetensors_errors("{\"version\": 1}"),
            "E0604 safetensors: the file does not begin with the length of a header\n");
  EXPECT_EQ(safetensors_errors("\x93NUMPY\x01 and what follows"),
            "E0604 safetensors: the file does not begin with the length of a header; it is a .npy "
            "file, which has one tensor without a name\n");
  EXPECT_EQ(safetensors_errors(with_json_header("[1, 2")),
            "E0604 safetensors: the header is not a JSON object\n");
  EXPECT_EQ(safetensors_errors(with_json_header(R"({"q": 3, "__metadata__": []})")),
            "E0604 safetensors: __metadata__: expected an object\n"
            "E0604 tensor q: expected an object with dtype, shape and data_offsets\n");
  EXPECT_EQ(safetensors_errors(with_json_header(
                R"({"q": {"dtype": "F8", "shape": [-1], "data_offsets": [4, 0]}})")),
            "E0606 tensor q: dtype: expected one of F64, F32, F16, BF16, I64, I32, U8, got F8\n"
            "E0607 tensor q: shape: expected a list of extents\n"
            "E0604 tensor q: data_offsets: expected [begin, end]\n");
  EXPECT_EQ(safetensors_errors(with_json_header(
                R"({"q": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}})", "1234")),
            "E0603 tensor q: data_offsets [0, 12]: the file holds only 4 bytes of data\n");
  EXPECT_EQ(safetensors_errors(with_json_header(
                R"({"q": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 4]}})", "1234")),
            "E0607 tensor q: data_offsets: expected 12 bytes for shape [2, 3] of BF16, got 4\n");
}

TEST(Safetensors, RejectsShapesThatOverflow) {
  EXPECT_EQ(safetensors_errors(with_json_header(
                R"({"q": {"dtype": "F64", "shape": [4294967296, 4294967296],
                          "data_offsets": [0, 0]}})")),
            "E0607 tensor q: shape: expected a list of extents\n");
}

TEST(Safetensors, SurvivesAnyMutation) {
  const std::string good = print_safetensors(small_file());
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = lacuna::tests::mutated(good, random);
    Diagnostics diagnostics;
    const auto read = parse_safetensors(bytes, diagnostics);
    ASSERT_NE(read.has_value(), diagnostics.has_errors());
    if (!read) continue;
    for (const auto& [name, array] : read->tensors) {
      ASSERT_EQ(static_cast<std::int64_t>(array.bytes.size()),
                *element_count(array.shape) * size_bytes(array.type));
    }
  }
}

}  // namespace
}  // namespace lacuna::tools
