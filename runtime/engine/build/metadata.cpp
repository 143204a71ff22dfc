#include "runtime/engine/build/metadata.hpp"

#include <nlohmann/json.hpp>

#include "compiler/ir/names.hpp"

namespace lacuna {

using Json = nlohmann::ordered_json;

KernelMetadata metadata_for(const Plan& plan) {
  const Program& program = plan.program;
  KernelMetadata metadata;
  metadata.spec = program.name;
  metadata.target = plan.target.name;
  metadata.head_dim = program.head_dim;
  metadata.dtype = name_of(program.dtype);
  metadata.batch = name_of(program.batch);
  if (value_dim(program) != program.head_dim) metadata.head_dim_v = value_dim(program);
  if (program.kv != KvFormat::kSame) metadata.kv = name_of(program.kv);
  return metadata;
}

std::string write_metadata(const KernelMetadata& metadata) {
  Json json = {{"spec", metadata.spec},         {"target", metadata.target},
               {"head_dim", metadata.head_dim}, {"dtype", metadata.dtype},
               {"batch", metadata.batch},       {"nvrtc", metadata.nvrtc},
               {"lacuna", metadata.lacuna},     {"compile_ms", metadata.compile_ms},
               {"kernels", Json::array()}};
  if (metadata.head_dim_v != 0) json["head_dim_v"] = metadata.head_dim_v;
  if (!metadata.kv.empty()) json["kv"] = metadata.kv;
  for (const KernelResources& kernel : metadata.kernels) {
    json["kernels"].push_back({{"name", kernel.name},
                               {"registers", kernel.registers},
                               {"spill_bytes", kernel.spill_bytes},
                               {"stack_bytes", kernel.stack_bytes},
                               {"smem_bytes", kernel.smem_bytes}});
  }
  if (!metadata.complaints.empty()) {
    json["relief"] = {{"step", metadata.relief},
                      {"source", metadata.relieved_source_sha256},
                      {"complaints", metadata.complaints}};
  }
  return json.dump();
}

std::optional<KernelMetadata> read_metadata(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  try {
    KernelMetadata metadata;
    metadata.spec = json.at("spec");
    metadata.target = json.at("target");
    metadata.head_dim = json.at("head_dim");
    metadata.dtype = json.at("dtype");
    metadata.batch = json.at("batch");
    metadata.nvrtc = json.at("nvrtc");
    metadata.lacuna = json.at("lacuna");
    metadata.compile_ms = json.at("compile_ms");
    for (const Json& kernel : json.at("kernels")) {
      metadata.kernels.push_back({kernel.at("name"), kernel.at("registers"),
                                  kernel.at("spill_bytes"), kernel.at("stack_bytes"),
                                  kernel.at("smem_bytes")});
    }
    if (const auto relief = json.find("relief"); relief != json.end()) {
      metadata.relief = relief->at("step");
      metadata.relieved_source_sha256 = relief->at("source");
      metadata.complaints = relief->at("complaints");
    }
    metadata.head_dim_v = json.value("head_dim_v", 0);
    metadata.kv = json.value("kv", "");
    return metadata;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace lacuna
