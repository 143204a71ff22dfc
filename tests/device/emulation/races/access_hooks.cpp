// What code compiled with -fsanitize=thread calls for each access to memory, without the runtime
// that belongs to it: the accesses of emulated threads, for Races.
#ifdef EMULATION_FINDS_RACES

#include <cstddef>

#include "tests/device/emulation/block.hpp"
#include "tests/device/emulation/races/races.hpp"

namespace {

void note(const void* pointer, std::size_t bytes, emulation::Access access, const void* place) {
  emulation::note_access(pointer, bytes, access, place);
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the compiler has chosen the names.
#define LACUNA_ACCESS(NAME, BYTES, ACCESS)                                        \
  void __tsan_##NAME##BYTES(void* pointer) {                                      \
    note(pointer, BYTES, emulation::Access::ACCESS, __builtin_return_address(0)); \
  }
#define LACUNA_ACCESSES(BYTES)                  \
  LACUNA_ACCESS(read, BYTES, kRead)             \
  LACUNA_ACCESS(write, BYTES, kWrite)           \
  LACUNA_ACCESS(unaligned_read, BYTES, kRead)   \
  LACUNA_ACCESS(unaligned_write, BYTES, kWrite) \
  LACUNA_ACCESS(volatile_read, BYTES, kRead)    \
  LACUNA_ACCESS(volatile_write, BYTES, kWrite)

extern "C" {
LACUNA_ACCESSES(1)
LACUNA_ACCESSES(2)
LACUNA_ACCESSES(4)
LACUNA_ACCESSES(8)
LACUNA_ACCESSES(16)
void __tsan_read_range(void* pointer, std::size_t bytes) {
  note(pointer, bytes, emulation::Access::kRead, __builtin_return_address(0));
}
void __tsan_write_range(void* pointer, std::size_t bytes) {
  note(pointer, bytes, emulation::Access::kWrite, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
/// Of static locals, which are initialised once.
unsigned char __tsan_atomic8_load(const volatile unsigned char* byte, int) {
  return __atomic_load_n(byte, __ATOMIC_ACQUIRE);
}
}
// NOLINTEND(bugprone-reserved-identifier)
#undef LACUNA_ACCESSES
#undef LACUNA_ACCESS

#endif
