// The producer of the wgmma family where keys and values are rows of e4m3: a warp walks and loads
// codes, and all warps of its warpgroup make 16-bit rows of them (layout/code_places.cuh).
// Consumers find slots as other producers fill them.
#pragma once

#include "attend/wgmma/producers/code_loads.cuh"
#include "attend/wgmma/producers/producer.cuh"

namespace lacuna {

template <class Config, class Hooks, class Args>
class ConvertingProducer {
  using Shape = WgmmaShape<Config>;
  using Smem = WgmmaSmem<Config>;

 public:
  static constexpr int kWarps = kConvertingWarps;  ///< that run

  __device__ __forceinline__ ConvertingProducer(const Args& args, const Smem& smem)
      : args_(args), smem_(smem) {}

  __device__ __forceinline__ void run() {
    const int warp = warp_index() - Shape::kConsumerWarps;
    if (warp == 0) {
      WgmmaProducer<Config, Hooks, Args, CodeLoads<Config, Args>>(args_, smem_).run();
    } else {
      CodeConverter<Config, Args> converter(args_, smem_, warp);
      while (converter.convert_next()) {
      }
    }
  }

 private:
  const Args& args_;
  const Smem smem_;
};

}  // namespace lacuna
