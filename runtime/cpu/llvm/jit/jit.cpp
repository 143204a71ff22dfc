#include "runtime/cpu/llvm/jit/jit.hpp"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

extern "C" {
// Conversions of f16 on machines without F16C; in libgcc.
float __extendhfsf2(_Float16 x);  // NOLINT(bugprone-reserved-identifier)
_Float16 __truncsfhf2(float x);   // NOLINT(bugprone-reserved-identifier)
}

namespace lacuna::host {
namespace {

/// Functions that generated code may call; everything else is inline.
llvm::orc::SymbolMap helpers(llvm::orc::LLJIT& jit) {
  llvm::orc::SymbolMap symbols;
  const auto add = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                          llvm::JITSymbolFlags::Exported};
  };
  add("memcpy", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy));
  add("memset", static_cast<void* (*)(void*, int, std::size_t)>(&std::memset));
  add("memmove", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove));
  add("floorf", static_cast<float (*)(float)>(&::floorf));
  add("ceilf", static_cast<float (*)(float)>(&::ceilf));
  add("floor", static_cast<double (*)(double)>(&::floor));
  add("__extendhfsf2", &__extendhfsf2);
  add("__truncsfhf2", &__truncsfhf2);
  return symbols;
}

/// One JIT for the process, never destroyed: kernels may outlive every static object.
struct Engine {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::string error;
  std::atomic<std::uint64_t> modules{0};
};

Engine& engine() {
  static Engine* const instance = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto* created = new Engine;
    auto jit = llvm::orc::LLJITBuilder().create();
    if (!jit) {
      created->error = llvm::toString(jit.takeError());
      return created;
    }
    created->jit = std::move(*jit);
    auto& common = created->jit->getMainJITDylib();
    if (auto failed = common.define(llvm::orc::absoluteSymbols(helpers(*created->jit))))
      created->error = llvm::toString(std::move(failed));
    return created;
  }();
  return *instance;
}

Cpu detect_cpu() {
  Cpu cpu;
  cpu.name = llvm::sys::getHostCPUName().str();
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (const auto& feature : features)
    cpu.features += (cpu.features.empty() ? "" : ",") +
                    std::string(feature.getValue() ? "+" : "-") + feature.getKey().str();
  if (features.lookup("avx512f") && features.lookup("avx512vl") && features.lookup("avx512dq")) {
    cpu.width = 16;
    cpu.registers = 32;
  } else if (features.lookup("avx")) {
    cpu.width = 8;
  }
  return cpu;
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(std::string& error) {
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, host_cpu().name, host_cpu().features, llvm::TargetOptions{}, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive, true));
}

void describe_target(llvm::Module& module, const llvm::TargetMachine& machine) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
}

void set_attributes(llvm::Module& module) {
  const std::string bits = std::to_string(host_cpu().width * 32);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", host_cpu().name);
    function.addFnAttr("target-features", host_cpu().features);
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
  }
}

/// The passes that improve our functions, which are written in vectors, have no local arrays and
/// call nothing. All passes of O3 take 2.3 times as long; launches of six shipped specs were not
/// seen to be faster with them, in times that varied by a fifth. Without no-verify-fixpoint,
/// instcombine ends the process if one run does not suffice.
constexpr const char* kPasses =
    "function(early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),"
    "gvn,instcombine<no-verify-fixpoint>,"
    "loop-unroll<O3>,instcombine<no-verify-fixpoint>,simplifycfg)";

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, kPasses));
  passes.run(module, modules);
}

std::unique_ptr<llvm::MemoryBuffer> compile_object(llvm::Module& module,
                                                   llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  llvm::MCContext* context = nullptr;
  if (machine.addPassesToEmitMC(passes, context, stream)) return nullptr;
  passes.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), module.getName(),
                                                         /*RequiresNullTerminator=*/false);
}

}  // namespace

const Cpu& host_cpu() {
  static const Cpu cpu = detect_cpu();
  return cpu;
}

Code::Code(Code&& other) noexcept
    : ir(std::move(other.ir)), library_(std::exchange(other.library_, nullptr)) {}

Code& Code::operator=(Code&& other) noexcept {
  std::swap(ir, other.ir);
  std::swap(library_, other.library_);
  return *this;
}

Code::~Code() {
  if (library_ == nullptr) return;
  llvm::consumeError(engine().jit->getExecutionSession().removeJITDylib(*library_));
}

void* Code::address(std::string_view name) const {
  auto symbol = engine().jit->lookup(*library_, llvm::StringRef(name.data(), name.size()));
  if (!symbol) {
    llvm::consumeError(symbol.takeError());
    return nullptr;
  }
  return symbol->toPtr<void*>();
}

bool generate(const std::string& name, const std::function<void(llvm::Module&)>& fill, Code& code,
              std::string& error) {
  Engine& shared = engine();
  if (!shared.error.empty()) return error = shared.error, false;
  const auto machine = make_target_machine(error);
  if (machine == nullptr) return false;

  llvm::LLVMContext context;
  llvm::Module module(name, context);
  describe_target(module, *machine);
  fill(module);
  set_attributes(module);
  llvm::raw_string_ostream problems(error);
  if (llvm::verifyModule(module, &problems)) return false;
  optimise(module, *machine);
  llvm::raw_string_ostream text(code.ir);
  module.print(text, nullptr);

  auto object = compile_object(module, *machine);
  if (object == nullptr) return error = "the x86 target cannot emit object code", false;
  auto library =
      shared.jit->createJITDylib(name + "." + std::to_string(shared.modules.fetch_add(1)));
  if (!library) return error = llvm::toString(library.takeError()), false;
  code.library_ = &*library;
  library->addToLinkOrder(shared.jit->getMainJITDylib());
  if (auto failed = shared.jit->addObjectFile(*library, std::move(object)))
    return error = llvm::toString(std::move(failed)), false;
  return true;
}

}  // namespace lacuna::host
