#include "compiler/target/variant.hpp"

namespace lacuna {
namespace {

struct Part {
  std::string_view name, type;
};

/// Of the mma family: the loader of rows.
Part part_of(Producer producer) {
  switch (producer) {
    case Producer::kRowTiles:
      return {"RowTileLoader", "lacuna::RowTileLoader"};
    case Producer::kGather:
      return {"GatherLoader", "lacuna::GatherLoader"};
    case Producer::kPages:
      return {"PageLoader", "lacuna::PageLoader"};
    case Producer::kPageGather:
      return {"PageGatherLoader", "lacuna::PageGatherLoader"};
    case Producer::kWgmma:
      return {"WgmmaProducer", "lacuna::WgmmaProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaTileGate:
      return {"TileGateProducer", "lacuna::TileGateProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaTwoLists:
      return {"TwoListProducer", "lacuna::TwoListProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaGather:
      return {"GatherProducer", "lacuna::GatherProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaSequences:
      return {"SequenceProducer", "lacuna::SequenceProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaConverting:
      return {"ConvertingProducer", "lacuna::ConvertingProducer<Config, Hooks, Args>"};
  }
  return {};
}

bool loads_rows(Producer producer) { return producer <= Producer::kPageGather; }

Part part_of(OperandRows rows) {
  switch (rows) {
    case OperandRows::kTokens:
      return {"TokenRows", "lacuna::TokenRows"};
    case OperandRows::kE4m3:
      return {"E4m3Rows", "lacuna::E4m3Rows"};
    case OperandRows::kQuantised:
      return {"QuantisedRows", "lacuna::QuantisedRows"};
    case OperandRows::kPanelSlot:
      return {"PanelSlot", "lacuna::PanelSlot"};
    case OperandRows::kByteSlot:
      return {"ByteSlot", "lacuna::ByteSlot"};
    case OperandRows::kColumnSlot:
      return {"ColumnSlot", "lacuna::ColumnSlot"};
  }
  return {};
}

Part part_of(TileWalk walk) {
  switch (walk) {
    case TileWalk::kMask:
      return {"MaskWalk", "lacuna::MaskWalk<Config, Hooks, Args>"};
    case TileWalk::kList:
      return {"ListWalk", "lacuna::ListWalk<Config, Hooks, Args>"};
    case TileWalk::kTwoLists:
      return {"SharedWalk", "lacuna::SharedWalk<Config>"};
    case TileWalk::kGather:
      return {"GatherWalk", "lacuna::GatherWalk<Config, Args>"};
    case TileWalk::kSequence:
      return {"SequenceWalk",
              "lacuna::SequenceWalk<lacuna::MaskWalk<Config, Hooks, Args>, Config, Args>"};
    case TileWalk::kSequenceList:
      return {"SequenceWalk",
              "lacuna::SequenceWalk<lacuna::ListWalk<Config, Hooks, Args>, Config, Args>"};
    case TileWalk::kSequenceKept:
      return {"SequenceWalk",
              "lacuna::SequenceWalk<lacuna::KeptWalk<Config, Hooks, Args>, Config, Args>"};
  }
  return {};
}

Part part_of(Consumer consumer) {
  switch (consumer) {
    case Consumer::kPlain:
      return {"PlainLogits", "lacuna::AttendBlock<Config, Hooks, Args, lacuna::PlainLogits>"};
    case Consumer::kQuantised:
      return {"QuantisedLogits",
              "lacuna::AttendBlock<Config, Hooks, Args, lacuna::QuantisedLogits<Config>>"};
    case Consumer::kWgmma:
      return {"WgmmaConsumer", "lacuna::WgmmaConsumer<Config, Hooks, Args>"};
    case Consumer::kWgmmaChained:
      return {"ChainedConsumer", "lacuna::ChainedConsumer<Config, Hooks, Args>"};
    case Consumer::kWgmmaTileGate:
      return {"TileGateConsumer", "lacuna::TileGateConsumer<Config, Hooks, Args>"};
    case Consumer::kWgmmaInt8:
      return {"Int8Consumer", "lacuna::Int8Consumer<Config, Hooks, Args>"};
  }
  return {};
}

Part part_of(GatePolicy policy) {
  switch (policy) {
    case GatePolicy::kNone:
      return {"NoGate", "lacuna::NoGate"};
    case GatePolicy::kStatistics:
      return {"GateByStatistics", "lacuna::GateByStatistics"};
    case GatePolicy::kTileVotes:
      return {"GateByTileVotes", "lacuna::GateByTileVotes"};
    case GatePolicy::kStepVotes:
      return {"GateByStepVotes", "lacuna::GateByStepVotes"};
    case GatePolicy::kAhead:
      return {"GateAhead", "lacuna::GateAhead"};
  }
  return {};
}

}  // namespace

std::string_view name_of(Producer producer) { return part_of(producer).name; }
std::string_view name_of(Consumer consumer) { return part_of(consumer).name; }
std::string_view name_of(GatePolicy policy) { return part_of(policy).name; }
std::string_view name_of(OperandRows rows) { return part_of(rows).name; }
std::string_view name_of(TileWalk walk) { return part_of(walk).name; }

std::string device_type(Producer producer, OperandRows keys, OperandRows values) {
  std::string type(part_of(producer).type);
  if (!loads_rows(producer)) return type;
  return "lacuna::AttendOperands<Config, " + type + ", " + std::string(part_of(keys).type) + ", " +
         std::string(part_of(values).type) + ">";
}
std::string device_type(TileWalk walk, bool is_split) {
  const std::string type(part_of(walk).type);
  const bool is_whole = walk == TileWalk::kMask || walk == TileWalk::kList;
  return is_split && is_whole ? "lacuna::ShareWalk<" + type + ", Config, Args>" : type;
}
std::string_view row_type(bool has_sequence_tiles) {
  return has_sequence_tiles ? "lacuna::SequenceTile" : "lacuna::WorkTile";
}
std::string slot_type(OperandRows rows, std::string_view count, std::string_view box_rows,
                      std::string_view head_dim) {
  return std::string(part_of(rows).type) + "<" + std::string(count) + ", " + std::string(box_rows) +
         ", " + std::string(head_dim) + ">";
}
std::string_view device_type(Consumer consumer) { return part_of(consumer).type; }
std::string_view device_type(GatePolicy policy) { return part_of(policy).type; }

}  // namespace lacuna
