// The C ABI against careless callers: null handles, foreign struct sizes, errors of threads.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "lacuna/lacuna.h"

namespace {

lacuna_engine* cpu_engine() {
  lacuna_engine_options options{};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  lacuna_engine* engine = nullptr;
  EXPECT_EQ(lacuna_engine_create(&options, &engine), LACUNA_OK) << lacuna_last_error();
  return engine;
}

TEST(CApi, Versions) {
  EXPECT_EQ(lacuna_abi_version(), LACUNA_ABI_VERSION);
  EXPECT_STREQ(lacuna_version(), LACUNA_VERSION);
}

TEST(CApi, NullIsRefused) {
  EXPECT_EQ(lacuna_engine_create(nullptr, nullptr), LACUNA_ERROR_INPUT);
  EXPECT_STREQ(lacuna_last_error(),
               "lacuna: error: engine: expected a place for the handle, got null [E0503]\n");
  EXPECT_EQ(lacuna_prepare(nullptr), LACUNA_ERROR_INPUT);
  EXPECT_STREQ(lacuna_last_error(), "lacuna: error: kernel: expected a handle, got null [E0503]\n");
  EXPECT_NE(std::strstr(lacuna_last_error_json(), "\"E0503\""), nullptr)
      << lacuna_last_error_json();
  EXPECT_EQ(lacuna_launch(nullptr, nullptr), LACUNA_ERROR_INPUT);
  lacuna_kernel_destroy(nullptr);
  lacuna_engine_destroy(nullptr);
}

TEST(CApi, AccessorsRefuseNull) {
  for (const auto read : {lacuna_engine_device, lacuna_engine_device_name, lacuna_engine_target,
                          lacuna_engine_note}) {
    EXPECT_STREQ(read(nullptr), "");
    EXPECT_STREQ(lacuna_last_error(),
                 "lacuna: error: engine: expected a handle, got null [E0503]\n");
  }
  EXPECT_STREQ(lacuna_kernel_info_json(nullptr), "");
  EXPECT_STREQ(lacuna_last_error(), "lacuna: error: kernel: expected a handle, got null [E0503]\n");
}

TEST(CApi, StructsOfAnotherSizeAreRefused) {
  lacuna_engine_options options{};
  options.struct_size = 8;
  lacuna_engine* engine = nullptr;
  EXPECT_EQ(lacuna_engine_create(&options, &engine), LACUNA_ERROR_INPUT);
  EXPECT_EQ(engine, nullptr);
  EXPECT_EQ(std::string(lacuna_last_error()),
            "lacuna: error: lacuna_engine_options.struct_size: expected " +
                std::to_string(sizeof(options)) + ", got 8 [E0503]\n");
}

TEST(CApi, DTypesOutsideTheEnumAreRefused) {
  lacuna_engine* engine = cpu_engine();
  lacuna_compile_options options{};
  options.struct_size = sizeof(options);
  options.head_dim = 64;
  options.dtype = static_cast<lacuna_dtype>(3);
  lacuna_kernel* kernel = nullptr;
  EXPECT_EQ(lacuna_compile(engine, "{}", 2, &options, &kernel), LACUNA_ERROR_INPUT);
  EXPECT_STREQ(lacuna_last_error(),
               "lacuna: error: dtype: expected bf16 (0), f16 (1) or f32 (2), got 3 [E0503]\n");
  EXPECT_EQ(kernel, nullptr);
  lacuna_engine_destroy(engine);
}

TEST(CApi, SizesOfTextsBeyondAnySpecAreRefused) {
  lacuna_engine* engine = cpu_engine();
  const std::string text(std::size_t{1} << 21, '\n');
  lacuna_compile_options options{};
  options.struct_size = sizeof(options);
  options.head_dim = 64;
  lacuna_kernel* kernel = nullptr;
  for (const std::size_t bytes : {text.size(), SIZE_MAX}) {
    EXPECT_EQ(lacuna_compile(engine, text.data(), bytes, &options, &kernel), LACUNA_ERROR_INPUT);
    EXPECT_STREQ(lacuna_last_error(),
                 "<memory>: error: the text is longer than 1048576 bytes; a spec has some thousand "
                 "[E0608]\n");
  }
  lacuna_engine_destroy(engine);
}

TEST(CApi, AKernelOutlivesItsEngine) {
  lacuna_engine* engine = cpu_engine();
  const char spec[] = "{\"version\": 1, \"name\": \"dense\"}";
  lacuna_compile_options options{};
  options.struct_size = sizeof(options);
  options.head_dim = 64;
  lacuna_kernel* kernel = nullptr;
  ASSERT_EQ(lacuna_compile(engine, spec, sizeof(spec) - 1, &options, &kernel), LACUNA_OK)
      << lacuna_last_error();
  lacuna_engine_destroy(engine);
  int32_t tile_q = 0, tile_k = 0;
  EXPECT_EQ(lacuna_kernel_tile(kernel, &tile_q, &tile_k), LACUNA_OK);
  EXPECT_GT(tile_q, 0);
  EXPECT_GT(tile_k, 0);
  lacuna_shape shape{sizeof(shape), 1, 3, 2, 100, 100};
  size_t bytes = 1;
  EXPECT_EQ(lacuna_workspace_bytes(kernel, &shape, &bytes), LACUNA_ERROR_INPUT);
  EXPECT_STREQ(lacuna_last_error(),
               "<memory>: error: kernel dense, shape: heads expected a multiple of heads_kv (2), "
               "got 3 [E0501]\n");
  shape.heads = 4;
  EXPECT_EQ(lacuna_workspace_bytes(kernel, &shape, &bytes), LACUNA_OK);
  EXPECT_EQ(bytes, 0U);
  EXPECT_STREQ(lacuna_last_error(), "");
  lacuna_kernel_destroy(kernel);
}

TEST(CApi, TheLastErrorBelongsToTheThread) {
  EXPECT_EQ(lacuna_prepare(nullptr), LACUNA_ERROR_INPUT);
  std::thread([] { EXPECT_STREQ(lacuna_last_error(), ""); }).join();
  EXPECT_STRNE(lacuna_last_error(), "");
}

}  // namespace
