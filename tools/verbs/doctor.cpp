// lacuna doctor: what this machine offers, and what is missing.
#include "runtime/engine/probe.hpp"
#include "tools/common/table.hpp"
#include "tools/verbs/verbs.hpp"

namespace lacuna::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kDoctorDescription =
    R"(Report GPU, driver, NVRTC, CPU backend, kernel cache and environment variables.

Examples:
  lacuna doctor
  lacuna doctor --json > doctor.json      attach this to a bug report

See also: cache verify)";

std::string version_text(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

/// "13000" -> "13.0"
std::string cuda_version_text(int version) {
  return version_text(version / 1000, version % 1000 / 10);
}

ordered_json to_json(const NvrtcProbe& probe) {
  if (!probe.info) return {{"found", false}, {"missing", probe.missing}};
  return {{"found", true},
          {"path", probe.info->path},
          {"version", version_text(probe.info->major, probe.info->minor)},
          {"build_id", probe.info->build_id}};
}

ordered_json to_json(const DriverProbe& probe) {
  ordered_json devices = ordered_json::array();
  for (const DeviceFacts& device : probe.devices) {
    devices.push_back({{"device", "cuda:" + std::to_string(device.index)},
                       {"name", device.name},
                       {"compute_capability", device.compute_capability},
                       {"target", device.target},
                       {"memory_bytes", device.memory_bytes},
                       {"multiprocessors", device.multiprocessors}});
  }
  return {{"cuda_version", probe.cuda_version}, {"missing", probe.missing}, {"devices", devices}};
}

ordered_json to_json(const CacheProbe& probe) {
  return {{"directory", probe.directory}, {"on_disk", probe.on_disk}, {"entries", probe.entries},
          {"bytes", probe.bytes},         {"damaged", probe.damaged}, {"warnings", probe.warnings}};
}

void fill_json(const EnvironmentReport& report, ordered_json& document) {
  document["lacuna"] = report.version;
  document["nvrtc"] = to_json(report.nvrtc);
  document["driver"] = to_json(report.driver);
  document["cpu"] = {{"path", report.host.path},
                     {"version", report.host.version},
                     {"missing", report.host.missing}};
  document["cache"] = to_json(report.cache);
  document["variables"] = ordered_json::object();
  for (const VariableProbe& variable : report.variables) {
    document["variables"][variable.name] =
        variable.value ? ordered_json(*variable.value) : ordered_json();
  }
}

void add_driver_rows(const DriverProbe& probe, Table& table) {
  if (probe.cuda_version != 0) {
    table.rows.push_back({"driver", "CUDA " + cuda_version_text(probe.cuda_version)});
  }
  if (!probe.missing.empty()) table.rows.push_back({"GPU", "missing: " + probe.missing});
  for (const DeviceFacts& device : probe.devices) {
    const std::string target =
        device.target.empty()
            ? "compute capability " + std::to_string(device.compute_capability) + ", not known"
            : device.target;
    table.rows.push_back({"cuda:" + std::to_string(device.index),
                          device.name + ", " + target + ", " + print_bytes(device.memory_bytes) +
                              ", " + std::to_string(device.multiprocessors) + " SMs"});
  }
}

std::string print_cache(const CacheProbe& probe) {
  if (!probe.on_disk) return "memory only: no usable directory";
  return probe.directory + ", " + std::to_string(probe.entries) + " entries, " +
         print_bytes(probe.bytes) +
         (probe.damaged == 0 ? "" : ", " + std::to_string(probe.damaged) + " damaged");
}

std::string print_for_people(const EnvironmentReport& report, bool color) {
  Table table{.head = {}, .rows = {{"lacuna", report.version}}, .indent = ""};
  add_driver_rows(report.driver, table);
  table.rows.push_back({"NVRTC", report.nvrtc.info ? version_text(report.nvrtc.info->major,
                                                                  report.nvrtc.info->minor) +
                                                         ", " + report.nvrtc.info->path
                                                   : "missing: " + report.nvrtc.missing});
  table.rows.push_back({"CPU", report.host.missing.empty()
                                   ? report.host.version + ", " + report.host.path
                                   : "interpreter; " + report.host.missing});
  table.rows.push_back({"cache", print_cache(report.cache)});
  for (const std::string& warning : report.cache.warnings) {
    table.rows.push_back({"", "warning: " + warning});
  }
  Table variables{.head = {"variable", "value", "meaning"}, .rows = {}, .indent = ""};
  for (const VariableProbe& variable : report.variables) {
    variables.rows.push_back({variable.name, variable.value.value_or("not set"), variable.doc});
  }
  return print_table(table, color) + "\n" + print_table(variables, color);
}

void run_doctor(Session& session) {
  const EnvironmentReport report = probe_environment();
  fill_json(report, session.document);
  session.print(print_for_people(report, session.color_stdout()));
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  app.add_subcommand("doctor", kDoctorDescription)->callback([&session] { run_doctor(session); });
}

}  // namespace lacuna::tools
