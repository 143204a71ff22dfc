// The words of the program text for enumerators. Each enum has one list, which both printer and
// parser use.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "compiler/expr/expr_tables.hpp"
#include "compiler/ir/program.hpp"

namespace lacuna {

std::string_view name_of(Element element);
std::string_view name_of(Dim dim);
std::string_view name_of(BatchLayout batch);
std::string_view name_of(KvFormat kv);

/// All enumerators of E, in order.
template <class E>
inline constexpr auto kAll = std::array<E, 0>{};
template <>
inline constexpr auto kAll<Element> =
    std::array{Element::kBF16, Element::kF16,  Element::kF32, Element::kI32,
               Element::kI8,   Element::kE4M3, Element::kU32};
template <>
inline constexpr auto kAll<Dim> =
    std::array{Dim::kBatch,      Dim::kHeads,     Dim::kHeadsKv, Dim::kNQ,       Dim::kNK,
               Dim::kHeadDim,    Dim::kQTiles,    Dim::kKTiles,  Dim::kCapacity, Dim::kKeepQTiles,
               Dim::kKeepKTiles, Dim::kKeepWords, Dim::kQCells,  Dim::kKCells,   Dim::kQGroups,
               Dim::kKGroups,    Dim::kBounds,    Dim::kNTokens, Dim::kNQueries};
template <>
inline constexpr auto kAll<DType> = std::array{DType::kBF16, DType::kF16, DType::kF32};
template <>
inline constexpr auto kAll<BatchLayout> =
    std::array{BatchLayout::kUniform, BatchLayout::kSequences, BatchLayout::kPages};
template <>
inline constexpr auto kAll<KvFormat> = std::array{KvFormat::kSame, KvFormat::kE4M3};
template <>
inline constexpr auto kAll<GateScope> =
    std::array{GateScope::kWarp, GateScope::kTile, GateScope::kWarpgroup};
template <>
inline constexpr auto kAll<TileOrder> = std::array{TileOrder::kAscending, TileOrder::kDescending};
template <>
inline constexpr auto kAll<Reduce> = std::array{Reduce::kMax, Reduce::kSum};
template <>
inline constexpr auto kAll<LseBase> = std::array{LseBase::kE, LseBase::k2};
template <>
inline constexpr auto kAll<Weights> =
    std::array{Weights::kSoftmax, Weights::kSigmoid, Weights::kNone};
template <>
inline constexpr auto kAll<Normalise> =
    std::array{Normalise::kNone, Normalise::kSoftmax, Normalise::kLse, Normalise::kPreviousLse,
               Normalise::kRowMax};
template <>
inline constexpr auto kAll<QuantGroup> =
    std::array{QuantGroup::kBlock, QuantGroup::kWarp, QuantGroup::kThread};
template <>
inline constexpr auto kAll<SimilarityForm> =
    std::array{SimilarityForm::kCosine, SimilarityForm::kGramMax};
template <>
inline constexpr auto kAll<ExprType> = std::array{ExprType::kF32, ExprType::kI32};

/// The enumerator with this name.
template <class E>
std::optional<E> find_by_name(std::string_view name) {
  for (E e : kAll<E>) {
    if (name_of(e) == name) return e;
  }
  return std::nullopt;
}

/// "ascending, descending"
template <class E>
std::string all_names() {
  std::string text;
  for (E e : kAll<E>) text += (text.empty() ? "" : ", ") + std::string(name_of(e));
  return text;
}

/// The element type of tensors of this dtype.
Element element_of(DType dtype);

}  // namespace lacuna
