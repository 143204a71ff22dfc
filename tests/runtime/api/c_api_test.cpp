// The C ABI against careless callers: null handles, foreign struct sizes, errors of threads.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
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
  for (const auto read : {lacuna_kernel_info_json, lacuna_kernel_signature_json}) {
    EXPECT_STREQ(read(nullptr), "");
    EXPECT_STREQ(lacuna_last_error(),
                 "lacuna: error: kernel: expected a handle, got null [E0503]\n");
  }
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

void expect_refused(lacuna_status status, const std::string& message) {
  EXPECT_EQ(status, LACUNA_ERROR_INPUT);
  EXPECT_EQ(std::string(lacuna_last_error()), "lacuna: error: " + message + " [E0503]\n");
}

std::string size_message(const std::string& name, std::size_t expected) {
  return name + ".struct_size: expected " + std::to_string(expected) + ", got 4";
}

constexpr char kDenseText[] = "{\"version\": 1, \"name\": \"dense\"}";
constexpr size_t kDenseBytes = sizeof(kDenseText) - 1;

/// An engine on the CPU, and a kernel of it.
class CApiKernel : public testing::Test {
 protected:
  CApiKernel() {
    options_.struct_size = sizeof(options_);
    options_.head_dim = 64;
    EXPECT_EQ(lacuna_compile(engine_, kDenseText, kDenseBytes, &options_, &kernel_), LACUNA_OK)
        << lacuna_last_error();
  }
  ~CApiKernel() override {
    lacuna_kernel_destroy(kernel_);
    lacuna_engine_destroy(engine_);
  }

  lacuna_engine* engine_ = cpu_engine();
  lacuna_compile_options options_{};
  lacuna_kernel* kernel_ = nullptr;
  lacuna_shape shape_{sizeof(lacuna_shape), 1, 2, 2, 100, 100};
};

TEST_F(CApiKernel, EveryPointerThatIsNullIsNamed) {
  lacuna_kernel* other = nullptr;
  const std::string no_kernel = "kernel: expected a handle, got null";
  expect_refused(lacuna_compile(engine_, kDenseText, kDenseBytes, &options_, nullptr),
                 "kernel: expected a place for the handle, got null");
  expect_refused(lacuna_compile(nullptr, kDenseText, kDenseBytes, &options_, &other),
                 "engine: expected a handle, got null");
  expect_refused(lacuna_compile(engine_, nullptr, kDenseBytes, &options_, &other),
                 "spec_json: expected a text, got null");
  expect_refused(lacuna_compile(engine_, kDenseText, kDenseBytes, nullptr, &other),
                 "options: expected lacuna_compile_options, got null");
  EXPECT_EQ(other, nullptr);

  int32_t tile = 0;
  const std::string tiles = "tile_q, tile_k: expected places for the sizes, got null";
  expect_refused(lacuna_kernel_tile(nullptr, &tile, &tile), no_kernel);
  expect_refused(lacuna_kernel_tile(kernel_, nullptr, &tile), tiles);
  expect_refused(lacuna_kernel_tile(kernel_, &tile, nullptr), tiles);

  size_t bytes = 0;
  for (const auto count : {lacuna_workspace_bytes, lacuna_selection_bytes}) {
    expect_refused(count(nullptr, &shape_, &bytes), no_kernel);
    expect_refused(count(kernel_, nullptr, &bytes), "shape: expected lacuna_shape, got null");
    expect_refused(count(kernel_, &shape_, nullptr),
                   "bytes: expected a place for the size, got null");
  }
  expect_refused(lacuna_token_order(nullptr, &tile, 1), no_kernel);
  expect_refused(lacuna_token_order(kernel_, nullptr, 1),
                 "order: expected a place for the tokens, got null");

  lacuna_launch_args args{};
  args.struct_size = sizeof(args);
  args.params_count = 2;
  expect_refused(lacuna_launch(nullptr, &args), no_kernel);
  expect_refused(lacuna_launch(kernel_, nullptr), "args: expected lacuna_launch_args, got null");
  expect_refused(lacuna_launch(kernel_, &args), "params: expected 2 parameters, got null");
}

TEST_F(CApiKernel, EveryStructOfAnotherSizeIsNamed) {
  lacuna_kernel* other = nullptr;
  shape_.struct_size = 4;
  size_t bytes = 0;
  expect_refused(lacuna_workspace_bytes(kernel_, &shape_, &bytes),
                 size_message("lacuna_shape", sizeof(shape_)));
  options_.shape = &shape_;
  expect_refused(lacuna_compile(engine_, kDenseText, kDenseBytes, &options_, &other),
                 size_message("lacuna_shape", sizeof(shape_)));
  options_.struct_size = 4;
  expect_refused(lacuna_compile(engine_, kDenseText, kDenseBytes, &options_, &other),
                 size_message("lacuna_compile_options", sizeof(options_)));
  lacuna_launch_args args{};
  args.struct_size = 4;
  expect_refused(lacuna_launch(kernel_, &args), size_message("lacuna_launch_args", sizeof(args)));
  EXPECT_EQ(other, nullptr);
}

/// A struct as a newer header may have it: what is known, and a field behind.
template <class Struct>
struct Newer {
  Struct known{};
  std::uint64_t field = 0;

  Newer() { known.struct_size = sizeof(Newer); }
};

std::string newer_message(const std::string& name, std::size_t known) {
  return name + ": expected zero behind the " + std::to_string(known) +
         " bytes that version " LACUNA_VERSION " knows, got a value at byte " +
         std::to_string(known) + ": the caller was compiled with a newer lacuna.h";
}

