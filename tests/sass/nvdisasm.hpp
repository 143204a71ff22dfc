// The disassembler of NVIDIA's toolkit, for tests that read machine code. It is no part of the
// drivers or of NVRTC: `tools/start test` installs its Python wheel below build/.
#pragma once

#include <string>

namespace lacuna::sass {

/// Path of nvdisasm: LACUNA_NVDISASM, else what tools/start installed, the toolkit's, or that of
/// the PATH. Empty if there is none; then the caller skips, and `reason` says what was searched.
std::string find_nvdisasm(std::string& reason);

/// `nvdisasm -c` of a cubin; empty if that failed.
std::string disassemble(const std::string& nvdisasm, const std::string& cubin);

}  // namespace lacuna::sass
