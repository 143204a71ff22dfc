// What the driver is asked for each tensor map of a launch, seen by a function in its place.
#include "runtime/cuda/tensor_maps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "compiler/emit/emit.hpp"
#include "compiler/target/plan.hpp"
#include "runtime/engine/kernel.hpp"
#include "runtime/launch/argument_block.hpp"

namespace lacuna {
namespace {

struct Request {
  void* map = nullptr;
  int element = 0;
  std::uint32_t rank = 0;
  void* address = nullptr;
  std::vector<std::uint64_t> extents, stride_bytes;
  std::vector<std::uint32_t> box, element_strides;
  std::vector<int> modes;  ///< interleave, swizzle, L2 promotion, fill
};
std::vector<Request> requests;
CUresult answer = kCudaSuccess;

CUresult take_note(void* map, int element, std::uint32_t rank, void* address,
                   const std::uint64_t* extents, const std::uint64_t* stride_bytes,
                   const std::uint32_t* box, const std::uint32_t* element_strides, int interleave,
                   int swizzle, int l2_promotion, int fill) {
  requests.push_back({map,
                      element,
                      rank,
                      address,
                      {extents, extents + rank},
                      {stride_bytes, stride_bytes + rank - 1},
                      {box, box + rank},
                      {element_strides, element_strides + rank},
                      {interleave, swizzle, l2_promotion, fill}});
  return answer;
}

CUresult error_name(CUresult, const char** text) {
  *text = "CUDA_ERROR_INVALID_VALUE";
  return kCudaSuccess;
}
CUresult error_text(CUresult, const char** text) {
  *text = "invalid argument";
  return kCudaSuccess;
}

constexpr const char* kNamedOnly = R"({"version": 1, "name": "made"})";
constexpr const char* kQuantised = R"({"version": 1, "name": "made", "tile": {"k": 64},
  "quantise": {"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}}})";
constexpr const char* kOrdered = R"({"version": 1, "name": "made", "permute": "external"})";

LaunchProgram program_of(const char* text, BuildOptions options = {}) {
  Diagnostics diagnostics;
  const SpecDocument document = read_spec({"made.json", text}, diagnostics);
  const Plan plan = make_plan(document, options, *find_target("sm_90a"), diagnostics);
  EXPECT_EQ(render(diagnostics, document.source), "");
  return emit_launch_program(plan);
}

class TensorMaps : public testing::Test {
 protected:
  TensorMaps() {
    requests.clear();
    answer = kCudaSuccess;
    driver.cuTensorMapEncodeTiled = take_note;
    driver.cuGetErrorName = error_name;
    driver.cuGetErrorString = error_text;
    bind(TensorRole::kQ, 0x10000, {2, 8, 300, 128});
    bind(TensorRole::kK, 0x20000, {2, 4, 200, 128});
    bind(TensorRole::kV, 0x30000, {2, 4, 200, 128});
    bind(TensorRole::kO, 0x40000, {2, 8, 300, 128});
    bound.shape = {2, 8, 4, 300, 200};
  }

  /// Contiguous.
  void bind(TensorRole role, std::size_t address, const std::vector<std::int64_t>& extents) {
    BoundTensor& tensor = at(role);
    tensor.data = reinterpret_cast<void*>(address);
    std::int64_t stride = 1;
    for (std::size_t d = kMaxRank; d-- > 0; stride *= extents[d])
      tensor.extent[d] = extents[d], tensor.stride[d] = stride;
  }

  BoundTensor& at(TensorRole role) { return bound.tensors[static_cast<std::size_t>(role)]; }

  bool encode(const LaunchProgram& program) {
    std::vector<std::int32_t> values(program.values.size());
    EXPECT_TRUE(evaluate_launch_values(program, bound.shape, values.data(), 132));
    fill_argument_block(program, bound, {reinterpret_cast<void*>(std::size_t{0x900000}), nullptr},
                        values.data(), block);
    return encode_tensor_maps(driver, program, program.maps, "made", bound, cache, block,
                              diagnostics);
  }

  Driver driver;
  BoundLaunch bound;
  Diagnostics diagnostics;
  MapCache* cache = nullptr;
  alignas(kArgumentAlignment) std::byte block[kMaxArgumentBytes];
};

using Extents = std::vector<std::uint64_t>;
using Box = std::vector<std::uint32_t>;

TEST_F(TensorMaps, DescribePanelsOfTokensOfHeads) {
  ASSERT_TRUE(encode(program_of(kNamedOnly)));
  ASSERT_EQ(requests.size(), 4U);
  const Request& q = requests[0];
  EXPECT_EQ(q.map, block);
  EXPECT_EQ(q.element, 9) << "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
  EXPECT_EQ(q.rank, 5U);
  EXPECT_EQ(q.address, reinterpret_cast<void*>(std::size_t{0x10000}));
  EXPECT_EQ(q.extents, (Extents{64, 300, 2, 8, 2}));
  EXPECT_EQ(q.stride_bytes, (Extents{256, 128, 300 * 256, 8 * 300 * 256}));
  EXPECT_EQ(q.element_strides, (Box{1, 1, 1, 1, 1}));
  EXPECT_EQ(q.modes, (std::vector{0, 3, 0, 0})) << "swizzle of 128 bytes, no promotion, zeros";
  const Request& v = requests[2];
  EXPECT_EQ(v.map, block + 256);
  EXPECT_EQ(v.address, reinterpret_cast<void*>(std::size_t{0x30000}));
  EXPECT_EQ(v.extents, (Extents{64, 200, 2, 4, 2}));
}

/// Bytes, in panels of 128 where a row is a whole number of these.
TEST_F(TensorMaps, DescribeCodesOfE4m3) {
  ASSERT_TRUE(encode(program_of(kNamedOnly, {.kv = KvFormat::kE4M3})));
  EXPECT_EQ(requests[0].element, 9) << "queries are as they are";
  const Request& k = requests[1];
  EXPECT_EQ(k.element, 0) << "CU_TENSOR_MAP_DATA_TYPE_UINT8";
  EXPECT_EQ(k.extents, (Extents{128, 200, 1, 4, 2}));
  EXPECT_EQ(k.stride_bytes, (Extents{128, 128, 200 * 128, 4 * 200 * 128}));
  EXPECT_EQ(k.box, (Box{128, 128, 1, 1, 1}));
  EXPECT_EQ(k.modes, (std::vector{0, 3, 0, 0})) << "swizzle of 128 bytes";
  requests.clear();
  bind(TensorRole::kQ, 0x10000, {2, 8, 300, 192});
  bind(TensorRole::kK, 0x20000, {2, 4, 200, 192});
  bind(TensorRole::kV, 0x30000, {2, 4, 200, 192});
  ASSERT_TRUE(encode(program_of(kNamedOnly, {.head_dim = 192, .kv = KvFormat::kE4M3})));
  const Request& v = requests[2];
  EXPECT_EQ(v.extents, (Extents{64, 200, 3, 4, 2}));
  EXPECT_EQ(v.stride_bytes, (Extents{192, 64, 200 * 192, 4 * 200 * 192}));
  EXPECT_EQ(v.box, (Box{64, 64, 1, 1, 1}));
  EXPECT_EQ(v.modes, (std::vector{0, 2, 0, 0})) << "swizzle of 64 bytes";
}

TEST_F(TensorMaps, BoxesAreRowsOfAWarpgroupATileAndAWarp) {
  ASSERT_TRUE(encode(program_of(kNamedOnly)));
  EXPECT_EQ(requests[0].box, (Box{64, 64, 1, 1, 1}));
  EXPECT_EQ(requests[1].box, (Box{64, 128, 1, 1, 1}));
  EXPECT_EQ(requests[2].box, (Box{64, 128, 1, 1, 1}));
  EXPECT_EQ(requests[3].box, (Box{64, 16, 1, 1, 1}));
  requests.clear();
  ASSERT_TRUE(encode(program_of(R"({"version": 1, "name": "made", "tile": {"k": 64}})")));
  EXPECT_EQ(requests[1].box, (Box{64, 64, 1, 1, 1}));
}

TEST_F(TensorMaps, HeadDimAndTypeAreThePlans) {
  for (const TensorRole role : {TensorRole::kQ, TensorRole::kK, TensorRole::kV, TensorRole::kO})
    bind(role, 0x10000, {2, 4, 200, 256});
  bound.shape = {2, 4, 4, 200, 200};
  ASSERT_TRUE(encode(program_of(kNamedOnly, {.head_dim = 256, .dtype = DType::kF16})));
  EXPECT_EQ(requests[0].element, 6) << "CU_TENSOR_MAP_DATA_TYPE_FLOAT16";
  EXPECT_EQ(requests[0].extents, (Extents{64, 200, 4, 4, 2}));
  EXPECT_EQ(requests[0].stride_bytes, (Extents{512, 128, 200 * 512, 4 * 200 * 512}));
}

TEST_F(TensorMaps, RowsThatAreNoWholePanelsEndWithinABox) {
  for (const TensorRole role : {TensorRole::kQ, TensorRole::kK, TensorRole::kV, TensorRole::kO})
    bind(role, 0x10000, {2, 4, 200, 80});
  bound.shape = {2, 4, 4, 200, 200};
  ASSERT_TRUE(encode(program_of(kNamedOnly, {.head_dim = 80})));
  for (const Request& request : requests) {
    EXPECT_EQ(request.extents, (Extents{80, 200, 1, 4, 2}));
    EXPECT_EQ(request.stride_bytes, (Extents{160, 128, 200 * 160, 4 * 200 * 160}));
    EXPECT_EQ(request.box[0], 64U);
  }
}

TEST_F(TensorMaps, RowsOfValuesAndOutputsHaveAWidthOfTheirOwn) {
  for (const TensorRole role : {TensorRole::kQ, TensorRole::kK})
    bind(role, 0x10000, {2, 4, 200, 192});
  for (const TensorRole role : {TensorRole::kV, TensorRole::kO})
    bind(role, 0x20000, {2, 4, 200, 128});
  bound.shape = {2, 4, 4, 200, 200};
  ASSERT_TRUE(encode(program_of(kNamedOnly, {.head_dim = 192, .head_dim_v = 128})));
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[1].extents, (Extents{64, 200, 3, 4, 2}));
  EXPECT_EQ(requests[2].extents, (Extents{64, 200, 2, 4, 2}));
  EXPECT_EQ(requests[3].extents, (Extents{64, 200, 2, 4, 2}));
}

TEST_F(TensorMaps, StridesAreTheCallersAlsoThoseOfZero) {
  BoundTensor& k = at(TensorRole::kK);
  k.stride[0] = 0;             // one batch entry for all
  k.stride[1] = 128;           // heads inside of tokens
  k.stride[2] = 4 * 128 + 64;  // and rows with padding
  ASSERT_TRUE(encode(program_of(kNamedOnly)));
  EXPECT_EQ(requests[1].stride_bytes, (Extents{2 * (4 * 128 + 64), 128, 256, 0}));
}

TEST_F(TensorMaps, AStrideThatMeansNothingIsReplaced) {
  bind(TensorRole::kQ, 0x10000, {1, 1, 1, 128});
  for (std::int64_t& stride : at(TensorRole::kQ).stride) stride = -7;
  at(TensorRole::kQ).stride[3] = 1;
  ASSERT_TRUE(encode(program_of(kNamedOnly)));
  EXPECT_EQ(requests[0].extents, (Extents{64, 1, 2, 1, 1}));
  EXPECT_EQ(requests[0].stride_bytes, (Extents{256, 128, 256, 256}));
}

TEST_F(TensorMaps, ATensorWithoutElementsHasNone) {
  bind(TensorRole::kK, 0, {2, 4, 0, 128});
  bind(TensorRole::kV, 0, {2, 4, 0, 128});
  bound.shape.n_k = 0;
  ASSERT_TRUE(encode(program_of(kNamedOnly)));
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].map, block + 384);
}

