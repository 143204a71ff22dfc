// The producer of predict_token_softmax: one warp. It takes rows, finds their steps, and loads what
// belongs to each. Protocol: select/token_softmax/token_softmax_shape.cuh.
#pragma once

#include "arch/copy/cp_async.cuh"
#include "pipeline/row_counter.cuh"
#include "select/token_softmax/token_softmax_shape.cuh"

namespace lacuna {

/// The runs of a row, one after the other.
template <class Config, class Hooks, class Args>
class TokenSoftmaxWalk {
  using Shape = TokenSoftmaxShape<Config>;

 public:
  __device__ __forceinline__ TokenSoftmaxWalk(const Args& args, const KeepRow& row)
      : args_(args), row_(row) {}

  /// The first key of the next run; less than 0 if there is none.
  __device__ __forceinline__ int next() {
    if (Shape::kRunsOfTile > 1 && of_tile_ > 0) {
      if (++of_tile_ == Shape::kRunsOfTile) of_tile_ = 0;
      return last_ += Shape::kRunKeys;
    }
    while (left_ == 0) {
      if (++word_ >= args_.predict.keep_words) return -1;
      left_ = seen_tiles<Config, Hooks>(args_, row_, word_);
    }
    last_ = (word_ * 32 + __ffs(static_cast<int>(left_)) - 1) * Config::kTileK;
    left_ &= left_ - 1;
    ++tiles_;
    if (Shape::kRunsOfTile > 1) of_tile_ = 1;
    return last_;
  }
  /// Of the runs so far.
  __device__ __forceinline__ int tiles() const { return tiles_; }

 private:
  const Args& args_;
  const KeepRow& row_;
  int tiles_ = 0;
  int word_ = -1, last_ = 0, of_tile_ = 0;
  u32 left_ = 0;
};

template <class Config, class Hooks, class Args>
class TokenSoftmaxProducer {
  using Shape = TokenSoftmaxShape<Config>;
  using Smem = TokenSoftmaxSmem<Config>;
  using Walk = TokenSoftmaxWalk<Config, Hooks, Args>;
  using RunTile = typename Shape::RunTile;

  /// Of a part, for this lane: biases of two keys, the scale of one unit of one lane of a quad.
  struct Numbers {
    float2 bias;
    float scale;
  };

 public:
  __device__ __forceinline__ TokenSoftmaxProducer(const Args& args, const Smem& smem)
      : args_(args), smem_(smem), ring_(smem) {}

  __device__ __forceinline__ void run() {
    const int rows = args_.attend.n_b * args_.attend.n_h * args_.predict.keep_q_tiles;
    u32 parity = 1;  // of queries_free: nobody has queries yet
    int number = block_index();
#pragma unroll 1
    for (; number < rows; parity ^= 1) {
      produce(number, parity);
      // Steps of the row are still to be taken while the atomic is under way.
      RowCounter counter(row_counter<Config>(args_));
      counter.ask();
      number = counter.take();
    }
    ring_.await_slot();
    if (lane_index() == 0) smem_.control().messages[ring_.slot()].row = -1;
    ring_.announce();
  }

 private:
  __device__ __forceinline__ void produce(int number, u32 parity) {
    const KeepRow row = softmax_row<Config>(args_, number);
    point_to_keys(row);
    Walk walk(args_, row);
    int key = walk.next();
    Smem::barrier(smem_.control().queries_free).wait(parity);
    if (key >= 0) copy_queries(row);
    bool is_first = true, is_last = false;
#pragma unroll 1
    while (!is_last) {
      // Lane n has the first key of run n; of a missing one it is past the end.
      int own = lane_index() == 0 ? key : args_.attend.n_k;
#pragma unroll 1
      for (int n = 1; n < Shape::kRuns && key >= 0; ++n) {
        key = walk.next();
        if (key >= 0 && lane_index() == n) own = key;
      }
      if (key >= 0) key = walk.next();
      is_last = key < 0;
      const int first = __shfl_sync(kAllLanes, own, 0);
      const int there = own < args_.attend.n_k ? own : first;
      Numbers numbers[Shape::kParts] = {};
      // Under way while consumers still have the slot.
      if (first >= 0) read_numbers(numbers, there);
      ring_.await_slot();
      if (first >= 0) load_step(numbers, there);
      cp_async_commit();
      const bool is_partial = lane_index() < Shape::kRuns && is_partial_run(row, own);
      write_message(number, own, is_last ? walk.tiles() : 0, __any_sync(kAllLanes, is_partial));
      // The next row waits for the end of this one, so the last step cannot wait for the next row.
      if (!is_first) ring_.announce_before();
      if (is_last) ring_.announce_when_there();
      ring_.pass();
      is_first = false;
    }
  }

  __device__ __forceinline__ void write_message(int number, int key, int tiles,
                                                bool is_partial) const {
    auto& message = smem_.control().messages[ring_.slot()];
    if (lane_index() < Shape::kRuns) message.key[lane_index()] = key;
    if (lane_index() == 0) {
      message.row = number;
      message.tiles = tiles;
      message.is_partial = is_partial;
    }
  }

