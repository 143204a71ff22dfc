// The rows of a prepare block in registers: how they are loaded, held from pass to pass, and read
// again where something is out of the ordinary.
#pragma once

#include "base/pin.cuh"
#include "loader/stored_rows.cuh"
#include "prepare/side.cuh"
#include "shared/prepare_block.cuh"

namespace lacuna {

template <class Config>
constexpr auto prepared_row_type() {
  if constexpr (Config::kIsQuery) {
    return NumberRow<typename Config::Element>{};
  } else {
    return StoredRow<Config>{};
  }
}
template <class Config>
using PreparedRow = decltype(prepared_row_type<Config>());

/// Where the kernel smooths, what is held is x - mean in f32, so that the mean is taken away once;
/// else the 16-bit elements, which take half the room and cost one instruction each to unpack.
template <class Config, class Args>
class PrepareRows {
 public:
  using Element = typename Config::Element;
  using Row = PreparedRow<Config>;
  using Layout = TokenLayout<Config::kHeadDim, Config::kTokens, Config::kThreads>;
  using Columns = float[Layout::kSteps][8];  ///< one number for each column of a lane
  using PerPass = float[Layout::kPasses];    ///< one number for each row of a lane
  /// Is something written for tokens past the end?
  static constexpr bool kPads =
      Config::kBits != 0 || Config::kEstimateBits != 0 || Config::kRoundsSummary || Config::kBias;

  /// `number`: of a block's tokens, counted through the heads.
  __device__ __forceinline__ PrepareRows(const Args& args, int number)
      : args_(args), side_(prepare_side<Config::kIsQuery>(args)), row_(Layout::first_row()) {
    const auto blocks = static_cast<unsigned>(side_.padded / Config::kTokens);
    const auto block = static_cast<unsigned>(number);
    head_ = static_cast<int>(block / blocks);
    first_ = static_cast<int>(block - block / blocks * blocks) * Config::kTokens;
    left_ = side_.n - first_;
  }

  __device__ __forceinline__ const Args& args() const { return args_; }
  __device__ __forceinline__ const PrepareSide& side() const { return side_; }
  __device__ __forceinline__ int head() const { return head_; }
  /// Does the block have work? Integers, biases and cells are written up to whole kPreparedTokens,
  /// of a sequence up to its own, whatever the longest has.
  __device__ __forceinline__ bool exist() const {
    if (is_beyond<Config>(head_, side_.heads)) return false;
    if constexpr (!kPads) return left_ > 0;
    return !is_beyond<Config>(first_, prepared_length(side_.n));
  }
  __device__ __forceinline__ int first() const { return first_; }
  __device__ __forceinline__ int left() const { return left_; }
  /// Of this lane in a pass, counted from the block's first token.
  __device__ __forceinline__ int row_of(int pass) const {
    return row_ + pass * Layout::kRowsPerPass;
  }
  /// A pass of all warps may be longer than the block.
  __device__ __forceinline__ bool is_in_block(int pass) const {
    return Layout::kRows == Config::kTokens || row_of(pass) < Config::kTokens;
  }
  __device__ __forceinline__ bool is_real(int pass) const {
    return row_of(pass) < left_ && is_in_block(pass);
  }

  /// All loads are issued before the first is waited for. Rows past the end are zeros.
  __device__ __forceinline__ void load() {
    if (left_ >= Layout::kRows && Layout::kRows == Config::kTokens) {
      load_rows<true>();
    } else {
      load_rows<false>();
    }
    if constexpr (Config::kSmooth) load_columns(mean_, side_.mean, head_);
  }

  __device__ __forceinline__ static void load_columns(Columns& columns, const float* array,
                                                      long long head) {
#pragma unroll
    for (int step = 0; step < Layout::kSteps; ++step) {
      load_floats(columns[step], array + head * Config::kHeadDim + Layout::column(step));
    }
  }

  /// The elements themselves, before `smooth`.
  __device__ __forceinline__ void raw_chunk(float (&x)[8], int pass, int step) const {
    unpack_chunk<Element>(x, loaded_[pass][step]);
  }
  __device__ __forceinline__ const uint4& loaded(int pass, int step) const {
    return loaded_[pass][step];
  }

  /// Takes the mean away from one chunk, which from here on `chunk` gives.
  __device__ __forceinline__ void smooth(int pass, int step) {
    if constexpr (!Config::kSmooth) return;
    const float factor = is_real(pass) ? -1.0f : 0.0f;  // zeros past the end remain
    float x[8];
    raw_chunk(x, pass, step);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      differences_[pass][step][e] = fmaf(mean_[step][e], factor, x[e]);
    }
  }

