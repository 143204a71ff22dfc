// What a group asks of NCCL and of the driver, in which order; and that it ends where they do not
// answer.
#include "lacuna/group.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/runtime/fake_gpu/fake_nccl.hpp"
#include "tests/runtime/fake_gpu/protocol.hpp"
#include "tests/runtime/scoped_variable.hpp"

namespace lacuna {
namespace {

FakeNccl& nccl() {
  static FakeNccl* const instance = [] {
    void* library = dlopen(LACUNA_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<FakeNccl* (*)()>(dlsym(library, "fake_nccl"))();
  }();
  return *instance;
}

constexpr double kTimeoutS = 0.2;
constexpr v1::Shape kWhole{1, 4, 2, 512, 512};

class GroupProtocol : public Protocol {
 protected:
  void SetUp() override {
    nccl().forget();
    fake().stream_query_result = kCudaSuccess;
    fake().is_capturing = 0;
    fake().peer_result = kCudaSuccess;
    Protocol::SetUp();
  }

  Group group(double link_gb_s = 200, std::int32_t sm_margin = 0, std::int32_t max_ctas = 0,
              Exchange exchange = Exchange::kMessages) {
    const Engine e = engine("cuda:0");
    id_ = Group::unique_id(e);
    return Group::create(e, {.rank = 0,
                             .size = 2,
                             .timeout_s = kTimeoutS,
                             .link_gb_s = link_gb_s,
                             .sm_margin = sm_margin,
                             .max_ctas = max_ctas,
                             .exchange = exchange,
                             .unique_id = &id_});
  }
  static GroupPlan plan(const Group& group, Layout layout = Layout::kContiguous,
                        Scheme scheme = Scheme::kGather, const v1::Shape& whole = kWhole) {
    const auto spec = Spec::parse(
        R"({"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}})");
    return group.compile(spec, {128, bf16})
        .plan({.shape = whole, .layout = layout, .stripe = 128, .scheme = scheme});
  }
  static LaunchArgs arguments(const GroupPlan& plan) {
    const v1::Shape s = plan.shape();
    const auto at = [](std::size_t address) { return reinterpret_cast<void*>(address); };
    LaunchArgs args;
    args.q = Tensor(at(0x10000), bf16, {1, s.heads, s.n_q, 128}, cuda(0));
    args.k = Tensor(at(0x20000), bf16, {1, s.heads_kv, s.n_k, 128}, cuda(0));
    args.v = Tensor(at(0x30000), bf16, {1, s.heads_kv, s.n_k, 128}, cuda(0));
    args.o = Tensor(at(0x40000), bf16, {1, s.heads, s.n_q, 128}, cuda(0));
    args.stream = at(0x5000);
    args.workspace = at(0x1000000);
    args.workspace_bytes = plan.workspace_bytes();
    return args;
  }
  static std::string error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  ScopedVariable library_{"LACUNA_NCCL_PATH", LACUNA_FAKE_NCCL};
  UniqueId id_{};
};

TEST_F(GroupProtocol, MakesACommunicatorThatDoesNotBlock) {
  nccl().polls_in_progress = 3;
  {
    const Group made = group();
    EXPECT_EQ(nccl().config.magic, 0xcafebeefU);
    EXPECT_EQ(nccl().config.size, 48U);
    EXPECT_EQ(nccl().config.blocking, 0);
    EXPECT_EQ(nccl().config.cga_cluster_size, 0) << "clusters find no place between our kernels";
    EXPECT_EQ(nccl().config.max_ctas, 16);
    EXPECT_EQ(nccl().calls, (std::vector<std::string>{"ncclGetUniqueId", "ncclCommInitRankConfig 7",
                                                      "ncclAllGather", "ncclAllGather"}))
        << "two questions: whether all reach each other's memory, and whether all do then";
  }
  EXPECT_EQ(nccl().calls.back(), "ncclCommAbort");
}

/// Rank 0 holds 256 tokens: K and V of two KV heads go to rank 1, and as many come.
TEST_F(GroupProtocol, ExchangesInOneGroupAndLaunchesAfterIt) {
  const Group made = group();
  const GroupPlan planned = plan(made);
  const LaunchArgs args = arguments(planned);
  nccl().calls.clear();
  forget();
  planned.launch(args);
  const std::string bytes = std::to_string(256 * 128 * 2);
  std::vector<std::string> expected = {"ncclGroupStart"};
  for (int i = 0; i < 4; ++i) expected.push_back("ncclSend " + bytes + " peer 1");
  for (int i = 0; i < 4; ++i) expected.push_back("ncclRecv " + bytes + " peer 1");
  expected.push_back("ncclGroupEnd");
  EXPECT_EQ(nccl().calls, expected) << "no results travel";
  EXPECT_EQ(count("cuMemcpy2DAsync"), 2) << "its own K and V, two heads in each";
  EXPECT_EQ(count("cuMemcpyDtoDAsync"), 0);
  EXPECT_EQ(count("cuLaunchKernelEx"), 1);
  EXPECT_EQ(count("cuMemAlloc"), 0);
  EXPECT_EQ(count("cuStream"), 0) << "no launch waits for the stream";
}

/// The same by copies: K and V of two KV heads into rank 1's memory, and flags that say so.
TEST_F(GroupProtocol, CopiesIntoMemoryThatRanksShare) {
  const Group made = group(200, 0, 0, Exchange::kCopies);
  const GroupPlan planned = plan(made);
  EXPECT_LT(planned.workspace_bytes(), std::size_t{256 * 128 * 2}) << "not one head's keys: what "
                                                                      "is exchanged is the plan's";
  EXPECT_EQ(nlohmann::json::parse(planned.json())["shared_bytes"], std::size_t{2} * 2 * 512 * 256)
      << "K and V of two KV heads, all 512 keys";
  const LaunchArgs args = arguments(planned);
  nccl().calls.clear();
  for (const std::uint32_t number : {1U, 2U}) {
    forget();
    planned.launch(args);
    EXPECT_EQ(count("cuMemcpyDtoDAsync"), 4);
    EXPECT_EQ(count("cuMemcpy2DAsync"), 2) << "its own K and V, two heads in each";
    EXPECT_EQ(count("cuStreamWaitValue32"), 2) << "for rank 1's last launch and its keys";
    EXPECT_EQ(count("cuStreamWriteValue32"), 2) << "that its keys are there, and that it has ended";
    EXPECT_EQ(fake().awaited, number);
    EXPECT_EQ(fake().written, number);
    EXPECT_EQ(std::count(fake().waits, fake().waits + fake().wait_count, fake_lane(-5)), 2)
        << "what goes out and what comes in wait for the caller's stream";
    EXPECT_EQ(std::count(fake().waits, fake().waits + fake().wait_count, args.stream), 3)
        << "which waits for the launch, for what goes out and for what comes in";
    EXPECT_EQ(count("cuMemAlloc") + count("cuEventCreate"), 0);
    EXPECT_EQ(count("cuStream"), 0) << "no launch waits for the stream";
  }
  EXPECT_TRUE(nccl().calls.empty());
}

/// The flags of the fake are real, and its rank 1 sets none.
TEST_F(GroupProtocol, NamesTheRankThatDidNotSendItsPart) {
  const Group made = group(200, 0, 0, Exchange::kCopies);
  const GroupPlan planned = plan(made);
  const LaunchArgs args = arguments(planned);
  planned.launch(args);
  fake().stream_query_result = kCudaErrorNotReady;
  const std::string error = error_of([&] { made.synchronize(args.stream); });
  EXPECT_NE(error.find("rank 1 did not send its part"), std::string::npos) << error;
  EXPECT_NE(error.find("E0713"), std::string::npos) << error;
  EXPECT_GT(*reinterpret_cast<const std::uint32_t*>(fake().awaited_at), fake().awaited)
      << "the stream that waits goes on";
  fake().stream_query_result = kCudaSuccess;
}

/// So that nothing is left where a process ends at once.
TEST_F(GroupProtocol, FlagsHaveNoNameOnceAllRanksHaveThem) {
  const Group made = group(200, 0, 0, Exchange::kCopies);
  std::ifstream maps("/proc/self/maps");
  int mapped = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/shm/lacuna-") == std::string::npos) continue;
    ++mapped;
    EXPECT_TRUE(line.ends_with("(deleted)")) << line;
  }
  EXPECT_EQ(mapped, 1);
}

