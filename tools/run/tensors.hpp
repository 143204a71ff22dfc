// The tensors of a run in the memory of its device, and launch arguments that point at them.
#pragma once

#include <vector>

#include "lacuna/lacuna.hpp"
#include "tools/common/device.hpp"
#include "tools/inputs/inputs.hpp"

namespace lacuna::tools {

/// The driver failed; run_and_measure turns it into a report.
struct DeviceFailure {
  Diagnostics diagnostics;
};

/// Collects what the driver says; check() turns it into a DeviceFailure.
struct DeviceErrors {
  Diagnostics diagnostics;
  void check() const {
    if (diagnostics.has_errors()) throw DeviceFailure{diagnostics};
  }
};

/// Bytes, aligned as workspaces and masks have to be.
struct AlignedBuffer {
  Buffer buffer;
  std::size_t bytes = 0;
  void* data();
};
AlignedBuffer place_bytes(std::size_t bytes, const Place& place, DeviceErrors& errors);

/// Batch, heads and lengths of the inputs.
v1::Shape shape_of(const Inputs& inputs);

/// The workspace that a kernel needs at the shape of the inputs. Launches in one stream may share
/// it.
AlignedBuffer place_workspace(const v1::Kernel& kernel, const Inputs& inputs, const Place& place,
                              DeviceErrors& errors);

v1::Tensor tensor_of(Buffer& buffer, const Place& place);

struct Tensors {
  Buffer q, k, v, o;
  std::vector<Buffer> params;  ///< in the order of Inputs::params; empty for numbers
};
Tensors place_tensors(const Inputs& inputs, const Place& place, DeviceErrors& errors);

/// Sets of tensors that rotate while a GPU is timed, together larger than its L2 cache; 1 on the
/// host.
std::size_t count_sets(const Inputs& inputs, const Place& place);

/// What only some specs ask for.
struct Extras {
  Buffer order, list_indices, list_counts, previous_lse;
};
/// Fills all but previous_lse, which another launch has to compute.
Extras place_extras(const SpecDocument& document, const v1::Kernel& kernel, const Inputs& inputs,
                    const Place& place, DeviceErrors& errors);
void add_extras(Extras& extras, const Place& place, v1::LaunchArgs& args);

/// Arguments with all parameters of the inputs. `workspace` is that of the kernel to be launched.
v1::LaunchArgs arguments(const Inputs& inputs, Tensors& tensors, AlignedBuffer& workspace,
                         const Place& place);

}  // namespace lacuna::tools
