"""Compiling and launching: engines of the devices, compiled kernels, and attention as one call."""

import atexit
import functools
import json
import threading
from typing import Any

import numpy

from . import _lacuna
from .arrays import library_of
from .errors import ArgumentError, warn, warn_of
from .explanation import Explanation, explain
from .sequences import Sequences
from .spec import Spec, SpecLike, spec_of

_CPU, _CUDA = 1, 2  # DLDeviceType
_SELECTION_ALIGNMENT = 256  # bytes; NumPy's memory is aligned to less
_DTYPES = {4 * 256 + 16: "bf16", 2 * 256 + 16: "f16", 2 * 256 + 32: "f32"}  # by DLPack's type code and bits
_TYPE_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_BATCHES = ("uniform", "sequences", "pages")  # in the order of lacuna_batch
_NAMES = {"bf16": "bf16", "bfloat16": "bf16", "f16": "f16", "float16": "f16", "half": "f16", "f32": "f32", "float32": "f32"}

_lock = threading.RLock()
_engines: dict[str, "Engine"] = {}
_kernels: dict[tuple, "Kernel"] = {}


@functools.cache
def _warn_of_interpreter() -> None:
    warn("the CPU interprets, which is slow: its compiler is not there (pip install lacuna-attention[cpu])")


@atexit.register
def _release() -> None:
    """While Python is whole: kernels hold memory and threads of the library."""
    _kernels.clear()
    _engines.clear()


class Engine(_lacuna.Engine):
    """One device with its compilers and its cache of kernels; device: "cpu", "cuda:N", or None for the first GPU, else
    the CPU. cache_directory, template_path, threads, forbid_compiling: as in lacuna.h. add_kernels(bundle): what `lacuna build
    --bundle` wrote, as bytes or a memory map."""

    def __init__(self, device: str | None = None, *, cache_directory: str | None = None, template_path: str | None = None,
                 threads: int = 0, forbid_compiling: bool = False):
        super().__init__(device, cache_directory=cache_directory, template_path=template_path, threads=threads,
                         forbid_compiling=forbid_compiling)
        self.cache_directory = cache_directory

    def compile(self, spec: SpecLike, *, head_dim: int = 128, dtype: Any = "bf16",
                shape: tuple[int, int, int, int, int] | None = None, batch: str = "uniform", head_dim_v: int = 0,
                kv: str = "same") -> "Kernel":
        return Kernel(self, spec_of(spec), head_dim, dtype_name(dtype), shape, batch, head_dim_v, kv)


class Signature:
    """What a launch takes by name. `parameters`: dicts of name, dtype, shape, minimum, maximum, default, unit and doc;
    `tensors`: those that have to be passed; `lse`: whether there is one; `keeps_selection`: whether a Selection is of use;
    `summaries`: tile_k and elements of those that may stay from launch to launch (`Kernel.new_summaries`), or None;
    `arguments`: all tensors that the kernel has a use for, dicts of name, dtype, shape, output and required; `batch`:
    "uniform", "sequences" or "pages"; `digest`: SHA-256 of the spec, the same however its text was laid out."""

    def __init__(self, facts: dict):
        self.kernel: str = facts["spec"]
        self.digest: str = facts["digest"]
        self.batch: str = facts["batch"]
        self.arguments: list[dict] = facts["arguments"]
        self.tensors: tuple[str, ...] = tuple(facts["tensors"])
        self.parameters: dict[str, dict] = {parameter["name"]: parameter for parameter in facts["parameters"]}
        self.lse: bool = facts["lse"]
        self.keeps_selection: bool = facts["keeps_selection"]
        self.summaries: dict | None = facts.get("summaries")

    def __repr__(self) -> str:
        def word(parameter: dict) -> str:
            axes = f"[{', '.join(parameter['shape'])}]" if parameter["shape"] else ""
            default = f" = {parameter['default']}" if "default" in parameter else ""
            if parameter["dtype"] == "i32":
                default = default.removesuffix(".0")
            return f"{parameter['name']}: {parameter['dtype']}{axes}{default}"

        words = [*self.tensors, "*"] + [word(p) for p in self.parameters.values()]
        return f"{self.kernel}({', '.join(words if self.parameters else words[:-1])})"


