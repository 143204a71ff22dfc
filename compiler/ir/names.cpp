#include "compiler/ir/names.hpp"

namespace lacuna {

std::string_view name_of(Element element) {
  switch (element) {
    case Element::kBF16:
      return "bf16";
    case Element::kF16:
      return "f16";
    case Element::kF32:
      return "f32";
    case Element::kI32:
      return "i32";
    case Element::kI8:
      return "i8";
    case Element::kE4M3:
      return "e4m3";
    case Element::kU32:
      return "u32";
  }
  return "";
}

std::string_view name_of(BatchLayout batch) {
  switch (batch) {
    case BatchLayout::kUniform:
      return "uniform";
    case BatchLayout::kSequences:
      return "sequences";
    case BatchLayout::kPages:
      return "pages";
  }
  return "";
}

std::string_view name_of(KvFormat kv) {
  switch (kv) {
    case KvFormat::kSame:
      return "same";
    case KvFormat::kE4M3:
      return "e4m3";
  }
  return "";
}

std::string_view name_of(Dim dim) {
  switch (dim) {
    case Dim::kBatch:
      return "batch";
    case Dim::kHeads:
      return "heads";
    case Dim::kHeadsKv:
      return "heads_kv";
    case Dim::kNQ:
      return "n_q";
    case Dim::kNK:
      return "n_k";
    case Dim::kHeadDim:
      return "d";
    case Dim::kQTiles:
      return "q_tiles";
    case Dim::kKTiles:
      return "k_tiles";
    case Dim::kCapacity:
      return "capacity";
    case Dim::kKeepQTiles:
      return "keep_q_tiles";
    case Dim::kKeepKTiles:
      return "keep_k_tiles";
    case Dim::kKeepWords:
      return "keep_words";
    case Dim::kQCells:
      return "q_cells";
    case Dim::kKCells:
      return "k_cells";
    case Dim::kQGroups:
      return "q_groups";
    case Dim::kKGroups:
      return "k_groups";
    case Dim::kBounds:
      return "bounds";
    case Dim::kNTokens:
      return "n_tokens";
    case Dim::kNQueries:
      return "n_queries";
  }
  return "";
}

std::string_view name_of(AttendFamily family) {
  return family == AttendFamily::kMma ? "mma" : "wgmma";
}

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return Element::kBF16;
    case DType::kF16:
      return Element::kF16;
    case DType::kF32:
      return Element::kF32;
  }
  return Element::kF32;
}

}  // namespace lacuna