TEST_F(GroupProtocol, SendsMessagesWhereMemoryIsOutOfReach) {
  fake().peer_result = 217;  // CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
  const Group made = group(200, 0, 0, Exchange::kCopies);
  const GroupPlan planned = plan(made);
  EXPECT_NE(planned.json().find(R"("exchange":"messages")"), std::string::npos) << planned.json();
  nccl().calls.clear();
  planned.launch(arguments(planned));
  EXPECT_EQ(nccl().calls.front(), "ncclGroupStart");
}

/// A slow link: the first KV head comes alone, and the second one while it is computed.
TEST_F(GroupProtocol, ExchangesInChunksOnAStreamOfTheHighestPriority) {
  const Group made = group(/*link_gb_s=*/0.001);
  const GroupPlan planned = plan(made);
  LaunchArgs args = arguments(planned);
  nccl().calls.clear();
  forget();
  planned.launch(args);
  EXPECT_EQ(std::ranges::count(nccl().calls, "ncclGroupEnd"), 2);
  EXPECT_EQ(nccl().calls[1], "ncclSend " + std::to_string(256 * 128 * 2) + " peer 1");
  EXPECT_EQ(nccl().stream, fake_lane(-5));
  ASSERT_EQ(count("cuLaunchKernelEx"), 2);
  EXPECT_EQ(fake().launch_streams[0], fake_lane(-4));
  EXPECT_EQ(fake().launch_streams[1], fake_lane(-3));
  EXPECT_EQ(count("cuMemcpyDtoDAsync"), 4) << "a copy of K and one of V for each chunk";
  EXPECT_EQ(count("cuStream"), 0) << "no launch waits for a stream";
  EXPECT_EQ(count("cuMemAlloc") + count("cuEventCreate") + count("cuStreamCreateWithPriority"), 0);
}

