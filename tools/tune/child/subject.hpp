// What a tuning child does with candidates: compiles them, holds their output against the
// references, times them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/tune/child/verify.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/tune/child/problem.hpp"

namespace lacuna::tools {

/// All but the constructor throw v1::Error or DeviceFailure.
class TuneSubject {
 public:
  explicit TuneSubject(TuneContext context) : context_(std::move(context)) {}

  /// Fills the problems and computes what is used without tuning: "" or how far that is from the
  /// interpreter. First of all calls.
  std::string open();
  double density() const { return density_; }
  double usual_time_us() const { return usual_time_us_; }
  bool asked_interpreter() const { return small_expected_.size() > 0; }

  /// Compiles them, several at a time.
  void prepare(const std::vector<tune::Config>& configs);
  /// `spoil`: as if the output were off by one, for tests.
  tune::Sample verify(const tune::Config& config, bool spoil);
  tune::Sample time(const tune::Config& config);

 private:
  const v1::Engine& engine_for(int threads);
  const v1::Kernel& kernel_of(const tune::Config& config);
  std::vector<float> interpret();

  TuneContext context_;
  std::map<int, v1::Engine> engines_;  ///< by threads; one on a GPU
  Place place_;
  TuneProblem problem_{context_, place_}, small_{context_, place_};
  std::vector<float> expected_, small_expected_;
  std::map<std::string, v1::Kernel> kernels_;
  std::map<std::string, BoundKernel> bound_;  ///< to problem_
  double density_ = 1, usual_time_us_ = 0;
  std::size_t next_set_ = 0;
};

}  // namespace lacuna::tools