  /// x, or x - mean.
  __device__ __forceinline__ void chunk(float (&x)[8], int pass, int step) const {
    if constexpr (Config::kSmooth) {
#pragma unroll
      for (int e = 0; e < 8; ++e) x[e] = differences_[pass][step][e];
    } else {
      raw_chunk(x, pass, step);
    }
  }

  /// What was unpacked of the rows so far does not wait in registers for its next use.
  __device__ __forceinline__ void forget() {
#pragma unroll
    for (int pass = 0; !Config::kSmooth && pass < Layout::kPasses; ++pass) {
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        uint4& chunk = loaded_[pass][step];
        pin(chunk.x), pin(chunk.y), pin(chunk.z), pin(chunk.w);
      }
    }
  }

  /// From memory, for the paths that hardly any row takes: x or x - mean of a real token.
  template <bool kSmooth>
  __device__ __forceinline__ float element(int row, int column) const {
    float x;
    if constexpr (kHasPages) {
      x = row_at(first_ + row, column).number();
    } else {
      const Row first = row_at(0).moved(-Layout::column(0)).moved(column);
      x = first.moved((row - row_of(0)) * side_.x.stride_n).number();
    }
    if constexpr (!kSmooth) return x;
    return x - side_.mean[static_cast<long long>(head_) * Config::kHeadDim + column];
  }
  /// A chunk, by a pass that is no constant.
  __device__ __forceinline__ void read_again(float (&x)[8], int pass, int step) const {
    uint4 chunk = {0, 0, 0, 0};
    if (is_real(pass)) {
      chunk = row_at(pass).moved(step * Layout::kLanesPerRow * 8).chunk();
    }
    unpack_chunk<Element>(x, chunk);
    if (!Config::kSmooth || !is_real(pass)) return;
    float mean[8];
    load_floats(
        mean, side_.mean + static_cast<long long>(head_) * Config::kHeadDim + Layout::column(step));
#pragma unroll
    for (int e = 0; e < 8; ++e) x[e] -= mean[e];
  }

 private:
  template <bool kAllReal>
  __device__ __forceinline__ void load_rows() {
    Row source;
    if constexpr (!kHasPages) source = row_at(0);
    const long long stride = side_.x.stride_n * Layout::kRowsPerPass;
#pragma unroll
    for (int pass = 0; pass < Layout::kPasses; ++pass) {
#pragma unroll
      for (int step = 0; step < Layout::kSteps; ++step) {
        uint4& chunk = loaded_[pass][step];
        if (!kAllReal) chunk = uint4{0, 0, 0, 0};
        if (kAllReal || is_real(pass)) {
          if (kHasPages && step == 0) source = row_at(pass);
          chunk = source.moved(step * Layout::kLanesPerRow * 8).chunk();
        }
      }
      source = source.moved(stride);
    }
  }

  /// This lane's row of a pass, from its first chunk on.
  __device__ __forceinline__ Row row_at(int pass) const {
    return row_at(first_ + row_of(pass), Layout::column(0));
  }
  __device__ __forceinline__ Row row_at(int token, int column) const {
    const auto head = static_cast<unsigned>(head_), heads = static_cast<unsigned>(side_.heads);
    // Of one sequence heads are all there are.
    const unsigned b = kHasPages ? 0 : head / heads;
    const int of_entry = static_cast<int>(head - b * heads);
    if constexpr (Config::kIsQuery) {
      return query_row<Config>(side_.x, static_cast<int>(b), of_entry, token, column);
    } else {
      return stored_row<Config, KvTensor::kKeys>(args_, side_.x, static_cast<int>(b), of_entry,
                                                 token, column);
    }
  }

  /// Queries never do.
  static constexpr bool kHasPages = !Config::kIsQuery && attends_to_pages<Config>();

  const Args& args_;
  const PrepareSide side_;
  int row_;
  int head_;   ///< of all batch entries
  int first_;  ///< token of the block
  int left_;   ///< tokens from there to the end; negative where all are past it
  uint4 loaded_[Layout::kPasses][Layout::kSteps];
  float differences_[Config::kSmooth ? Layout::kPasses : 1][Layout::kSteps][8];
  Columns mean_;
};

}  // namespace lacuna