/// Four KV heads with more rows each than the 132 multiprocessors of the fake: chunks of 1, 2
/// and 1.
constexpr v1::Shape kLarge{1, 16, 4, 32768, 32768};

std::vector<unsigned> grids_of(int launches) { return {fake().grids, fake().grids + launches}; }

TEST_F(GroupProtocol, LaunchesLeaveMultiprocessorsToInputsOfLaterChunks) {
  const std::pair<std::int32_t, unsigned> kMargins[] = {{0, 116}, {8, 124}, {-1, 132}};
  for (const auto& [margin, grid] : kMargins) {
    const Group made = group(/*link_gb_s=*/100, margin);
    const auto launch = [&](Scheme scheme, int launches) {
      const GroupPlan planned = plan(made, Layout::kContiguous, scheme, kLarge);
      forget();
      planned.launch(arguments(planned));
      EXPECT_EQ(count("cuLaunchKernelEx"), launches);
      return grids_of(launches);
    };
    EXPECT_EQ(launch(Scheme::kGather, 3), (std::vector<unsigned>{grid, grid, grid}))
        << "the queries of the first rank see own keys alone: all comes under any launch";
    EXPECT_EQ(launch(Scheme::kRows, 6), (std::vector<unsigned>{grid, grid, grid, 132, 132, grid}))
        << "nothing comes under the launch that waits for the last chunk; results go under the "
           "last one";
  }
}

