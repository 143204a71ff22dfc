// Each allocation of a call may be the one that fails: the call says so, and the next one works.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/runtime/dense_problem.hpp"
#include "tests/runtime/fake_gpu/count_allocations.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

class OutOfMemory : public testing::Test {
 protected:
  void SetUp() override {
    lacuna_engine_options options{};
    options.struct_size = sizeof(options);
    options.device = "cpu";
    options.threads = 2;
    ASSERT_EQ(lacuna_engine_create(&options, &engine), LACUNA_OK) << lacuna_last_error();
  }
  void TearDown() override { lacuna_engine_destroy(engine); }

  lacuna_status compile(const std::string& text, lacuna_kernel** kernel) const {
    lacuna_compile_options options{};
    options.struct_size = sizeof(options);
    options.head_dim = 64;
    options.dtype = LACUNA_F32;
    return lacuna_compile(engine, text.data(), text.size(), &options, kernel);
  }

  const ScopedVariable interpreted{"LACUNA_HOST_PLUGIN", "off"};
  lacuna_engine* engine = nullptr;
};

/// The JSON library allocates some bytes in destructors, which end the process if there are none.
constexpr std::size_t kPiece = 1024;

/// Calls with 0, 1, 2, ... allocations of `least_bytes` and more until one has enough; returns its
/// status.
lacuna_status try_with_few(std::size_t least_bytes, const std::function<lacuna_status()>& call) {
  for (long count = 0;; ++count) {
    lacuna_status status = LACUNA_OK;
    {
      const FewAllocations few(count, least_bytes);
      status = call();
    }
    const std::string error = lacuna_last_error();
    if (error != "lacuna: error: out of memory [E0710]\n") {
      EXPECT_GT(count, 0) << "it needs none";
      return status;
    }
    EXPECT_EQ(status, LACUNA_ERROR_ENVIRONMENT) << count;
  }
}

TEST_F(OutOfMemory, OfAnEngineIsAStatus) {
  lacuna_engine_options options{};
  options.struct_size = sizeof(options);
  options.device = "cpu";
  lacuna_engine* other = nullptr;
  EXPECT_EQ(try_with_few(kPiece, [&] { return lacuna_engine_create(&options, &other); }),
            LACUNA_OK);
  lacuna_engine_destroy(other);
}

TEST_F(OutOfMemory, OfACompilationIsAStatus) {
  const std::string good = R"({"version": 1, "name": "dense"})";
  const std::string bad = R"({"version": 1, "doc": ")" + std::string(4 * kPiece, 'x') + "\"}";
  lacuna_kernel* kernel = nullptr;
  EXPECT_EQ(try_with_few(kPiece, [&] { return compile(good, &kernel); }), LACUNA_OK)
      << lacuna_last_error();
  lacuna_kernel_destroy(kernel);
  kernel = nullptr;
  EXPECT_EQ(try_with_few(kPiece, [&] { return compile(bad, &kernel); }), LACUNA_ERROR_INPUT);
  EXPECT_NE(std::string(lacuna_last_error()).find("[E0204]"), std::string::npos);
}

TEST_F(OutOfMemory, OfALaunchIsAStatusWhicheverThreadItHits) {
  lacuna_kernel* kernel = nullptr;
  ASSERT_EQ(compile(R"({"version": 1, "name": "dense"})", &kernel), LACUNA_OK);
  dense_problem::Problem problem;
  detail::with_raw_args(problem.arguments(), [&](const lacuna_launch_args& raw) {
    EXPECT_EQ(try_with_few(0, [&] { return lacuna_launch(kernel, &raw); }), LACUNA_OK)
        << lacuna_last_error();
  });
  EXPECT_LT(problem.error_against_dense(), 1e-5);
  lacuna_kernel_destroy(kernel);
}

}  // namespace
}  // namespace lacuna
