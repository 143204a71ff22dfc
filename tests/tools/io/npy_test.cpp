// .npy: round trips, numpy's own bytes, exact errors, and no crash on any bytes.
#include "tools/io/npy.hpp"

#include <gtest/gtest.h>

#include "tests/tools/mutation.hpp"

namespace lacuna::tools {
namespace {

Array counting(ArrayType type, std::vector<std::int64_t> shape) {
  const auto count = static_cast<std::size_t>(*element_count(shape));
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 100);
  return from_f32(values, std::move(shape), type);
}

/// The messages of parsing `bytes`, one on each line.
std::string errors_of(std::string_view bytes) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_npy(bytes, diagnostics).has_value());
  std::string text;
  for (const Diagnostic& d : diagnostics.items) text += code_name(d.code) + " " + d.message + "\n";
  return text;
}

/// A version 1.0 file with this dictionary and data.
std::string with_header(const std::string& dictionary, const std::string& data = "") {
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  bytes += static_cast<char>(dictionary.size());
  bytes += '\0';
  return bytes + dictionary + data;
}

TEST(Npy, ReadsBackWhatItWrote) {
  for (const ArrayType type : {ArrayType::kF64, ArrayType::kF32, ArrayType::kF16, ArrayType::kI32,
                               ArrayType::kI64, ArrayType::kU8}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {7}, {2, 3}, {1, 4, 5, 6}, {3, 0, 2}}) {
      const Array array = counting(type, shape);
      const std::string bytes = print_npy(array);
      Diagnostics diagnostics;
      const auto read = parse_npy(bytes, diagnostics);
      ASSERT_TRUE(read.has_value()) << name_of(type) << print_shape(shape);
      EXPECT_EQ(*read, array);
      EXPECT_EQ((bytes.size() - array.bytes.size()) % 64, 0u) << "numpy aligns its data to 64";
    }
  }
}

TEST(Npy, WritesBf16AsF32) {
  Diagnostics diagnostics;
  const Array array = counting(ArrayType::kBF16, {4, 8});
  const auto read = parse_npy(print_npy(array), diagnostics);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->type, ArrayType::kF32);
  EXPECT_EQ(to_f32(*read), to_f32(array));
}

TEST(Npy, ReadsTheBytesNumpyWrites) {
  // numpy.save of numpy.arange(3, dtype="<i4"), versions 1.0 and 2.0.
  const std::string dictionary = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }  \n";
  const std::string data("\0\0\0\0\1\0\0\0\2\0\0\0", 12);
  std::string version_2 = "\x93NUMPY\x02";
  version_2 += std::string(1, '\0') + static_cast<char>(dictionary.size()) + std::string(3, '\0');
  for (const std::string& bytes : {with_header(dictionary, data), version_2 + dictionary + data}) {
    Diagnostics diagnostics;
    const auto read = parse_npy(bytes, diagnostics);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->shape, std::vector<std::int64_t>{3});
    EXPECT_EQ(to_f32(*read), (std::vector<float>{0, 1, 2}));
  }
}

TEST(Npy, SaysExactlyWhatIsWrong) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(errors_of(""), "E0604 npy: the file does not begin with \\x93NUMPY\n");
  EXPECT_EQ(errors_of("PK\x03\x04 an npz archive"),
            "E0604 npy: the file does not begin with \\x93NUMPY\n");
  EXPECT_EQ(errors_of(std::string_view("\x93NUMPY\x01\0", 8)),
            "E0603 npy: the file of 8 bytes ends within its header\n");
  EXPECT_EQ(errors_of(with_header(good, "12345678")),
            "E0603 npy: expected 24 bytes of data for shape [2, 3] of f32, got 8\n");
  EXPECT_EQ(errors_of(with_header("{'descr': '>f4', 'fortran_order': True, 'shape': (2, -3), }")),
            "E0606 npy: descr: expected one of <f8, <f4, <f2, <i8, <i4, |u1, <u1, |b1, got >f4\n"
            "E0604 npy: shape: expected a tuple of extents\n"
            "E0604 npy: fortran_order: expected False (write with numpy.ascontiguousarray)\n");
}

TEST(Npy, SurvivesAnyMutation) {
  const std::string good = print_npy(counting(ArrayType::kF32, {2, 3, 4}));
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = lacuna::tests::mutated(good, random);
    Diagnostics diagnostics;
    const auto read = parse_npy(bytes, diagnostics);
    ASSERT_NE(read.has_value(), diagnostics.has_errors());
    if (read) {
      ASSERT_EQ(static_cast<std::int64_t>(read->bytes.size()),
                *element_count(read->shape) * size_bytes(read->type));
    }
  }
}

}  // namespace
}  // namespace lacuna::tools