TEST_F(TensorMaps, OrderedCopiesAreThoseOfTheWorkspace) {
  bind(TensorRole::kK, 0x20000, {2, 4, 300, 128});
  bind(TensorRole::kV, 0x30000, {2, 4, 300, 128});
  bound.shape.n_k = 300;
  at(TensorRole::kQ).stride[2] = 4096;  // the copy has strides of its own
  ASSERT_TRUE(encode(program_of(kOrdered)));
  EXPECT_EQ(requests[0].address, reinterpret_cast<void*>(std::size_t{0x900000}));
  EXPECT_EQ(requests[0].stride_bytes, (Extents{256, 128, 300 * 256, 8 * 300 * 256}));
  EXPECT_EQ(requests[0].extents, (Extents{64, 300, 2, 8, 2}));
}

TEST_F(TensorMaps, IntegersAndE4m3ValuesAreThoseOfTheWorkspace) {
  bind(TensorRole::kQ, 0x10000, {2, 8, 300, 128});
  ASSERT_TRUE(encode(program_of(kQuantised)));
  ASSERT_EQ(requests.size(), 4U);
  const Request& q = requests[0];
  EXPECT_EQ(q.element, 0) << "CU_TENSOR_MAP_DATA_TYPE_UINT8";
  EXPECT_EQ(q.extents, (Extents{128, 512, 1, 8, 2})) << "tokens are padded to 256";
  EXPECT_EQ(q.stride_bytes, (Extents{128, 128, 512 * 128, 8 * 512 * 128}));
  EXPECT_EQ(q.box, (Box{128, 64, 1, 1, 1}));
  EXPECT_EQ(q.modes, (std::vector{0, 3, 0, 0})) << "swizzle of 128 bytes";
  EXPECT_EQ(requests[1].extents, (Extents{128, 256, 1, 4, 2}));
  const Request& v = requests[2];
  EXPECT_EQ(v.element, 0);
  EXPECT_EQ(v.extents, (Extents{64, 128, 4, 4, 2})) << "channels are rows, 64 tokens a panel";
  EXPECT_EQ(v.stride_bytes, (Extents{256, 64, 128 * 256, 4 * 128 * 256}));
  EXPECT_EQ(v.box, (Box{64, 128, 1, 1, 1}));
  EXPECT_EQ(v.modes, (std::vector{0, 2, 0, 0})) << "swizzle of 64 bytes";
  EXPECT_EQ(requests[3].element, 9) << "the output has 16 bits";
}

