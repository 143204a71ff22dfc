// Launches of calibration: a spec on samples that lie in their place, with any parameters, and what
// each head reaches against dense attention.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/calibrate/samples.hpp"

// After the compiler's headers, as tools/run/tensors.hpp says.
#include "tools/run/kernels.hpp"

namespace lacuna::tools {

/// Of one head on one sample.
struct HeadMeasure {
  double rel_l1 = 0;
  double standard_error = 0;  ///< of rel_l1, as work tiles differ: how far to trust it elsewhere
  std::int64_t visible = 0, computed = 0;  ///< tiles; computed: visited and not gated
};

/// Throws v1::Error or DeviceFailure (guard_device reports them).
class Trial {
 public:
  /// Compiles the spec and places the samples.
  Trial(const SpecDocument& document, const std::vector<Sample>& samples,
        const LaunchOptions& options, const Session& session);

  /// Parameters of the spec that are the same in all launches.
  void fix(std::vector<ParamInput> params) { fixed_ = std::move(params); }

  /// One launch on a sample, and its output against dense attention.
  std::vector<HeadMeasure> launch(std::size_t sample, const std::vector<ParamInput>& params);

  /// The tile mask [heads, q_tiles, k_tiles] of a launch. Its output, which is larger by orders of
  /// magnitude, stays where it is.
  std::vector<std::uint8_t> probe(std::size_t sample, const std::vector<ParamInput>& params);

  std::size_t samples() const { return places_.size(); }
  std::int64_t heads() const { return places_.front().inputs.q.shape[1]; }
  std::int64_t q_tiles(std::size_t sample) const;
  std::int64_t k_tiles(std::size_t sample) const;
  v1::Tile tile() const { return kernel_.tile(); }
  std::string device_name() const { return engine_.device_name(); }

 private:
  struct PlacedSample {
    Inputs inputs;
    Tensors tensors;
    AlignedBuffer workspace;
    Extras extras;
    std::vector<float> dense_o;
  };
  void launch_dense(PlacedSample& sample);
  v1::LaunchArgs prepare(PlacedSample& sample, const std::vector<ParamInput>& params);
  std::vector<HeadMeasure> compare_heads(const PlacedSample& sample, const Array& o,
                                         const Array& counts) const;

  const SpecDocument& document_;
  v1::Engine engine_;
  DeviceErrors errors_;
  Place place_;
  v1::Kernel kernel_;
  std::vector<PlacedSample> places_;
  std::vector<ParamInput> fixed_;
};

}  // namespace lacuna::tools
