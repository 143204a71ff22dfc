// What `lacuna tune` and the child that runs its candidates say to each other: one JSON object for
// each line, a reply for each request. The child may die or fall silent at any time.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/emit/launch_program.hpp"
#include "compiler/ir/program.hpp"
#include "runtime/tune/machine.hpp"
#include "tools/measure/value_sets.hpp"
#include "tools/tune/halving.hpp"

namespace lacuna::tools {

/// All that a child has to know; it is the first thing it is told.
struct TuneTask {
  std::string spec, path;  ///< text of the spec, and its name in errors
  BuildOptions build;
  LaunchShape shape;
  std::vector<std::string> params;  ///< "name=0.5"
  std::optional<double> density;    ///< of random lists
  ValueSet values;
  std::uint64_t seed = 1;
  std::string device;
  int threads = 0;
};
nlohmann::ordered_json to_json(const TuneTask& task);
TuneTask read_task(const nlohmann::ordered_json& message);

/// "hello": where the child runs, and with which versions. Nothing has been compiled yet.
struct TuneFacts {
  std::string device, device_name, hardware, note;
  std::string driver, compiler;
  std::string target;
  int processors = 1, cores = 1;

  tune::Machine machine() const;
};
nlohmann::ordered_json to_json(const TuneFacts& facts);
TuneFacts read_facts(const nlohmann::ordered_json& message);

/// "verify" and "time".
nlohmann::ordered_json to_json(const tune::Sample& sample);
tune::Sample read_sample(const nlohmann::ordered_json& message);

}  // namespace lacuna::tools
