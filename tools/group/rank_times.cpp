#include "tools/group/rank_times.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

constexpr double kSampleUs = 50e3;
constexpr double kMostLaunches = 8;
constexpr std::size_t kSingles = 5;

double host_us(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

std::size_t launches_of_sample(double launch_us) {
  return static_cast<std::size_t>(std::clamp(std::ceil(kSampleUs / launch_us), 1.0, kMostLaunches));
}

double time_sample_us(const Place& place, std::size_t launches, const std::function<void()>& launch,
                      const std::function<void()>& wait, Diagnostics& diagnostics) {
  const auto launch_all = [&] {
    for (std::size_t n = 0; n < launches; ++n) launch();
  };
  const auto count = static_cast<double>(launches);
  if (!place.gpu) return host_us(launch_all) / count;
  DeviceTimer timer(place.gpu, diagnostics);
  timer.start(place.stream->handle(), diagnostics);
  launch_all();
  timer.stop(place.stream->handle(), diagnostics);
  wait();
  return timer.elapsed_us(diagnostics) / count;
}

LaunchTimes time_launches(const RankLaunches& rank, std::size_t samples, std::size_t launches,
                          DeviceErrors& errors) {
  LaunchTimes times;
  const auto time = [&](std::size_t count) {
    rank.all.arrive_and_wait();
    const double time_us = time_sample_us(
        rank.place, count, [&] { rank.plan.launch(rank.args); },
        [&] { rank.group.synchronize(rank.args.stream); },  // where a rank is lost, this ends
        errors.diagnostics);
    errors.check();
    return time_us;
  };
  time(1);  // NCCL connects
  for (std::size_t n = 0; n < kSingles; ++n) times.single_us.push_back(time(1));
  for (std::size_t n = 0; n < samples; ++n) times.sample_us.push_back(time(launches));
  return times;
}

ordered_json trace_launch(const RankLaunches& rank, DeviceErrors& errors) {
  ordered_json trace = ordered_json::array();
  if (!rank.place.gpu) return trace;
  const auto names = ordered_json::parse(rank.plan.json())["events"];
  DeviceEvents events(rank.place.gpu, names.size(), errors.diagnostics);
  errors.check();
  v1::LaunchArgs traced = rank.args;
  traced.stage_events = events.handles();
  rank.all.arrive_and_wait();
  // Behind other launches, so that the host is ahead of the GPU.
  rank.plan.launch(rank.args);
  rank.plan.launch(rank.args);
  rank.plan.launch(traced);
  rank.group.synchronize(rank.args.stream);
  const std::vector<double> times_us = events.since_first_us(errors.diagnostics);
  errors.check();
  for (std::size_t n = 0; n < times_us.size(); ++n)
    trace.push_back({names[n], std::round(10 * times_us[n]) / 10});
  return trace;
}

}  // namespace lacuna::tools
