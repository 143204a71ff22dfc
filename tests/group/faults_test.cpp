// A rank that dies, does something else or asks for something else ends in an error on every rank,
// within the time that the host has set.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstring>

#include "tests/group/harness.hpp"

namespace lacuna::test {
namespace {

constexpr double kTimeoutS = 60, kShortS = 0.3;

struct Rank {
  Engine engine = cpu_engine();
  Group group;
  Rank(const Loopback& loopback, int rank, int size, double timeout_s = kTimeoutS)
      : group(Group::create(
            engine, {.rank = rank, .size = size, .timeout_s = timeout_s, .loopback = &loopback})) {}
};

struct Tensors {
  std::vector<float> q = std::vector<float>(2 * 64 * 64, 0.5F), k = q, v = q, o = q;
  LaunchArgs args(std::int64_t tokens = 64) {
    LaunchArgs args;
    args.q = Tensor(q.data(), f32, {1, 2, tokens, 64});
    args.k = Tensor(k.data(), f32, {1, 2, tokens, 64});
    args.v = Tensor(v.data(), f32, {1, 2, tokens, 64});
    args.o = Tensor(o.data(), f32, {1, 2, tokens, 64});
    return args;
  }
};

GroupKernel compile(const Rank& rank, const char* spec = "dense") {
  return rank.group.compile(shipped(spec), {.head_dim = 64, .dtype = f32});
}

constexpr Shape kWhole{1, 2, 2, 192, 192};

/// Launches so often, or until the group is lost.
void launch_often(const GroupPlan& plan, int launches = 1000) {
  Tensors tensors;
  std::vector<unsigned char> memory(plan.workspace_bytes() + 256);
  LaunchArgs args = tensors.args();
  args.workspace = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256);
  args.workspace_bytes = plan.workspace_bytes();
  for (int i = 0; i < launches; ++i) plan.launch(args);
}

/// How far the rank that dies comes.
enum class Step { kCreated, kCompiled, kPlanned, kLaunched };

TEST(GroupFaults, ARankThatLeavesIsAnErrorOfAllOthers) {
  for (const Step step : {Step::kCreated, Step::kCompiled, Step::kPlanned, Step::kLaunched}) {
    SCOPED_TRACE(static_cast<int>(step));
    const Loopback loopback(3);
    const auto errors = in_threads(3, [&](int number) {
      const bool dies = number == 1;
      const Rank rank(loopback, number, 3);
      if (dies && step == Step::kCreated) return;
      const GroupKernel kernel = compile(rank);
      if (dies && step == Step::kCompiled) return;
      const GroupPlan plan = kernel.plan({.shape = kWhole});
      if (dies && step == Step::kPlanned) return;
      Tensors tensors;
      if (!dies) return launch_often(plan);
      plan.launch(tensors.args(32));  // too few tokens: an error of its own
    });
    for (const int number : {0, 2}) {
      const std::string& error = errors[static_cast<std::size_t>(number)];
      EXPECT_NE(error.find("rank 1"), std::string::npos) << error;
      EXPECT_NE(error.find("E0713"), std::string::npos) << error;
    }
    EXPECT_EQ(errors[1].empty(), step != Step::kLaunched) << errors[1];
  }
}

/// Between the launches of a rank that goes on.
TEST(GroupFaults, ARankThatLeavesAmongLaunchesIsAnErrorAtOnce) {
  for (const int launches : {1, 2, 3, 5, 8, 16}) {
    SCOPED_TRACE(launches);
    const Loopback loopback(2);
    const auto begin = std::chrono::steady_clock::now();
    const auto errors = in_threads(2, [&](int number) {
      const Rank rank(loopback, number, 2);
      const GroupPlan plan = compile(rank).plan({.shape = {1, 2, 2, 128, 128}});
      launch_often(plan, number == 0 ? 1000 : launches);
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_NE(errors[0].find("rank 1 has left it"), std::string::npos) << errors[0];
    EXPECT_NE(errors[0].find("E0713"), std::string::npos) << errors[0];
    EXPECT_EQ(errors[1], "");
    EXPECT_LT(took.count(), kTimeoutS / 2);
  }
}

TEST(GroupFaults, ARankThatNeverComesIsAnErrorInTime) {
  const Loopback loopback(2);
  const Rank present(loopback, 0, 2, kShortS);
  const auto begin = std::chrono::steady_clock::now();
  try {
    compile(present);
    FAIL() << "rank 1 was never there";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), LACUNA_ERROR_ENVIRONMENT);
    EXPECT_NE(std::string(e.what()).find("rank 1 did not come to compile within 0.3 s"),
              std::string::npos)
        << e.what();
  }
  EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
            kShortS);
  EXPECT_THROW(present.group.synchronize(nullptr), Error);
}

TEST(GroupFaults, AnotherSpecIsAnErrorOnAllRanks) {
  const Loopback loopback(3);
  const auto errors = in_threads(3, [&](int number) {
    const Rank rank(loopback, number, 3);
    compile(rank, number == 2 ? "window" : "dense");
  });
  for (const std::string& error : errors)
    EXPECT_NE(error.find("E0506"), std::string::npos) << error;
  EXPECT_NE(errors[0].find("rank 2 for spec window"), std::string::npos) << errors[0];
}

