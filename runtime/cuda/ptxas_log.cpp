#include "runtime/cuda/ptxas_log.hpp"

#include <charconv>
#include <string>

namespace lacuna {
namespace {

/// How a line begins, behind its code, that tells of setmaxnreg ignored or of wgmma serialised.
constexpr std::string_view kComplaint = "Potential Performance Loss";

template <class Visit>
void for_each_line(std::string_view log, Visit visit) {
  while (!log.empty()) {
    const std::size_t end = log.find('\n');
    visit(log.substr(0, end));
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
  }
}

/// The number that stands right before `unit`: "24 bytes stack frame" -> 24. 0 if there is none.
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

std::string_view quoted(std::string_view line) {
  const std::size_t begin = line.find('\'');
  const std::size_t end = line.find('\'', begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  return line.substr(begin + 1, end - begin - 1);
}

void read_line(std::string_view line, std::vector<KernelResources>& kernels) {
  if (line.find("Compiling entry function") != std::string_view::npos) {
    kernels.emplace_back().name = std::string(quoted(line));
  }
  if (kernels.empty()) return;
  KernelResources& kernel = kernels.back();
  if (line.find("bytes stack frame") != std::string_view::npos) {
    kernel.stack_bytes += number_before(line, " bytes stack frame");
    kernel.spill_bytes +=
        number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
  }
  if (line.find(" registers") != std::string_view::npos) {
    kernel.registers = number_before(line, " registers");
    kernel.smem_bytes = number_before(line, " bytes smem");
  }
}

}  // namespace

std::vector<KernelResources> parse_ptxas_log(std::string_view log) {
  std::vector<KernelResources> kernels;
  for_each_line(log, [&](std::string_view line) { read_line(line, kernels); });
  return kernels;
}

std::vector<std::string> find_ptxas_complaints(std::string_view log) {
  std::vector<std::string> complaints;
  for_each_line(log, [&](std::string_view line) {
    if (line.find(kComplaint) != std::string_view::npos) complaints.emplace_back(line);
  });
  return complaints;
}

}  // namespace lacuna
