// lacuna.Sequences, what Python passes of a batch of sequences, as lacuna_sequences.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "lacuna/lacuna.h"

namespace lacuna_python {

namespace nb = nanobind;

/// Which kernels serve such a batch; of None those for batches of one length.
lacuna_batch batch_of(nb::handle sequences);

/// borrow(array, name for messages): the tensor, which has to live as long as the result. Lengths
/// that are None are read from tensors on the host. Raises for what is no lacuna.Sequences.
lacuna_sequences read_sequences(
    nb::handle sequences, const std::function<const DLTensor&(nb::handle, const char*)>& borrow);

}  // namespace lacuna_python