TEST(GroupFaults, ASpecThatOneRankCannotCompileIsAnErrorOnAllRanks) {
  const Loopback loopback(2);
  const auto errors = in_threads(2, [&](int number) {
    const Rank rank(loopback, number, 2);
    rank.group.compile(number == 0 ? shipped("dense") : Spec::parse("{"),
                       {.head_dim = 64, .dtype = f32});
  });
  EXPECT_NE(errors[0].find("rank 1 failed"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("E0101"), std::string::npos) << errors[1];
}

TEST(GroupFaults, AnotherShapeOrSchemeIsAnErrorOnAllRanks) {
  for (const bool other_shape : {true, false}) {
    const Loopback loopback(2);
    const auto errors = in_threads(2, [&](int number) {
      const Rank rank(loopback, number, 2);
      GroupProblem problem{.shape = kWhole, .scheme = Scheme::kGather};
      if (number == 1 && other_shape) problem.shape.n_k = 256;
      if (number == 1 && !other_shape) problem.scheme = Scheme::kHeads;
      compile(rank).plan(problem);
    });
    for (const std::string& error : errors)
      EXPECT_NE(error.find("E0506"), std::string::npos) << error;
  }
}

TEST(GroupFaults, ALaunchWithOtherTensorsLosesTheGroup) {
  const Loopback loopback(2);
  const auto errors = in_threads(2, [&](int number) {
    const Rank rank(loopback, number, 2);
    const GroupPlan plan =
        compile(rank).plan({.shape = {1, 2, 2, 128, 128}, .scheme = Scheme::kGather});
    if (number == 0) return launch_often(plan);
    Tensors tensors;
    plan.launch(tensors.args(32));
  });
  EXPECT_NE(errors[1].find("n_q expected 64 (rank 1), got 32"), std::string::npos) << errors[1];
  EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
}

TEST(GroupFaults, SpecsThatAGroupDoesNotServeAreRefusedByName) {
  const Loopback loopback(1);
  const Rank rank(loopback, 0, 1);
  try {
    compile(rank, "external-mask");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("does not cut lists"), std::string::npos) << e.what();
  }
  try {
    compile(rank, "sparge-video");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("does not change the order of tokens"), std::string::npos)
        << e.what();
  }
}

TEST(GroupFaults, RanksOfALoopbackExchangeAlike) {
  const Loopback loopback(2);
  const Rank first(loopback, 0, 2);
  GroupOptions options{.rank = 1, .size = 2, .loopback = &loopback};
  options.exchange = Exchange::kMessages;
  try {
    Group::create(cpu_engine(), options);
    FAIL() << "the first rank exchanges by copies";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("other ranks of this loopback exchange by copies"),
              std::string::npos)
        << e.what();
  }
}

TEST(GroupFaults, RanksAndSizesThatCannotBeAreRefused) {
  const Loopback loopback(2);
  const Engine engine = cpu_engine();
  const auto refusal = [&](const GroupOptions& options) {
    try {
      Group::create(engine, options);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal({.rank = 0, .size = 3, .loopback = &loopback}).find("size: expected 2"),
            std::string::npos);
  EXPECT_NE(refusal({.rank = 2, .size = 2, .loopback = &loopback}).find("rank: expected 0 to 1"),
            std::string::npos);
  EXPECT_NE(refusal({.rank = 0, .size = 2}).find("expected one of loopback"), std::string::npos);
  const UniqueId id{};
  EXPECT_NE(refusal({.rank = 0, .size = 2, .unique_id = &id}).find("expected an engine of a GPU"),
            std::string::npos);
  const Group first = Group::create(engine, {.rank = 0, .size = 2, .loopback = &loopback});
  EXPECT_NE(refusal({.rank = 0, .size = 2, .loopback = &loopback}).find("has joined"),
            std::string::npos);
}

/// Behind the end of an older struct lies what the caller has there, not a field.
TEST(GroupFaults, StructsOfOlderHeadersAreServed) {
  lacuna_engine_options engine_options{};
  engine_options.struct_size = sizeof engine_options;
  engine_options.device = "cpu";
  lacuna_engine* engine = nullptr;
  ASSERT_EQ(lacuna_engine_create(&engine_options, &engine), LACUNA_OK);
  lacuna_loopback* loopback = nullptr;
  ASSERT_EQ(lacuna_loopback_create(1, &loopback), LACUNA_OK);
  lacuna_group_options options{};
  options.struct_size = offsetof(lacuna_group_options, exchange);
  options.size = 1;
  options.loopback = loopback;
  std::memset(&options.exchange, 0x7f, sizeof options.exchange);
  lacuna_group* group = nullptr;
  ASSERT_EQ(lacuna_group_create(engine, &options, &group), LACUNA_OK) << lacuna_last_error();
  const std::string spec = R"({"version": 1, "name": "dense"})";
  lacuna_compile_options compiled{};
  compiled.struct_size = sizeof compiled;
  compiled.head_dim = 64;
  lacuna_group_kernel* kernel = nullptr;
  ASSERT_EQ(lacuna_group_compile(group, spec.data(), spec.size(), &compiled, &kernel), LACUNA_OK)
      << lacuna_last_error();
  const lacuna_shape shape{sizeof shape, 1, 2, 2, 64, 64};
  lacuna_group_problem problem{};
  problem.struct_size = offsetof(lacuna_group_problem, sequences);
  problem.shape = &shape;
  problem.sequences = problem.max_n_q = problem.max_n_k = -1;
  lacuna_group_plan* plan = nullptr;
  EXPECT_EQ(lacuna_group_plan_create(kernel, &problem, &plan), LACUNA_OK) << lacuna_last_error();
  lacuna_group_plan_destroy(plan);
  lacuna_group_kernel_destroy(kernel);
  lacuna_group_destroy(group);
  lacuna_loopback_destroy(loopback);
  lacuna_engine_destroy(engine);
}

}  // namespace
}  // namespace lacuna::test
