#include "tests/numerics/harness/sequence_kernels.hpp"

#include <cstdint>
#include <map>
#include <tuple>

namespace lacuna::numerics {
namespace {

CompiledKernel compile_sequences(const SequenceCase& c) {
  Case shape;
  shape.variant = c.variant;
  lacuna_compile_options options = options_of(c.dtype, c.d, c.d_v);
  options.kv = c.e4m3 ? LACUNA_KV_E4M3 : LACUNA_KV_SAME;
  options.batch = c.page_tokens > 0 ? LACUNA_BATCH_PAGES : LACUNA_BATCH_SEQUENCES;
  return compile_spec(engine(), spec_text(shape), options);
}

/// Of a compiled kernel: spec, head dims, dtype, whether keys lie in pages, and whether they are
/// e4m3.
using Key = std::tuple<std::string, int, int, DType, bool, bool>;
Key key_of_sequences(const SequenceCase& c) {
  return {c.variant, c.d, c.value_dim(), c.dtype, c.page_tokens > 0, c.e4m3};
}
std::map<Key, CompiledKernel>& kernels() {
  static std::map<Key, CompiledKernel> all;
  return all;
}

}  // namespace

void compile_ahead(const std::vector<SequenceCase>& cases) {
  compile_missing(kernels(), cases, key_of_sequences, compile_sequences);
}

CompiledKernel kernel_for(const SequenceCase& c) {
  compile_ahead({c});
  return kernels().at(key_of_sequences(c));
}

std::string provide(SequenceBatch& batch, lacuna_kernel* kernel) {
  const lacuna_shape shape = batch.launch_shape();
  std::size_t bytes = 0;
  if (lacuna_workspace_bytes(kernel, &shape, &bytes) != LACUNA_OK) return lacuna_last_error();
  if (bytes > 0) {
    batch.workspace = batch.tensors.poisoned_u8({static_cast<std::int64_t>(bytes + 256)});
    const auto address = reinterpret_cast<std::uintptr_t>(batch.workspace.view()->data);
    batch.args.workspace = reinterpret_cast<void*>((address + 255) / 256 * 256);
    batch.args.workspace_bytes = bytes;
  }
  return "";
}

std::string launch(SequenceBatch& batch) {
  const CompiledKernel made = kernel_for(batch.shape);
  if (!made.error.empty()) return made.error;
  lacuna_kernel* kernel = made.kernel;
  if (std::string error = provide(batch, kernel); !error.empty()) return error;
  if (lacuna_launch(kernel, &batch.args) != LACUNA_OK) return lacuna_last_error();
  return batch.check(engine().is_cuda);
}

}  // namespace lacuna::numerics
