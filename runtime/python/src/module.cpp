// The extension module lacuna._lacuna: what the Python of this package stands on.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "group.hpp"
#include "handles.hpp"
#include "launch.hpp"

namespace lacuna_python {
namespace {

using namespace nb::literals;

nb::object call_kernel(const Kernel& kernel, nb::object q, nb::object k, nb::object v,
                       nb::object out, nb::object lse, nb::object stream, nb::object layout,
                       nb::object workspace, nb::object selection, nb::object stage_events,
                       nb::object sequences, nb::kwargs named) {
  const LaunchOptions options = {out,       lse,       stream,       layout,
                                 workspace, selection, stage_events, sequences};
  return Launch(q, k, v, options, nb::borrow<nb::dict>(named)).run(target_of(kernel));
}

/// kernels: {(spec, (device type, device index, dtype, head dim, batch, head dim of v)): Kernel};
/// what is not there comes from make of that key, which keeps it there.
nb::object attention(nb::dict kernels, nb::object make, nb::object spec, nb::object q, nb::object k,
                     nb::object v, nb::object out, nb::object lse, nb::object stream,
                     nb::object layout, nb::object workspace, nb::object selection,
                     nb::object sequences, nb::dict named) {
  const nb::object none = nb::none();
  const LaunchOptions options = {out, lse, stream, layout, workspace, selection, none, sequences};
  Launch launch(q, k, v, options, named);
  const nb::tuple key = nb::make_tuple(spec, launch.problem());
  const nb::handle known = PyDict_GetItemWithError(kernels.ptr(), key.ptr());
  if (!known.is_valid() && PyErr_Occurred() != nullptr) nb::raise_python_error();
  // Held: another thread may empty the table meanwhile.
  const nb::object kernel = known.is_valid() ? nb::borrow(known) : make(key);
  return launch.run(target_of(nb::cast<const Kernel&>(kernel)));
}

}  // namespace
}  // namespace lacuna_python

NB_MODULE(_lacuna, module) {
  using namespace lacuna_python;  // NOLINT(google-build-using-namespace): this is the module's door
  namespace nb = nanobind;
  using namespace nb::literals;

  module.doc() = "liblacuna for Python: engines, kernels and launches on arrays of any library.";
  module.def("version", [] { return std::string(lacuna_version()); });

  nb::class_<Engine>(module, "Engine", "One device with its compilers and its cache of kernels.")
      .def(nb::init<std::optional<std::string>, std::optional<std::string>,
                    std::optional<std::string>, int, bool>(),
           "device"_a = nb::none(), nb::kw_only(), "cache_directory"_a = nb::none(),
           "template_path"_a = nb::none(), "threads"_a = 0, "forbid_compiling"_a = false,
           "device: \"cpu\", \"cuda:N\", or None for the first GPU, else the CPU; threads: of the "
           "CPU, 0: all; forbid_compiling: of kernels for a GPU, which come from add_kernels and "
           "the cache.")
      .def_prop_ro("device", &Engine::device)
      .def_prop_ro("device_name", &Engine::device_name)
      .def_prop_ro("target", &Engine::target)
      .def_prop_ro("note", &Engine::note,
                   "What is missing on this machine and what serves in its place.")
      .def("add_kernels", &Engine::add_kernels, "bundle"_a,
           "Kernels that were compiled elsewhere, as `lacuna build --bundle` writes them: bytes, a "
           "memory map, ...; not copied, and held as long as the engine.")
      .def("take_warnings", &Engine::take_warnings);

  nb::class_<Kernel>(module, "Kernel", "One spec for one device, dtype and head dim, compiled.")
      .def(nb::init<std::shared_ptr<Engine>, const std::string&, const std::string&, int,
                    const std::string&, std::optional<Shape>, const std::string&, int,
                    const std::string&>(),
           "engine"_a, "spec"_a, "path"_a, "head_dim"_a, "dtype"_a, "shape"_a = nb::none(),
           "batch"_a = "uniform", "head_dim_v"_a = 0, "kv"_a = "same")
      .def("__call__", &call_kernel, "q"_a.none(), "k"_a.none(), "v"_a.none(), nb::kw_only(),
           "out"_a = nb::none(), "lse"_a = false, "stream"_a = nb::none(), "layout"_a = "bhnd",
           "workspace"_a = nb::none(), "selection"_a = nb::none(), "stage_events"_a = nb::none(),
           "sequences"_a = nb::none(), "named"_a,
           "o, or (o, lse): attention of q [b, h, n_q, d] with k, v [b, h_kv, n_k, d], as "
           "lacuna.attention says.")
      .def("info_json", &Kernel::info_json)
      .def("signature_json", &Kernel::signature_json)
      .def("workspace_bytes", &Kernel::workspace_bytes, "shape"_a)
      .def("selection_bytes", &Kernel::selection_bytes, "shape"_a, "branch"_a = nb::none())
      .def("token_order", &Kernel::token_order, "address"_a, "count"_a);

  nb::class_<Selection>(
      module, "Selection",
      "Which tiles a predictor kept, for specs with \"reuse\": memory of the caller's that one "
      "decision stays in for several launches. Not for two launches at once.")
      .def(nb::init<nb::object>(), "array"_a)
      .def("forget", &Selection::forget, "The next launch decides anew.")
      .def_prop_ro("calls", &Selection::calls,
                   "Launches since the decision, modulo the spec's reuse.");

  module.def("attention", &attention, "kernels"_a, "make"_a, "spec"_a, "q"_a.none(), "k"_a.none(),
             "v"_a.none(), "out"_a.none(), "lse"_a.none(), "stream"_a.none(), "layout"_a,
             "workspace"_a.none(), "selection"_a.none(), "sequences"_a.none(), "named"_a);
  add_group_classes(module);
}
