// Loads of gathered keys or values in the wgmma family, step by step, by a warp of a
// GatherProducer: from a head in one piece, be it a batch entry's or a sequence's, or from a
// sequence's pages.
#pragma once

#include "attend/wgmma/layout/wgmma_smem.cuh"
#include "attend/wgmma/producers/step_loads.cuh"
#include "loader/gather_pages.cuh"
#include "pipeline/key_rows.cuh"

namespace lacuna {

/// Which rows of a step a warp loads. One warp may load all of them. Where lanes copy the first
/// rows and boxes bring the rest, one warp loads the first and another the rest.
enum class GatheredPart { kAll, kFirst, kRest };

/// What the loads of a part of a step have in common.
template <class Config, GatheredPart kPart>
struct GatheredShape {
  using Shape = WgmmaShape<Config>;
  using Tile = typename Shape::StepTile;
  static constexpr bool kCopies = Shape::kHasCopiedRows && kPart != GatheredPart::kRest;
  static constexpr int kFirstRow = kPart == GatheredPart::kRest ? Shape::kCopiedValues : 0;
  static constexpr int kCopiedRows =
      kPart == GatheredPart::kAll ? Tile::kRows : Shape::kCopiedValues;
};

/// `kIsOfKeys`: of K, else of V.
template <class Config, class Args, GatheredPart kPart, bool kIsOfKeys,
          bool kHasPages = attends_to_pages<Config>()>
class GatherLoads {
  using Parts = GatheredShape<Config, kPart>;
  using Tile = typename Parts::Tile;

 public:
  static constexpr bool kCopies = Parts::kCopies;  ///< by lanes, each of which arrives

  __device__ __forceinline__ explicit GatherLoads(const Args& args)
      : args_(args), map_(kIsOfKeys ? &args.maps.k : &args.maps.v) {}

  /// Of the steps that follow. Once for each row: it takes a division.
  template <class Row>
  __device__ __forceinline__ void begin_row(const Row& row) {
    const TensorArg& x = kIsOfKeys ? args_.attend.k : args_.attend.v;
    using Element = typename Config::Element;
    const int head = kv_head_of(args_, row);
    head_ = {first_row_of_head<Config, Element>(args_, x, row, head),
             static_cast<int>(x.stride_n * sizeof(Element)), args_.attend.n_k, head, row.b};
    if constexpr (has_sequence_tiles<Config>()) {
      head_.rows = row.n_k, head_.batch = 0;
      map_ = maps_of_sequence(args_, row.b) + (kIsOfKeys ? kSequenceKeys : kSequenceValues);
      acquire_map(*map_);
    }
  }
  /// Before the wait for the step's place.
  __device__ __forceinline__ void look_up(const int*) {}

  __device__ __forceinline__ void load(u32 slot, Mbarrier full, const int* columns) const {
    if constexpr (kCopies) {
      copy_panels<Tile, Parts::kCopiedRows>(slot, full, head_, columns);
    } else {
      load_boxes<Tile, Config::kKeepK, Parts::kFirstRow>(*map_, slot, full, head_, columns);
    }
  }

 private:
  const Args& args_;
  const TensorMap* map_;
  GatheredHead head_;
};

template <class Config, class Args, GatheredPart kPart, bool kIsOfKeys>
class GatherLoads<Config, Args, kPart, kIsOfKeys, true> {
  using Parts = GatheredShape<Config, kPart>;
  using Tile = typename Parts::Tile;
  template <int kPageShift>
  using Boxes = PagedBoxes<Tile, Config::kKeepK, Parts::kFirstRow, kPageShift>;

 public:
  static constexpr bool kCopies = Parts::kCopies;

  __device__ __forceinline__ explicit GatherLoads(const Args& args) : args_(args) {}

  template <class Row>
  __device__ __forceinline__ void begin_row(const Row& row) {
    const TensorArg& x = kIsOfKeys ? args_.attend.k : args_.attend.v;
    const auto* data = static_cast<const typename Config::Element*>(x.data);
    constexpr int kUnit = 16 / sizeof(*data);
    head_ = {data + row.kv_head * x.stride_h,
             args_.sequences.pages + row.b * args_.sequences.pages_stride,
             static_cast<u32>(x.stride_b / kUnit),
             static_cast<u32>(x.stride_n / kUnit),
             page_shift_of(args_.sequences),
             row.n_k,
             row.kv_head};
    b_ = row.b;
    if constexpr (!kIsOfKeys) acquire_map(maps_of_sequence(args_, row.b)[kSequenceValues]);
  }

  __device__ __forceinline__ void look_up(const int* columns) {
    if constexpr (kCopies) {
      rows_.template look_up<Config::kKeepK>(head_, columns);
    } else {
      with_page_shift<Config, typename Config::KeySlot>(
          args_, [&](auto shift) { page_of_lane_ = Boxes<shift.kValue>::look_up(head_, columns); });
    }
  }

  __device__ __forceinline__ void load(u32 slot, Mbarrier full, const int* columns) const {
    if constexpr (kCopies) {
      copy_paged_rows<Tile>(slot, full, head_, rows_);
    } else {
      const SequenceRows from = kIsOfKeys
                                    ? keys_of_sequence<Config>(args_, b_, head_.head, head_.rows)
                                    : values_of_sequence<Config>(args_, b_, head_.head, head_.rows);
      with_page_shift<Config, typename Config::KeySlot>(args_, [&](auto shift) {
        Boxes<shift.kValue>::load(*from.map, *from.last_page, slot, full, head_, columns,
                                  page_of_lane_);
      });
    }
  }

 private:
  const Args& args_;
  PagedHead head_;
  int b_ = 0;
  PagedPlaces<kCopies ? Parts::kCopiedRows : 32> rows_;  ///< of the step, where they are copied
  int page_of_lane_ = -1;                                ///< of its boxes, where they are not
};

}  // namespace lacuna
