// Events of the caller's around the kernels of a launch.
#include <cstddef>
#include <optional>

#include "runtime/cuda/device_memory.hpp"
#include "tests/runtime/fake_gpu/count_allocations.hpp"
#include "tests/runtime/fake_gpu/pooled.hpp"

namespace lacuna {
namespace {

constexpr std::size_t kStages = 6;

class Events : public Pooled {
 protected:
  void SetUp() override {
    Protocol::SetUp();
    if (IsSkipped()) return;
    kernel_.emplace(prepared(engine()));
  }

  /// Arguments with events that the fake never touches: 0x7001, 0x7002, ...
  LaunchArgs arguments(std::size_t events = kStages + 1) const {
    LaunchArgs args = Pooled::arguments(*kernel_);
    for (std::size_t i = 0; i < events; ++i)
      args.stage_events.push_back(reinterpret_cast<void*>(0x7001 + i));
    return args;
  }

  std::string error_of(const LaunchArgs& args) const { return Pooled::error_of(*kernel_, args); }

  static std::vector<void*> recorded() {
    return std::vector<void*>(fake().events, fake().events + fake().event_count);
  }

  /// What reached the stream, in its order.
  static std::vector<std::string> enqueued() {
    std::vector<std::string> names = calls();
    std::erase_if(names, [](const std::string& name) {
      return name != "cuEventRecord" && name != "cuLaunchKernelEx";
    });
    return names;
  }

  std::optional<Kernel> kernel_;
};

TEST_F(Events, OneIsRecordedBeforeTheKernelsAndOneAfterEach) {
  const LaunchArgs args = arguments();
  kernel_->launch(args);
  std::vector<std::string> expected = {"cuEventRecord"};
  for (std::size_t stage = 0; stage < kStages; ++stage)
    expected.insert(expected.end(), {"cuLaunchKernelEx", "cuEventRecord"});
  EXPECT_EQ(enqueued(), expected);
  EXPECT_EQ(recorded(), args.stage_events);
  for (int n = 0; n < fake().event_count; ++n)
    EXPECT_EQ(fake().event_streams[n], static_cast<CUstream>(args.stream));
  EXPECT_EQ(count("cuEvent") + count("cuStream"), 0) << "nothing that waits, or breaks a capture";
}

TEST_F(Events, InfoNamesTheKernelsAlsoBeforePreparation) {
  const std::string names =
      R"("stages":["prepare_q","prepare_k","estimate","compact","order_rows","attend"])";
  EXPECT_NE(kernel_->info_json().find(names), std::string::npos) << kernel_->info_json();
  const Kernel unprepared = compiled(engine());
  EXPECT_NE(unprepared.info_json().find(names), std::string::npos) << unprepared.info_json();
}

TEST_F(Events, NoneIsLeftOutWithItsKernel) {
  LaunchArgs args = arguments();
  Selection selection(reinterpret_cast<void*>(std::size_t{0x90000}),
                      kernel_->selection_bytes(kShape));
  args.selection = &selection;
  kernel_->launch(args);
  forget();
  kernel_->launch(args);
  EXPECT_EQ(enqueued(), (std::vector<std::string>{
                            "cuEventRecord", "cuEventRecord", "cuEventRecord", "cuEventRecord",
                            "cuLaunchKernelEx", "cuEventRecord", "cuLaunchKernelEx",
                            "cuEventRecord", "cuLaunchKernelEx", "cuEventRecord"}));
  EXPECT_EQ(recorded(), args.stage_events);
}

TEST_F(Events, AreRecordedWhereThereIsNothingToLaunch) {
  LaunchArgs args = arguments();
  args.q = Tensor(reinterpret_cast<void*>(std::size_t{0x10000}), bf16, {2, 8, 0, 128}, cuda(0));
  args.o = args.q;
  args.counts = {};
  kernel_->launch(args);
  EXPECT_EQ(count("cuLaunchKernelEx"), 0);
  EXPECT_EQ(recorded(), args.stage_events);
}

TEST_F(Events, ALaunchWithoutThemRecordsNone) {
  kernel_->launch(arguments(0));
  EXPECT_EQ(fake().event_count, 0);
  EXPECT_EQ(count("cuLaunchKernelEx"), 6);
}

TEST_F(Events, AnotherNumberIsRefused) {
  const std::string prefix = "pooled.json: error: kernel pooled, stage_events";
  EXPECT_EQ(error_of(arguments(3)), prefix + ": expected 7 events for 6 kernels, got 3 [E0503]\n");
  LaunchArgs args = arguments();
  args.stage_events[2] = nullptr;
  EXPECT_EQ(error_of(args), prefix + "[2]: expected an event, got null [E0503]\n");
  EXPECT_EQ(fake().event_count, 0);
  EXPECT_EQ(count("cuLaunchKernelEx"), 0);
}

/// The same call through the C ABI, where sizes and pointers come apart.
class RawEvents : public Events {
 protected:
  lacuna_launch_args raw() {
    args_ = arguments();
    const v1::Tensor* tensors[] = {&args_.q, &args_.k, &args_.v, &args_.o};
    for (int i = 0; i < 4; ++i) views_[i] = tensors[i]->view();
    lacuna_launch_args raw{};
    raw.struct_size = sizeof(raw);
    raw.q = &views_[0];
    raw.k = &views_[1];
    raw.v = &views_[2];
    raw.o = &views_[3];
    raw.workspace = args_.workspace;
    raw.workspace_bytes = args_.workspace_bytes;
    raw.stage_events = args_.stage_events.data();
    raw.stage_events_count = args_.stage_events.size();
    return raw;
  }