/// `call` is asked twice: with the field of the newer header zero, and set.
template <class Struct, class Call>
void expect_unknown_field_refused(const std::string& name, Newer<Struct> value, const Call& call) {
  EXPECT_EQ(call(&value.known), LACUNA_OK) << lacuna_last_error();
  value.field = 1;
  expect_refused(call(&value.known), newer_message(name, sizeof(Struct)));
}

TEST_F(CApiKernel, AFieldThatIsNotKnownIsRefused) {
  Newer<lacuna_engine_options> engine;
  engine.known.device = "cpu";
  expect_unknown_field_refused("lacuna_engine_options", engine, [](const auto* options) {
    lacuna_engine* made = nullptr;
    const lacuna_status status = lacuna_engine_create(options, &made);
    lacuna_engine_destroy(made);
    return status;
  });

  Newer<lacuna_shape> shape;
  shape.known = shape_;
  shape.known.struct_size = sizeof(shape);
  size_t bytes = 0;
  expect_unknown_field_refused("lacuna_shape", shape, [&](const auto* s) {
    return lacuna_workspace_bytes(kernel_, s, &bytes);
  });

  const auto compile = [&](const lacuna_compile_options* options) {
    lacuna_kernel* made = nullptr;
    const lacuna_status status = lacuna_compile(engine_, kDenseText, kDenseBytes, options, &made);
    lacuna_kernel_destroy(made);
    return status;
  };
  Newer<lacuna_compile_options> options;
  options.known.head_dim = 64;
  expect_unknown_field_refused("lacuna_compile_options", options, compile);
  options.known.shape = &shape.known;
  shape.field = 1;
  expect_refused(compile(&options.known), newer_message("lacuna_shape", sizeof(lacuna_shape)));

  int64_t extents[] = {1, 1, 0, 64};
  DLTensor empty{};
  empty.device.device_type = kDLCPU;
  empty.ndim = 4;
  empty.dtype = {kDLBfloat, 16, 1};
  empty.shape = extents;
  Newer<lacuna_launch_args> args;
  args.known.q = args.known.k = args.known.v = args.known.o = &empty;
  expect_unknown_field_refused("lacuna_launch_args", args,
                               [&](const auto* a) { return lacuna_launch(kernel_, a); });
  Newer<lacuna_selection> selection;
  selection.field = 1;
  args.known.selection = &selection.known;
  expect_refused(lacuna_launch(kernel_, &args.known),
                 newer_message("lacuna_selection", sizeof(lacuna_selection)));
  args.known.selection = nullptr;
  Newer<lacuna_sequences> sequences;
  sequences.field = 1;
  args.known.sequences = &sequences.known;
  expect_refused(lacuna_launch(kernel_, &args.known),
                 newer_message("lacuna_sequences", sizeof(lacuna_sequences)));
  args.known.sequences = nullptr;
  Newer<lacuna_branch_args> branch;
  branch.known.name = "x";
  branch.field = 1;
  const lacuna_branch_args* branches[] = {&branch.known};
  args.known.branches = branches;
  args.known.branches_count = 1;
  expect_refused(lacuna_launch(kernel_, &args.known),
                 newer_message("lacuna_branch_args", sizeof(lacuna_branch_args)));
}

TEST_F(CApiKernel, StructsOfOlderHeadersAreServed) {
  // Behind the end of the older struct lies what the caller has there, not a field.
  lacuna_shape garbage{};
  options_.shape = &garbage;
  options_.struct_size = offsetof(lacuna_compile_options, shape);
  lacuna_kernel* other = nullptr;
  EXPECT_EQ(lacuna_compile(engine_, kDenseText, kDenseBytes, &options_, &other), LACUNA_OK)
      << lacuna_last_error();
  lacuna_kernel_destroy(other);

  lacuna_engine_options engine_options{};
  engine_options.device = "cpu";
  engine_options.struct_size = offsetof(lacuna_engine_options, forbid_compiling);
  lacuna_engine* engine = nullptr;
  EXPECT_EQ(lacuna_engine_create(&engine_options, &engine), LACUNA_OK) << lacuna_last_error();
  lacuna_engine_destroy(engine);

  lacuna_selection none{};
  lacuna_launch_args args{};
  args.selection = &none;
  for (const std::size_t bytes :
       {offsetof(lacuna_launch_args, previous_lse), offsetof(lacuna_launch_args, selection),
        offsetof(lacuna_launch_args, stage_events), offsetof(lacuna_launch_args, softmax_scale),
        offsetof(lacuna_launch_args, k_scale), offsetof(lacuna_launch_args, sm_margin),
        offsetof(lacuna_launch_args, branches)}) {
    args.struct_size = bytes;
    EXPECT_EQ(lacuna_launch(kernel_, &args), LACUNA_ERROR_INPUT);
    const std::string error = lacuna_last_error();
    EXPECT_NE(error.find("argument q: expected a tensor, got null"), std::string::npos) << error;
  }
}

TEST_F(CApiKernel, ASizeThatWasNeverSetIsNotRead) {
  shape_.struct_size = std::size_t{1} << 60;
  size_t bytes = 0;
  expect_refused(lacuna_workspace_bytes(kernel_, &shape_, &bytes),
                 "lacuna_shape.struct_size: expected " + std::to_string(sizeof(shape_)) +
                     ", got 1152921504606846976");
}

TEST(CApi, FewerThreadsThanNoneAreRefused) {
  lacuna_engine_options options{};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  options.threads = -1;
  lacuna_engine* engine = nullptr;
  expect_refused(lacuna_engine_create(&options, &engine),
                 "threads: expected 0 (all) or more, got -1");
  EXPECT_EQ(engine, nullptr);
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
