#include "runtime/group/links/nccl.hpp"

#include "runtime/base/library_search.hpp"

namespace lacuna::group {
namespace {

template <class Function>
bool resolve(const DynamicLibrary& library, const char* name, Function& slot) {
  slot = reinterpret_cast<Function>(library.symbol(name));
  return slot != nullptr;
}

/// Null with the reason in `why`.
std::shared_ptr<Nccl> adopt(const DynamicLibrary& library, std::string& why) {
  auto nccl = std::make_shared<Nccl>();
  std::string missing;
  const auto need = [&](const char* name, bool found) {
    if (!found) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
#define LACUNA_NCCL(name, parameters) need(#name, resolve(library, #name, nccl->name));
#include "runtime/group/links/nccl.def"
#undef LACUNA_NCCL
  need("ncclGetErrorString", resolve(library, "ncclGetErrorString", nccl->ncclGetErrorString));
  if (!missing.empty()) {
    why = "it lacks " + missing;
    return nullptr;
  }
  nccl->ncclGetVersion(&nccl->version);
  nccl->path = library_path_of(reinterpret_cast<const void*>(nccl->ncclGetVersion));
  return nccl;
}

}  // namespace

std::shared_ptr<const Nccl> load_nccl(Diagnostics& diagnostics) {
  constexpr CudaLibrary kNccl{"nccl", "nccl", EnvironmentVariable::kNcclPath, 2};
  std::shared_ptr<Nccl> nccl;
  std::vector<std::string> searched;
  const auto take = [&](const DynamicLibrary& library, std::string& why) {
    nccl = adopt(library, why);
    return nccl != nullptr;
  };
  if (find_library(kNccl, take, searched)) return nccl;
  Diagnostic d;
  d.code = Code::kNoNccl;
  d.message = "no NCCL: libnccl.so.2 was not found";
  for (const std::string& place : searched) d.notes.push_back("looked at " + place);
  d.helps.push_back(
      "install NCCL or the Python wheel nvidia-nccl-cu12, or name the library in LACUNA_NCCL_PATH");
  diagnostics.add(std::move(d));
  return nullptr;
}

bool check_nccl(const Nccl& nccl, NcclResult result, const char* doing, Diagnostics& diagnostics) {
  if (result == kNcclSuccess || result == kNcclInProgress) return true;
  const char* text = nccl.ncclGetErrorString(result);
  Diagnostic d;
  d.code = Code::kNcclCall;
  d.message = std::string(doing) + ": " + (text != nullptr ? text : "unknown error") + " (" +
              std::to_string(result) + ")";
  diagnostics.add(std::move(d));
  return false;
}

}  // namespace lacuna::group