  __device__ __forceinline__ void point_to_keys(const KeepRow& row) {
    const PredictArgs& predict = args_.predict;
    const long long head = key_head(args_, row.b, row.h);
    keys_ =
        predict.estimate_k_values + head * predict.k_padded * Config::kHeadDim + lane_index() * 16;
    scale_ = predict.estimate_k_scale + head * predict.estimate_k_groups;
    if constexpr (Config::kHasColumnBias)
      bias_ = predict.column_bias + query_head(args_, row.b, row.h) * predict.k_padded;
  }

  __device__ __forceinline__ void copy_queries(const KeepRow& row) const {
    const PredictArgs& predict = args_.predict;
    const long long first = query_head(args_, row.b, row.h) * predict.q_padded + row.q0;
    copy<typename Shape::QueryTile>(
        smem_.queries(), predict.estimate_q_values + first * Config::kHeadDim + lane_index() * 16);
  }

  /// `key`: the first of run n, from lane n.
  __device__ __forceinline__ void load_step(const Numbers (&numbers)[Shape::kParts],
                                            int key) const {
#pragma unroll
    for (int run = 0; run < Shape::kRuns; ++run) {
      const long long first = __shfl_sync(kAllLanes, key, run);
      copy<RunTile>(smem_.keys(ring_.slot()) + static_cast<u32>(run * RunTile::kBytes),
                    keys_ + first * Config::kHeadDim);
    }
#pragma unroll
    for (int part = 0; part < Shape::kParts; ++part) write_numbers(numbers[part], part);
  }

  /// Rows of integers are contiguous, in memory and in shared memory alike: a pass copies 512
  /// bytes, a chunk for each lane. Two passes make 8 rows or 16, so every other pass permutes its
  /// chunks as the first one does.
  template <class Tile>
  __device__ __forceinline__ static void copy(u32 tile, const signed char* source) {
    constexpr int kPassBytes = 32 * 16, kPassRows = kPassBytes / Tile::kRowBytes;
    static_assert(Tile::kBytes % (2 * kPassBytes) == 0 && 2 * kPassRows % 8 == 0);
    constexpr u32 kPermuted = Tile::phase(kPassRows) * 16;
    const u32 even =
        tile + Tile::offset(lane_index() / Tile::kChunks, lane_index() % Tile::kChunks);
    const u32 odd = (even ^ kPermuted) + kPassBytes;
#pragma unroll
    for (int pass = 0; pass < Tile::kBytes; pass += 2 * kPassBytes) {
      cp_async_16(even + pass, source + pass, true);
      cp_async_16(odd + pass, source + pass + kPassBytes, true);
    }
  }

  /// Keys past the end have scales that were never written; the mask hides them.
  __device__ __forceinline__ void read_numbers(Numbers (&numbers)[Shape::kParts], int key) const {
#pragma unroll
    for (int part = 0; part < Shape::kParts; ++part) {
      // Of the part: the lane's unit, where it has one, and its two keys.
      const int of_unit = unit() % Shape::kUnits * Shape::kUnitKeys, of_pair = lane_index() * 2;
      const int k = key_in_part(key, part, of_unit) + quad_lane() * 2;
      if (lane_index() < 4 * Shape::kUnits) numbers[part].scale = scale_[Shape::KeyGroups::of(k)];
      if constexpr (Config::kHasColumnBias)
        numbers[part].bias =
            *reinterpret_cast<const float2*>(bias_ + key_in_part(key, part, of_pair));
    }
  }
  /// By the whole warp; each lane asks for another place.
  __device__ __forceinline__ static int key_in_part(int key, int part, int place) {
    const int run = part * Shape::kRunsOfPart + place / Shape::kRunKeys;
    return __shfl_sync(kAllLanes, key, run) + place % Shape::kRunKeys;
  }

  __device__ __forceinline__ void write_numbers(const Numbers& numbers, int part) const {
    auto& control = smem_.control();
    if (lane_index() < 4 * Shape::kUnits)
      control.scale[ring_.slot()][quad_lane()][part][unit()] = numbers.scale;
    if constexpr (Config::kHasColumnBias) {
      const float to_log2 = args_.attend.scale * Config::kTemperature * kLog2E;
      // Of the four lanes that share rows, that which has these keys, and the accumulator.
      auto& of_pair = control.bias[ring_.slot()][part][quad_lane()][lane_index() / 4];
      *reinterpret_cast<float2*>(of_pair) = {numbers.bias.x * to_log2, numbers.bias.y * to_log2};
    }
  }

  __device__ __forceinline__ static int unit() { return lane_index() / 4; }
  __device__ __forceinline__ static int quad_lane() { return lane_index() % 4; }
  static_assert(Shape::kPartKeys == 2 * 32 && Shape::kUnits <= 8);

  /// Are there keys in the run that some row of the tile may not see?
  __device__ __forceinline__ bool is_partial_run(const KeepRow& row, int key) const {
    const int last = key + Shape::kRunKeys - 1;
    if (last >= args_.attend.n_k) return true;
    if constexpr (!Config::kHasMask) return false;
    return !Hooks::tile_full(args_, row.q0, row.q1, key, last, row.h, row.b);
  }

  const Args& args_;
  const Smem smem_;
  StepRing<Shape, Smem> ring_;
  const signed char* keys_ = nullptr;  ///< of the row's head, the lane's first chunk
  const float* scale_ = nullptr;       ///< of the head
  const float* bias_ = nullptr;        ///< of the head
};

}  // namespace lacuna