class Kernel(_lacuna.Kernel):
    """One spec for one device, dtype and head dim, compiled. A call launches it: kernel(q, k, v, out=, lse=, stream=,
    layout=, workspace=, selection=, sequences=, **parameters), as `attention` says. Thread-safe; in a captured graph legal.
    `batch`: "uniform", "sequences" or "pages", what its launches pass. `kv`: "same", or "e4m3" for k and v in 8 bits, with
    k_scale= and v_scale= of its calls."""

    def __init__(self, engine: Engine, spec: Spec, head_dim: int, dtype: str,
                 shape: tuple[int, int, int, int, int] | None = None, batch: str = "uniform", head_dim_v: int = 0, kv: str = "same"):
        super().__init__(engine, spec.text, spec.path, head_dim, dtype, shape, batch, head_dim_v, kv)
        self.spec = spec
        self.batch = batch
        self.engine = engine
        self._shape, self._kv = shape, kv
        warn_of(engine.take_warnings())
        if self.info.get("backend") == "interpreter":
            _warn_of_interpreter()

    @property
    def info(self) -> dict:
        """Facts, as lacuna_kernel_info_json in lacuna.h says: tile, the kernels of a launch ("stages"), registers, whether the cache had it, ..."""
        return json.loads(self.info_json())

    @property
    def signature(self) -> Signature:
        return Signature(json.loads(self.signature_json()))

    @property
    def plan(self) -> Explanation:
        """Every decision of the compiler for this kernel, with its origin and reason."""
        info = self.info
        target = "cpu" if info["device"] == "cpu" else info["target"]
        shape = ",".join(f"{name}={size}" for name, size in zip(("b", "h", "h_kv", "n_q", "n_k"), self._shape or ()))
        return explain(self.spec, arch=target, head_dim=info["head_dim"], dtype=info["dtype"], batch=self.batch,
                       head_dim_v=info.get("head_dim_v"), kv=self._kv, relief=info.get("relief"), shape=shape or None,
                       cache_directory=self.engine.cache_directory)

    def workspace(self, q: Any, k: Any, layout: str = "bhnd", sequences: Sequences | None = None) -> int:
        """Bytes of device memory that a launch on such arrays needs as `workspace`; 0: none. A launch takes them from
        the allocator of q's library by itself where none is passed. Of sequences fewer queries may need more."""
        return self.workspace_bytes(_shape_of(q, k, layout, sequences))

    def new_selection(self, q: Any, k: Any, layout: str = "bhnd", branch: str | None = None) -> _lacuna.Selection:
        """Memory for a decision on arrays of this shape, in q's library: for specs with "reuse", of a spec with branches for
        one of these."""
        size = self.selection_bytes(_shape_of(q, k, layout), branch)
        if size == 0:
            kernel = self.info["spec"] + (f", branch {branch}," if branch is not None else "")
            raise ArgumentError(f"kernel {kernel} keeps no selection: it has no predictor")
        return _lacuna.Selection(library_of(type(q)).empty((size + _SELECTION_ALIGNMENT - 1,), "uint8", q))

    def new_summaries(self, k: Any, slots: int, n_k: int, layout: str = "bhnd") -> Any:
        """Memory for summaries that stay from launch to launch, `k_summaries` of calls, in k's library: a slot for each sequence, of
        up to n_k keys. Calls pass `summarised` too, i32 [batch]: the keys of each whose summaries earlier calls have left there, 0 at
        first; and `summary_slots`, i32 [batch], if entry b does not have slot b."""
        summaries = self.signature.summaries
        if summaries is None:
            raise ArgumentError(f"kernel {self.info['spec']} has no summaries that stay: none follows from the keys of its tile alone")
        heads = k.shape[1 if layout == "bhnd" else 2]
        return library_of(type(k)).empty((slots, heads, -(-n_k // summaries["tile_k"]), summaries["elements"]), "float32", k)

    def tokens_in_order(self, count: int) -> numpy.ndarray:
        """The order that the spec's "permute" generates: pass it as `order`, on the device."""
        order = numpy.empty(max(count, 1), numpy.int32)
        self.token_order(order.ctypes.data, count)
        return order[:count]

    def __repr__(self) -> str:
        info = self.info
        return f"<lacuna.Kernel {self.signature!r} on {info['device']}, head dim {info['head_dim']}, {info['dtype']}>"


def _shape_of(q: Any, k: Any, layout: str, sequences: Sequences | None = None) -> tuple[int, int, int, int, int]:
    heads, tokens = (1, 2) if layout == "bhnd" else (2, 1)
    if sequences is not None:
        if sequences.max_n_q is None or sequences.max_n_k is None:
            raise ArgumentError("sequences: expected max_n_q and max_n_k, by which memory is reserved")
        return (sequences.n_k.shape[0], q.shape[heads], k.shape[heads], sequences.max_n_q, sequences.max_n_k)
    return (q.shape[0], q.shape[heads], k.shape[heads], q.shape[tokens], k.shape[tokens])


def dtype_name(dtype: Any) -> str:
    """Of "bf16", numpy.float32, torch.bfloat16, ..."""
    word = str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")
    if word not in _NAMES:
        raise ArgumentError(f"dtype: expected bf16, f16 or f32, got {word}")
    return _NAMES[word]


def engine_of(device: str | None = None) -> Engine:
    """The engine that this process has for a device; made at the first call. None: the first GPU, else the CPU."""
    with _lock:
        if device not in _engines:
            engine = Engine(device)
            # None and the name of what it stands for are one engine.
            _engines[device] = _engines.setdefault(engine.device, engine)
        return _engines[device]


def compile(spec: SpecLike, *, head_dim: int = 128, dtype: Any = "bf16", device: str | None = None,
            shape: tuple[int, int, int, int, int] | None = None, batch: str = "uniform", head_dim_v: int = 0,
            kv: str = "same") -> Kernel:
    """A kernel for loops and graphs: everything that takes time is done here.

    device: "cpu", "cuda:N", or None for the first GPU, else the CPU. shape: (batch, heads, heads_kv, n_q, n_k) of the
    problems it is for, by which tuned tiles are chosen; it runs any. batch: "sequences" or "pages" for a kernel whose calls
    pass `sequences=`, with k_begin or with pages. head_dim_v: of v and o; 0: the spec's, else as head_dim. kv: "e4m3" for k
    and v in 8 bits, whose calls may pass k_scale= and v_scale=, f32 [batch or pages or 1, heads_kv or 1]. Raises SpecError,
    DeviceError."""
    return engine_of(device).compile(spec, head_dim=head_dim, dtype=dtype, shape=shape, batch=batch, head_dim_v=head_dim_v, kv=kv)


def _compile_for(key: tuple) -> Kernel:
    """What attention's table lacks: key is (spec, (device type, device index, dtype, head dim, batch, head dim of v))."""
    spec, (device_type, device_index, dtype, head_dim, batch, head_dim_v) = key
    if dtype not in _DTYPES:
        kind = _TYPE_CODES.get(dtype // 256, f"DLPack type {dtype // 256} of bits ")
        raise ArgumentError(f"argument q: dtype expected bfloat16, float16 or float32, got {kind}{dtype % 256}")
    if device_type not in (_CPU, _CUDA):
        raise ArgumentError("argument q: device expected the CPU or a CUDA device")
    with _lock:
        if key not in _kernels:
            device = "cpu" if device_type == _CPU else f"cuda:{device_index}"
            _kernels[key] = compile(spec, head_dim=head_dim, dtype=_DTYPES[dtype], device=device, batch=_BATCHES[batch],
                                    head_dim_v=head_dim_v)
        return _kernels[key]


def attention(q: Any, k: Any, v: Any, *, spec: SpecLike = "dense", lse: Any = False, out: Any = None, stream: Any = None,
              layout: str = "bhnd", workspace: Any = None, selection: _lacuna.Selection | None = None,
              sequences: Sequences | None = None, **parameters: Any) -> Any:
    """Attention of q [b, h, n_q, d] over k [b, h_kv, n_k, d] and v [b, h_kv, n_k, d_v] by a spec; o [b, h, n_q, d_v], or (o, lse).

    Arrays are NumPy's on the CPU, or those of PyTorch, CuPy, JAX and whatever exchanges DLPack; nothing is copied, and o
    is an array of q's library. bf16, f16, on the CPU f32; h is a multiple of h_kv; d contiguous.

    spec: a name (`specs()`), JSON text, the path of a .json file, a dict or a Spec; compiled at its first use.
    lse: True, or f32 [b, h, n_q] to write to; natural log, or in the spec's `lse_base`. out: where to write o. layout: "bnhd" for [b, n, h, d].
    stream: a CUstream as a number, or a stream of PyTorch or CuPy; else the one that is current in q's library. With
        another one the caller orders the work, and keeps the arrays until it has run.
    workspace: device memory for it; else from q's library.
    sequences: a batch of different lengths (`Sequences`); then q is [1, h, tokens, d], and k and v are [1, h_kv, tokens, d] or pages.
    selection: keeps the decision of a predictor (`Kernel.new_selection`).
    parameters: those of the spec, a number or an array (f32 or i32) each; softmax_scale, a number that takes the place of
        the spec's scale; and the tensors counts, tile_mask, list_indices, list_counts, previous_lse, order, k_summaries,
        summary_slots, summarised of lacuna.h.
        Of a spec with branches, branches={"NAME": {"counts": ..., "tile_mask": ..., "selection": ...}}, each optional, in
        tiles of the branch (Kernel.info["branches"]).

    Raises ArgumentError for what does not fit, SpecError, DeviceError."""
    key = spec if type(spec) is Spec else spec_of(spec)
    return _lacuna.attention(_kernels, _compile_for, key, q, k, v, out, lse, stream, layout, workspace, selection, sequences,
                             parameters)
