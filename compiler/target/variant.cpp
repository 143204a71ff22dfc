#include "compiler/target/variant.hpp"

namespace lacuna {
namespace {

struct Part {
  std::string_view name, type;
};

Part part_of(Producer producer) {
  switch (producer) {
    case Producer::kRowTiles:
      return {"RowTileLoader", "lacuna::AttendOperands<Config, lacuna::RowTileLoader>"};
    case Producer::kGather:
      return {"GatherLoader", "lacuna::AttendOperands<Config, lacuna::GatherLoader>"};
    case Producer::kPages:
      return {"PageLoader", "lacuna::AttendOperands<Config, lacuna::PageLoader>"};
    case Producer::kPageGather:
      return {"PageGatherLoader", "lacuna::AttendOperands<Config, lacuna::PageGatherLoader>"};
    case Producer::kWgmma:
      return {"WgmmaProducer", "lacuna::WgmmaProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaTileGate:
      return {"TileGateProducer", "lacuna::TileGateProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaTwoLists:
      return {"TwoListProducer", "lacuna::TwoListProducer<Config, Hooks, Args>"};
    case Producer::kWgmmaGather:
      return {"GatherProducer", "lacuna::GatherProducer<Config, Hooks, Args>"};
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

std::string_view device_type(Producer producer) { return part_of(producer).type; }
std::string_view device_type(Consumer consumer) { return part_of(consumer).type; }
std::string_view device_type(GatePolicy policy) { return part_of(policy).type; }

}  // namespace lacuna