TEST_F(TensorMaps, IntegerRowsOfSixtyFourBytesHaveTheShortSwizzle) {
  for (const TensorRole role : {TensorRole::kQ, TensorRole::kK, TensorRole::kV, TensorRole::kO})
    bind(role, 0x10000, {2, 4, 200, 64});
  bound.shape = {2, 4, 4, 200, 200};
  ASSERT_TRUE(encode(program_of(kQuantised, {.head_dim = 64})));
  EXPECT_EQ(requests[0].extents, (Extents{64, 256, 1, 4, 2}));
  EXPECT_EQ(requests[0].modes, (std::vector{0, 2, 0, 0}));
}

TEST_F(TensorMaps, ARefusalNamesTheTensorAndWhatIsAsked) {
  at(TensorRole::kQ).stride[2] = -128;
  answer = 1;
  EXPECT_FALSE(encode(program_of(kNamedOnly)));
  ASSERT_EQ(diagnostics.items.size(), 1U);
  EXPECT_EQ(diagnostics.items[0].code, Code::kTensorArgument);
  EXPECT_EQ(diagnostics.items[0].message,
            "kernel made, argument q: expected a tensor that TMA can load, got strides of 614400 "
            "(batch), 76800 (heads) and -256 (tokens) bytes: CUDA_ERROR_INVALID_VALUE (invalid "
            "argument)");
  EXPECT_EQ(diagnostics.items[0].notes,
            (std::vector<std::string>{
                "a tensor map asks for an address and strides that are multiples of 16 bytes, and "
                "for strides from 0 to below 2^40 bytes"}));
}