TEST_F(GroupProtocol, LaunchesLeaveMultiprocessorsToResultsOfEarlierChunks) {
  const Group made = group(/*link_gb_s=*/0.001);
  const GroupPlan planned = plan(made, Layout::kContiguous, Scheme::kHeads, kLarge);
  forget();
  planned.launch(arguments(planned));
  const auto launches = static_cast<int>(count("cuLaunchKernelEx"));
  ASSERT_GT(launches, 1);
  EXPECT_EQ(grids_of(launches), std::vector<unsigned>(static_cast<std::size_t>(launches), 116));
}

TEST_F(GroupProtocol, AMarginIsWithinItsBounds) {
  EXPECT_EQ((group(200, 0, -1), nccl().config.max_ctas), group::NcclConfig::kUndefined);
  EXPECT_EQ((group(200, 0, 4), nccl().config.max_ctas), 4);
  EXPECT_NE(error_of([&] { group(200, 65); }).find("sm_margin: expected -1 to 64, got 65"),
            std::string::npos);
  const GroupPlan planned = plan(group());
  LaunchArgs args = arguments(planned);
  args.sm_margin = 8;
  EXPECT_NE(error_of([&] { planned.launch(args); }).find("sm_margin: expected 0, got 8"),
            std::string::npos);
}

TEST_F(GroupProtocol, RecordsTheEventsThatThePlanNames) {
  const Group made = group(/*link_gb_s=*/0.001);
  const GroupPlan planned = plan(made);
  const auto names = nlohmann::json::parse(planned.json())["events"];
  EXPECT_EQ(names, nlohmann::json({"begin", "inputs 0 begins", "inputs 0 ends", "launch 0 begins",
                                   "launch 0 ends", "launch 1 begins", "launch 1 ends",
                                   "inputs 1 begins", "inputs 1 ends", "end"}));
  LaunchArgs args = arguments(planned);
  for (std::size_t i = 0; i < names.size(); ++i)
    args.stage_events.push_back(reinterpret_cast<void*>(std::size_t{0x7000} + i));
  forget();
  fake().event_count = 0;
  planned.launch(args);
  std::vector<void*> recorded;
  for (int n = 0; n < fake().event_count; ++n) {
    if (void* event = fake().events[n]; event >= reinterpret_cast<void*>(std::size_t{0x7000}))
      recorded.push_back(event);
  }
  EXPECT_EQ(recorded, args.stage_events);
  args.stage_events.pop_back();
  EXPECT_NE(error_of([&] { planned.launch(args); }).find("stage_events: expected 10"),
            std::string::npos);
}

TEST_F(GroupProtocol, LaunchesOnceForEachStripe) {
  const GroupPlan planned = plan(group(), Layout::kStriped);
  forget();
  planned.launch(arguments(planned));
  EXPECT_EQ(count("cuLaunchKernelEx"), 2);
}

TEST_F(GroupProtocol, AStuckExchangeEndsInAnError) {
  const Group made = group();
  const GroupPlan planned = plan(made);
  nccl().polls_in_progress = 1 << 30;
  const std::string error = error_of([&] { planned.launch(arguments(planned)); });
  EXPECT_NE(error.find("ncclGroupEnd did not end within 0.2 s"), std::string::npos) << error;
  EXPECT_NE(error.find("E0713"), std::string::npos) << error;
  EXPECT_EQ(std::ranges::count(nccl().calls, "ncclCommAbort"), 1);
  EXPECT_NE(error_of([&] { planned.launch(arguments(planned)); }).find("the group is lost"),
            std::string::npos);
  EXPECT_NE(error_of([&] { made.synchronize(nullptr); }).find("the group is lost"),
            std::string::npos);
  EXPECT_EQ(std::ranges::count(nccl().calls, "ncclCommAbort"), 1) << "once is enough";
}

TEST_F(GroupProtocol, AStuckStreamEndsInAnError) {
  const Group made = group();
  fake().stream_query_result = kCudaErrorNotReady;
  const std::string error = error_of([&] { made.synchronize(nullptr); });
  EXPECT_NE(error.find("work on a stream did not end within 0.2 s"), std::string::npos) << error;
  EXPECT_EQ(nccl().calls.back(), "ncclCommAbort");
}

