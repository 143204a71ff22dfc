#include "runtime/base/dynamic_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace lacuna {
namespace {

DynamicLibrary open_with(const std::string& path, int flags) {
  DynamicLibrary library;
  library.handle = dlopen(path.c_str(), flags);
  if (library.handle == nullptr) {
    const char* text = dlerror();
    library.error = text != nullptr ? text : "not loaded";
  }
  return library;
}

struct BuildIdSearch {
  std::uintptr_t address = 0;
  std::string build_id;
};

std::string hex(const unsigned char* bytes, std::size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

/// The description of the GNU build-id note in a segment of ELF notes.
std::string build_id_in_notes(const unsigned char* notes, std::size_t bytes) {
  const auto padded = [](std::size_t n) { return (n + 3) & ~std::size_t{3}; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const std::size_t size = sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    if (size > bytes) return "";
    const unsigned char* name = notes + sizeof(note);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      return hex(name + padded(note.n_namesz), note.n_descsz);
    }
    notes += size;
    bytes -= size;
  }
  return "";
}

int search_object(dl_phdr_info* object, std::size_t, void* user) {
  auto& search = *static_cast<BuildIdSearch*>(user);
  bool holds_address = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    holds_address |= segment.p_type == PT_LOAD && search.address >= begin &&
                     search.address - begin < segment.p_memsz;
  }
  if (!holds_address) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.build_id.empty(); ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    search.build_id = build_id_in_notes(
        reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr),
        segment.p_memsz);
  }
  return 1;
}

/// Of a line of /proc/self/maps: "7f3e41000000-7f3e41021000 r-xp 00000000 08:01 12345 /lib/x.so".
std::pair<std::uintptr_t, std::uintptr_t> range_of(const std::string& line) {
  std::uintptr_t begin = 0, end = 0;
  const char* last = line.data() + line.size();
  const auto first = std::from_chars(line.data(), last, begin, 16);
  if (first.ec == std::errc() && first.ptr != last) std::from_chars(first.ptr + 1, last, end, 16);
  return {begin, end};
}

}  // namespace

void* DynamicLibrary::symbol(const char* name) const {
  return handle != nullptr ? dlsym(handle, name) : nullptr;
}

DynamicLibrary open_library(const std::string& path) {
  return open_with(path, RTLD_NOW | RTLD_LOCAL);
}

DynamicLibrary find_loaded_library(const std::string& soname) {
  return open_with(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
}

// The loader would answer with the name that the program was started with, or the library opened
// by: relative, perhaps, to a directory that is another one by now. The kernel knows the file.
std::string library_path_of(const void* symbol) {
  const auto address = reinterpret_cast<std::uintptr_t>(symbol);
  std::ifstream mappings("/proc/self/maps");
  for (std::string line; std::getline(mappings, line);) {
    const auto [begin, end] = range_of(line);
    if (address < begin || address >= end) continue;
    const std::size_t path = line.find('/');
    return path == std::string::npos ? "" : line.substr(path);
  }
  return "";
}

std::string build_id_of(const void* symbol) {
  BuildIdSearch search{reinterpret_cast<std::uintptr_t>(symbol), ""};
  dl_iterate_phdr(search_object, &search);
  return search.build_id;
}

std::string own_directory() {
  const std::string path = library_path_of(reinterpret_cast<const void*>(&own_directory));
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace lacuna