  LaunchArgs args_;
  DLTensor views_[4]{};
};

TEST_F(RawEvents, ACallerWithAnOlderHeaderPassesNone) {
  lacuna_launch_args raw = this->raw();
  raw.struct_size = offsetof(lacuna_launch_args, stage_events);
  EXPECT_EQ(lacuna_launch(kernel_->handle(), &raw), LACUNA_OK) << lacuna_last_error();
  EXPECT_EQ(fake().event_count, 0);
  raw.struct_size = offsetof(lacuna_launch_args, previous_lse) - 8;  // before the first release
  EXPECT_EQ(lacuna_launch(kernel_->handle(), &raw), LACUNA_ERROR_INPUT);
  EXPECT_EQ(std::string(lacuna_last_error()),
            "lacuna: error: lacuna_launch_args.struct_size: expected " +
                std::to_string(sizeof(raw)) + ", got " + std::to_string(raw.struct_size) +
                " [E0503]\n");
}

TEST_F(RawEvents, ACountWithoutEventsIsRefused) {
  lacuna_launch_args raw = this->raw();
  raw.stage_events = nullptr;
  EXPECT_EQ(lacuna_launch(kernel_->handle(), &raw), LACUNA_ERROR_INPUT);
  EXPECT_STREQ(lacuna_last_error(),
               "pooled.json: error: kernel pooled, stage_events: expected 7 events for 6 kernels, "
               "got null [E0503]\n");
}

TEST_F(RawEvents, RecordingThemAllocatesNothing) {
  const lacuna_launch_args raw = this->raw();
  ASSERT_EQ(lacuna_launch(kernel_->handle(), &raw), LACUNA_OK) << lacuna_last_error();
  const long before = allocations_of_this_thread();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(lacuna_launch(kernel_->handle(), &raw), LACUNA_OK);
  EXPECT_EQ(allocations_of_this_thread() - before, 0);
}

TEST_F(Events, TheTimesBetweenDeviceEventsAreThoseOfTheDriver) {
  Diagnostics errors;
  const auto device = open_device(load_driver(errors), 0, errors);
  ASSERT_NE(device, nullptr);
  forget();
  {
    DeviceEvents events(device, 3, errors);
    ASSERT_EQ(events.handles().size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(events.record(i, nullptr, errors));
    EXPECT_FALSE(events.record(3, nullptr, errors));
    EXPECT_EQ(events.elapsed_us(errors), (std::vector<double>{1500, 1500}));
  }
  EXPECT_FALSE(errors.has_errors());
  EXPECT_EQ(count("cuEventCreate"), 3);
  EXPECT_EQ(count("cuEventRecord"), 3);
}

}  // namespace
}  // namespace lacuna