TEST_F(GroupProtocol, ErrorsOfNcclAreShown) {
  const Group made = group();
  const GroupPlan planned = plan(made);
  nccl().send_result = 5;
  const std::string error = error_of([&] { planned.launch(arguments(planned)); });
  EXPECT_NE(error.find("ncclSend: as the test asked (5) [E0712]"), std::string::npos) << error;
  EXPECT_EQ(nccl().calls.back(), "ncclCommAbort");
}

TEST_F(GroupProtocol, ErrorsThatComeLaterAreShown) {
  const Group made = group();
  nccl().async_error = 6;
  fake().stream_query_result = kCudaErrorNotReady;
  const std::string error = error_of([&] { made.synchronize(nullptr); });
  EXPECT_NE(error.find("work of NCCL on a stream: as the test asked (6)"), std::string::npos)
      << error;
}

TEST_F(GroupProtocol, ALaunchInAGraphIsRefused) {
  const Group made = group();
  const GroupPlan planned = plan(made);
  fake().is_capturing = 1;
  const std::string error = error_of([&] { planned.launch(arguments(planned)); });
  EXPECT_NE(error.find("is being captured"), std::string::npos) << error;
  fake().is_capturing = 0;
  EXPECT_EQ(error_of([&] { planned.launch(arguments(planned)); }), "") << "the group goes on";
}

TEST_F(GroupProtocol, RanksThatAskForOtherThingsAreFoundOut) {
  const Group made = group();
  nccl().peers_disagree = true;
  EXPECT_NE(error_of([&] { plan(made); }).find("E0506"), std::string::npos);
}

TEST_F(GroupProtocol, ARankThatDiedBeforeItSaidAnythingIsLost) {
  const Group made = group();
  nccl().peers_are_dead = true;
  const std::string error = error_of([&] { plan(made); });
  EXPECT_NE(error.find("rank 1 died before compile"), std::string::npos) << error;
  EXPECT_NE(error.find("E0713"), std::string::npos) << error;
}

TEST_F(GroupProtocol, WhatADeadRankSaidBeforeIsNotTakenForItsAnswer) {
  const Group made = group();
  plan(made);
  nccl().peers_are_dead = true;
  const std::string error = error_of([&] { plan(made); });
  EXPECT_NE(error.find("rank 1 died before compile"), std::string::npos) << error;
  EXPECT_NE(error.find("E0713"), std::string::npos) << error;
}

TEST_F(GroupProtocol, AMissingNcclIsNamed) {
  const ScopedVariable nowhere("LACUNA_NCCL_PATH", "/nowhere/libnccl.so.2");
  const Engine e = engine("cuda:0");
  const std::string error = error_of([&] { Group::unique_id(e); });
  EXPECT_NE(error.find("[E0711]"), std::string::npos) << error;
  EXPECT_NE(error.find("LACUNA_NCCL_PATH=/nowhere/libnccl.so.2"), std::string::npos) << error;
}

TEST_F(GroupProtocol, TheHostsCommunicatorStaysTheHosts) {
  nccl().size = 2;
  const Engine e = engine("cuda:0");
  {
    const Group made =
        Group::create(e, {.timeout_s = kTimeoutS,
                          .link_gb_s = 200,
                          .communicator = reinterpret_cast<void*>(std::size_t{0x9000})});
    plan(made).launch(arguments(plan(made)));
  }
  EXPECT_EQ(std::ranges::count(nccl().calls, "ncclCommAbort"), 0);
  const Engine other = engine("cuda:1");
  EXPECT_NE(error_of([&] {
              Group::create(other, {.link_gb_s = 200,
                                    .communicator = reinterpret_cast<void*>(std::size_t{0x9000})});
            }).find("expected one of device cuda:1"),
            std::string::npos);
}

}  // namespace
}  // namespace lacuna