TEST_F(TensorMaps, ACacheKnowsWhatWasEncodedAndNothingElse) {
  const auto known = std::make_unique<MapCache>();
  cache = known.get();
  const LaunchProgram program = program_of(kNamedOnly);
  answer = 1;
  EXPECT_FALSE(encode(program));
  answer = kCudaSuccess;
  ASSERT_TRUE(encode(program));
  EXPECT_EQ(requests.size(), 5U) << "what was refused is asked for again";
  ASSERT_TRUE(encode(program));
  EXPECT_EQ(requests.size(), 5U);
  // Each of these alone makes another map of k.
  BoundTensor& k = at(TensorRole::kK);
  const BoundTensor first = k;
  const auto changed = [&](const auto& change) {
    change();
    const std::size_t before = requests.size();
    EXPECT_TRUE(encode(program));
    k = first;
    return requests.size() - before;
  };
  EXPECT_EQ(changed([&] { k.data = static_cast<std::byte*>(k.data) + 128; }), 1U);
  EXPECT_EQ(changed([&] { k.extent[2] = 199; }), 1U);
  EXPECT_EQ(changed([&] { k.extent[1] = 3; }), 1U);
  EXPECT_EQ(changed([&] { k.extent[0] = 1; }), 1U);
  EXPECT_EQ(changed([&] { k.stride[0] += 64; }), 1U);
  EXPECT_EQ(changed([&] { k.stride[1] += 64; }), 1U);
  EXPECT_EQ(changed([&] { k.stride[2] += 64; }), 1U);
  EXPECT_EQ(changed([] {}), 1U) << "the last of them has its place";
  EXPECT_EQ(changed([] {}), 0U);
}

TEST_F(TensorMaps, ABoxOfKeysIsNoLargerThanAPage) {
  const LaunchProgram program = program_of(kNamedOnly, {.batch = BatchLayout::kPages});
  const auto keys_of = [&](std::int64_t page_tokens) {
    bind(TensorRole::kK, 0x20000, {40, 4, page_tokens, 128});
    bind(TensorRole::kV, 0x30000, {40, 4, page_tokens, 128});
    requests.clear();
    EXPECT_TRUE(encode(program));
    return requests.size() > 2 ? std::vector{requests[1].box[1], requests[2].box[1]} : Box{};
  };
  EXPECT_EQ(keys_of(16), (Box{16, 16}));
  const Box tile = keys_of(4096);
  EXPECT_EQ(tile, keys_of(tile[0]));
  EXPECT_GT(tile[0], 16U);
  EXPECT_LT(tile[0], 4096U) << "a page of more tokens is loaded tile by tile";
}

TEST_F(TensorMaps, TheMmaFamilyHasNone) {
  const LaunchProgram program = program_of(kNamedOnly, {.family = AttendFamily::kMma});
  EXPECT_TRUE(program.maps.empty());
  ASSERT_TRUE(encode(program));
  EXPECT_TRUE(requests.empty());
}

}  // namespace
}  // namespace lacuna
