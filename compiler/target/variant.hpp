// The parts that an attend kernel consists of, by name: a walk, which says which tiles come; a
// producer, which loads them; a consumer, which computes; and a gate policy, by which warps agree
// about a tile. The plan chooses them (target/choose_variant.hpp), and the generated file writes
// them down as types. templates/attend/ and templates/pipeline/ have a header for each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lacuna {

/// Where tiles of queries, keys and values come from. The first four are of the mma family.
enum class Producer : std::uint8_t {
  kRowTiles,    ///< rows of tensors, one after the other
  kGather,      ///< rows of a list of keys
  kPages,       ///< rows of pages of keys and values
  kPageGather,  ///< rows of a list of keys, in pages
  kWgmma,
  kWgmmaTileGate,
  kWgmmaTwoLists,
  kWgmmaGather,
  kWgmmaSequences,
  kWgmmaConverting,  ///< of codes of e4m3
};

/// What keys or values are loaded from, and with that how they lie in shared memory. The first
/// three are of the mma family, the others slots of wgmma, which queries have, too.
enum class OperandRows : std::uint8_t {
  kTokens,      ///< the caller's, of 16 bits
  kE4m3,        ///< the caller's, of e4m3: 16-bit tiles are made of them
  kQuantised,   ///< in the workspace, of 8 bits: an earlier kernel has made and padded them
  kPanelSlot,   ///< 16-bit rows, in panels
  kByteSlot,    ///< int8 rows
  kColumnSlot,  ///< e4m3, transposed: rows of channels
};

/// Which tiles of keys a work tile visits, and in which order.
enum class TileWalk : std::uint8_t {
  kMask,          ///< all that the mask leaves
  kList,          ///< those of its list
  kTwoLists,      ///< those of the lists of two work tiles, which a block takes together
  kGather,        ///< tiles of its list of keys
  kSequence,      ///< an item's share of all that the mask leaves, in a batch of sequences
  kSequenceList,  ///< the same of its list
  kSequenceKept,  ///< the same of tiles that any of its heads keeps
};

/// The part of a kernel that computes scores, softmax and output. The first two belong to the mma
/// family, the others to wgmma.
enum class Consumer : std::uint8_t {
  kPlain,
  kQuantised,
  kWgmma,
  kWgmmaChained,  ///< the products of rows follow one another
  kWgmmaTileGate,
  kWgmmaInt8,
};

/// How warps of the wgmma family agree about a tile.
enum class GatePolicy : std::uint8_t {
  kNone,        ///< there is no gate
  kStatistics,  ///< each says what it found; all in scope wait for one another
  kTileVotes,   ///< each says whether the tile counts; only those wait that found no reason
  kStepVotes,   ///< the same for all tiles of a step, asked when their product is due
  kAhead,       ///< a producer decides under the next product, and loads V of what counts
};

/// The device's word, which the plan shows: "TwoListProducer".
std::string_view name_of(Producer);
std::string_view name_of(Consumer);
std::string_view name_of(GatePolicy);
std::string_view name_of(OperandRows);
std::string_view name_of(TileWalk);

/// The type in the Config of a generated kernel: "lacuna::TwoListProducer<Config, Hooks, Args>". Of
/// the mma family a producer is told what the rows of keys and values are.
std::string device_type(Producer, OperandRows keys, OperandRows values);
/// `is_split`: several blocks share the tiles of a work tile. Walks over all tiles take a share
/// then; the other walks know of shares themselves.
std::string device_type(TileWalk, bool is_split);
/// The type of a work tile in a kernel of the wgmma family, which depends on the walk.
std::string_view row_type(bool has_sequence_tiles);
/// A slot of the wgmma family, of so many rows, which boxes of so many bring; numbers, or names of
/// other members of Config.
std::string slot_type(OperandRows, std::string_view rows, std::string_view box_rows,
                      std::string_view head_dim);
std::string_view device_type(Consumer);
std::string_view device_type(GatePolicy);

}  // namespace lacuna
