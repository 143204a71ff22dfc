// One launch: what Python passes -> lacuna_launch_args -> lacuna_launch, or that of a group.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "array.hpp"
#include "handles.hpp"
#include "memory.hpp"

namespace lacuna_python {

/// What a call is given besides q, k, v and what goes by name.
struct LaunchOptions {
  nb::handle out, lse, stream, layout, workspace, selection, stage_events, sequences;
};

/// What is launched: a kernel, or a rank's part of a group's plan.
struct Target {
  DLDevice device;
  bool waits;  ///< for a result or for other ranks: Python's other threads run meanwhile
  std::function<lacuna_status(const lacuna_shape&, std::size_t&)> workspace_bytes;
  std::function<lacuna_status(const lacuna_launch_args&)> launch;
};

Target target_of(const Kernel& kernel);

inline constexpr const char* kBranches = "branches";  ///< a keyword: of each branch by its name
inline constexpr std::size_t kBranchTensors = 2;      ///< of each: counts, tile_mask

/// Branches that a call says something of.
std::size_t branch_count(const nb::dict& named);

/// The text of a str; `name` is for messages.
std::string_view text_of(nb::handle text, const char* name);

class Launch {
 public:
  /// `named`: what Python passed by further keywords. All objects live as long as the call.
  Launch(nb::handle q, nb::handle k, nb::handle v, const LaunchOptions& options, nb::dict named);

  /// (device type, device index, dtype, head dim, batch, head dim of v), by which a kernel is
  /// found. Raises if q cannot be what attention is computed of.
  nb::tuple problem() const;

  /// Runs it; returns o or (o, lse), the caller's or made as arrays of q's library.
  nb::object run(const Target& target);

 private:
  BorrowedTensor& borrow(nb::handle array, const char* name);
  void output(nb::handle array, const char* name, bool is_callers, const DLTensor*& place);
  nb::object make_output() const;
  void take_lse(nb::object& made);
  void take_named();
  void take_events();
  void take_selection(const Target& target);
  lacuna_selection* selection_of(nb::handle selection, const Target& target) const;
  void take_branches(const Target& target);
  void take_sequences();
  void take_workspace(const Target& target);
  void refuse_aliases() const;
  bool wants_gradients() const;
  std::optional<Shape> shape() const;
  void allocate_workspace(std::size_t bytes);
  void allocate_on_host(std::size_t bytes);

  nb::handle q_array_, k_array_, v_array_;
  const LaunchOptions& options_;
  nb::dict named_;
  const ArrayType& type_;
  bool swapped_ = false;  ///< tokens before heads
  void* stream_ = nullptr;
  bool is_current_stream_ = true;
  std::unique_ptr<BorrowedTensor[]> tensors_;
  std::size_t borrowed_ = 0;
  std::vector<lacuna_param> params_;
  std::vector<void*> events_;
  nb::object own_workspace_;
  std::unique_ptr<unsigned char[]> host_workspace_;
  std::unique_ptr<DLManagedTensorVersioned, void (*)(DLManagedTensorVersioned*)> pooled_;
  lacuna_sequences sequences_{};
  std::vector<lacuna_branch_args> branches_;
  std::vector<const lacuna_branch_args*> branch_pointers_;
  lacuna_launch_args args_{};
};

}  // namespace lacuna_python
