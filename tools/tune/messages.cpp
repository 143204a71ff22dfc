#include "tools/tune/messages.hpp"

namespace lacuna::tools {

using nlohmann::ordered_json;

ordered_json to_json(const TuneTask& task) {
  const LaunchShape& s = task.shape;
  ordered_json message = {{"do", "hello"},
                          {"spec", task.spec},
                          {"path", task.path},
                          {"head_dim", task.build.head_dim},
                          {"dtype", static_cast<int>(task.build.dtype)},
                          {"shape", {s.n_b, s.n_h, s.n_h_kv, s.n_q, s.n_k}},
                          {"params", task.params},
                          {"values", print_values(task.values)},
                          {"seed", task.seed},
                          {"device", task.device},
                          {"threads", task.threads}};
  if (task.density) message["density"] = *task.density;
  return message;
}

TuneTask read_task(const ordered_json& message) {
  TuneTask task;
  task.spec = message.at("spec");
  task.path = message.at("path");
  task.build.head_dim = message.at("head_dim");
  task.build.dtype = static_cast<DType>(message.at("dtype").get<int>());
  const auto& shape = message.at("shape");
  task.shape = {shape.at(0), shape.at(1), shape.at(2), shape.at(3), shape.at(4)};
  task.params = message.at("params").get<std::vector<std::string>>();
  parse_values(message.at("values"), task.values);
  task.seed = message.at("seed");
  task.device = message.at("device");
  task.threads = message.at("threads");
  if (message.contains("density")) task.density = message.at("density").get<double>();
  return task;
}

tune::Machine TuneFacts::machine() const { return {*find_target(target), processors, cores}; }

ordered_json to_json(const TuneFacts& facts) {
  return {
      {"device", facts.device}, {"device_name", facts.device_name}, {"hardware", facts.hardware},
      {"note", facts.note},     {"driver", facts.driver},           {"compiler", facts.compiler},
      {"target", facts.target}, {"processors", facts.processors},   {"cores", facts.cores}};
}

TuneFacts read_facts(const ordered_json& message) {
  return {message.at("device"), message.at("device_name"), message.at("hardware"),
          message.at("note"),   message.at("driver"),      message.at("compiler"),
          message.at("target"), message.at("processors"),  message.at("cores")};
}

ordered_json to_json(const tune::Sample& sample) {
  return {{"status", static_cast<int>(sample.status)},
          {"detail", sample.detail},
          {"times_us", sample.times_us}};
}

tune::Sample read_sample(const ordered_json& message) {
  return {static_cast<tune::TuningStatus>(message.at("status").get<int>()), message.at("detail"),
          message.at("times_us").get<std::vector<double>>()};
}

}  // namespace lacuna::tools
