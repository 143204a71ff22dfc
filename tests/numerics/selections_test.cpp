// Selections of batches of sequences: each sequence keeps bits of its own, which later launches
// follow.
#include <gtest/gtest.h>

#include <string>

#include "tests/numerics/harness/sequences.hpp"

namespace lacuna::numerics {
namespace {

/// The variant's spec, whose predictor decides for two launches.
std::string text_with_reuse(const std::string& variant) {
  Case shape;
  shape.variant = variant;
  std::string text = spec_text(shape);
  const std::string predictor = R"("predictor": {)";
  const std::size_t at = text.find(predictor);
  return at == std::string::npos ? "" : text.insert(at + predictor.size(), R"( "reuse": 2,)");
}

/// Memory of the device under test, aligned as a launch wants it.
struct Memory {
  Tensor tensor;
  void* data = nullptr;
  std::size_t bytes = 0;

  Memory(TensorSet& tensors, std::size_t size)
      : tensor(tensors.poisoned_u8({static_cast<std::int64_t>(size + 256)})), bytes(size) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.view()->data);
    data = reinterpret_cast<void*>((address + 255) / 256 * 256);
  }
};

/// A kernel, a batch and a selection for it, of the spec or of one branch.
struct SelectedBatch {
  SequenceBatch batch;
  std::string branch;
  lacuna_kernel* kernel = nullptr;
  lacuna_selection selection{};
  lacuna_branch_args of_branch{};
  const lacuna_branch_args* branches[1] = {&of_branch};
  Tensor tile_mask;
  std::vector<Memory> memory;

  SelectedBatch(const SequenceCase& c, std::string name)
      : batch(engine().is_cuda, c, 31), branch(std::move(name)) {
    const std::string spec = text_with_reuse(c.variant);
    lacuna_compile_options options{};
    options.struct_size = sizeof options, options.head_dim = c.d, options.dtype = LACUNA_BF16;
    options.batch = c.page_tokens > 0 ? LACUNA_BATCH_PAGES : LACUNA_BATCH_SEQUENCES;
    if (lacuna_compile(engine().engine, spec.data(), spec.size(), &options, &kernel) != LACUNA_OK ||
        lacuna_prepare(kernel) != LACUNA_OK)
      ADD_FAILURE() << lacuna_last_error();
  }
  ~SelectedBatch() { lacuna_kernel_destroy(kernel); }
  SelectedBatch(const SelectedBatch&) = delete;
  SelectedBatch& operator=(const SelectedBatch&) = delete;

  void provide() {
    const lacuna_shape shape = batch.launch_shape();
    std::size_t workspace = 0, kept = 0;
    ASSERT_EQ(lacuna_workspace_bytes(kernel, &shape, &workspace), LACUNA_OK);
    ASSERT_EQ(branch.empty() ? lacuna_selection_bytes(kernel, &shape, &kept)
                             : lacuna_branch_selection_bytes(kernel, branch.c_str(), &shape, &kept),
              LACUNA_OK);
    ASSERT_GT(kept, 0U);
    memory.emplace_back(batch.tensors, workspace);
    memory.emplace_back(batch.tensors, kept);
    batch.args.workspace = memory[0].data, batch.args.workspace_bytes = workspace;
    selection = {sizeof selection, memory[1].data, kept, 0};
    if (branch.empty()) {
      batch.args.selection = &selection;
      tile_mask = batch.tile_mask;
      return;
    }
    of_branch.struct_size = sizeof of_branch, of_branch.name = branch.c_str();
    of_branch.selection = &selection;
    std::int32_t tile_q = 1, tile_k = 1;
    ASSERT_EQ(lacuna_branch_tile(kernel, branch.c_str(), &tile_q, &tile_k), LACUNA_OK);
    tile_mask =
        batch.tensors.poisoned_u8({shape.batch, shape.heads, (shape.n_q + tile_q - 1) / tile_q,
                                   (shape.n_k + tile_k - 1) / tile_k});
    of_branch.tile_mask = tile_mask.view();
    batch.args.branches = branches, batch.args.branches_count = 1;
  }

  void launch() { ASSERT_EQ(lacuna_launch(kernel, &batch.args), LACUNA_OK) << lacuna_last_error(); }
};

void check_selection(SequenceCase c, const std::string& branch) {
  SCOPED_TRACE(c.text());
  SelectedBatch selected(c, branch);
  selected.provide();
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  selected.launch();
  EXPECT_EQ(selected.selection.calls, 1);
  EXPECT_EQ(selected.batch.check(engine().is_cuda), "");
  const std::vector<std::uint8_t> decided = selected.batch.tensors.download_u8(selected.tile_mask);
  selected.batch.poison();
  selected.launch();  // as decided
  EXPECT_EQ(selected.selection.calls, 0);
  EXPECT_EQ(selected.batch.check(engine().is_cuda), "");
  EXPECT_EQ(selected.batch.tensors.download_u8(selected.tile_mask), decided);

  // Without a bit no tile is visited: it is the selection that is followed.
  Tensor& kept = selected.memory[1].tensor;
  selected.batch.tensors.take(
      kept, selected.batch.tensors.upload_i32(
                std::vector<std::int32_t>(static_cast<std::size_t>(kept.shape[0] / 4), 0),
                {kept.shape[0] / 4}));
  selected.selection.calls = 1;
  selected.launch();
  selected.batch.tensors.synchronise();
  const std::vector<std::uint8_t> none = selected.batch.tensors.download_u8(selected.tile_mask);
  EXPECT_EQ(none, std::vector<std::uint8_t>(none.size(), 0));
}

TEST(Selections, OfSequencesAreFollowed) {
  SequenceCase c;
  c.n_h = 4, c.n_h_kv = 2, c.spare = 200;  // rows and words for the longest
  c.lengths = {{90, 300}, {0, 70}, {150, 700}, {3, 257}};
  for (const int page_tokens : {0, 32}) {
    c.variant = "topk-blocks", c.page_tokens = page_tokens;
    c.tile = {64, 64};
    check_selection(c, "");
  }
}

TEST(Selections, OfBranchesOfSequencesAreFollowed) {
  SequenceCase c;
  c.n_h = 2, c.n_h_kv = 1, c.spare = 70;
  c.lengths = {{90, 300}, {150, 150}, {3, 257}};
  for (const int page_tokens : {0, 32}) {
    c.variant = "nsa", c.page_tokens = page_tokens;
    check_selection(c, "selected");
  }
}

}  // namespace
}  // namespace lacuna::numerics
