// One target for libFuzzer: LACUNA_FUZZ_TARGET is its name.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/targets/targets.hpp"

namespace {

const lacuna::fuzz::FuzzTarget& target() {
  const auto all = lacuna::fuzz::targets();
  const auto found = std::ranges::find(all, LACUNA_FUZZ_TARGET, &lacuna::fuzz::FuzzTarget::name);
  if (found == all.end()) std::abort();
  return *found;
}

}  // namespace

// An exception ends the process, which libFuzzer reports as a crash with the input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) noexcept {
  target().run({reinterpret_cast<const char*>(data), size});
  return 0;
}
