"""One problem on several GPUs, a rank for each: groups of the C ABI (group.h, runtime/group).

    group = lacuna.Group.from_torch()                                 # one process for each GPU, as torchrun starts them
    o = group.attention(q, k, v, spec="dense", layout="striped", stripe=1024)    # this rank's part of q, k, v and o
    group.plan("dense", shape=(1, 32, 8, 131072, 131072)).table       # what each scheme would send and compute

All ranks call the same functions in the same order with the same arguments but for the arrays. What differs, a rank that
died and one that does not come are exceptions on every rank, within `timeout_s`.
"""

import collections
import concurrent.futures
import hashlib
import json
from typing import Any

import numpy

from . import _lacuna
from .arrays import library_of, stream_handle
from .errors import ArgumentError, DeviceError, Error, warn_of
from .kernel import dtype_name, engine_of
from .sequences import Sequences
from .spec import Spec, SpecLike, spec_of

_KEPT_PLANS = 64  # by a group, for `attention`
_MISMATCH = "E0506"
Shape = tuple[int, int, int, int, int]


def _limits_of(sequences: Sequences) -> tuple[int, int, int]:
    if sequences.max_n_q is None or sequences.max_n_k is None:
        raise ArgumentError("sequences: expected max_n_q and max_n_k, by which a group plans")
    return int(sequences.n_k.shape[0]), sequences.max_n_q, sequences.max_n_k


class _Stream:
    """On which the arrays of the last call live: what `Group.synchronize` waits for. Plans hold this rather than their
    group, which holds them: nothing that the extension owns may be part of a cycle."""

    library: Any = None


class Plan(_lacuna.GroupPlan):
    """Who computes what of one problem, for this rank; `Group.plan` makes it.

    table: what was decided and why, as plain data: {"ranks", "rank", "layout", "scheme", "because", "link", "kernel",
        "one_gpu_us", "efficiency", "schemes": [{"scheme", "possible", "sent_bytes", "imbalance", "total_us", ...}]}, as
        lacuna_group_plan_json in group.h says.
    shape: (batch, heads, heads_kv, n_q, n_k) of this rank's tensors; tile: (q, k) of the kernel."""

    def __init__(self, last: _Stream, kernel: _lacuna.GroupKernel, shape: Shape, layout: str, stripe: int, scheme: str, lse: bool,
                 strided: bool, work: list[float], sequences: tuple[int, int, int]):
        super().__init__(kernel, shape, layout, stripe, scheme, lse, strided, work, sequences)
        self._last = last
        self.tile: tuple[int, int] = kernel.tile
        self.table: dict = json.loads(self.json())

    def __call__(self, q: Any, k: Any, v: Any, *, out: Any = None, lse: Any = False, stream: Any = None, axes: str = "bhnd",
                 workspace: Any = None, sequences: Sequences | None = None, **parameters: Any) -> Any:
        """This rank's o, or (o, lse), of this rank's q [b, h, n_q, d], k and v [b, h_kv, n_k, d]; of `axes` "bnhd" [b, n, h, d].
        Parameters and sequences are those of the whole problem, the same on all ranks. On a GPU it returns before the work has run:
        wait with `Group.synchronize`. Not for a captured graph. An error on one rank loses the group."""
        if axes not in ("bhnd", "bnhd"):
            raise ArgumentError(f"axes: expected \"bhnd\" or \"bnhd\", got {axes!r}")
        self._last.library = library_of(type(q))
        return self.launch(q, k, v, out=out, lse=lse, stream=stream, axes=axes, workspace=workspace, sequences=sequences, **parameters)

    def __repr__(self) -> str:
        table = self.table
        return (f"<lacuna.Plan of rank {table['rank']} of {table['ranks']}: {table['scheme']} ({table['because']}), efficiency "
                f"{table['efficiency']:.2f}>")


class Group:
    """One rank of a group. For one thread at a time; `loopback`, `from_torch`, `from_unique_id` and `from_communicator` make it.

    timeout_s: how long a rank waits for others, 0 for 60. link_gb_s, tflops: of the link between ranks and of attention on
    one; 0: measured on GPUs when the group is made, or known. exchange: "messages" of NCCL's, or "copies" into memory that
    ranks of one host share; "auto": copies where that is possible."""

    def __init__(self, engine: _lacuna.Engine, rank: int, size: int, **more: Any):
        self.engine, self.rank, self.size = engine, rank, size
        self._handle = _lacuna.Group(engine, rank, size, **more)
        self._last = _Stream()
        self._kernels: dict[tuple[Spec, int, str, bool], _lacuna.GroupKernel] = {}
        self._plans: collections.OrderedDict[tuple, Plan] = collections.OrderedDict()

    @classmethod
    def loopback(cls, size: int, *, timeout_s: float = 0, link_gb_s: float = 0, tflops: float = 0,
                 exchange: str = "auto") -> list["Group"]:
        """The ranks of a group on the CPU, each for a thread of the caller's: everything but speed is as on GPUs."""
        place, engine = _lacuna.Loopback(size), engine_of("cpu")
        with concurrent.futures.ThreadPoolExecutor(size) as pool:
            return list(pool.map(lambda rank: cls(engine, rank, size, loopback=place, timeout_s=timeout_s, link_gb_s=link_gb_s,
                                                  tflops=tflops, exchange=exchange), range(size)))

    @classmethod
    def from_torch(cls, process_group: Any = None, *, device: int | None = None, timeout_s: float = 0, link_gb_s: float = 0,
                   tflops: float = 0, exchange: str = "auto") -> "Group":
        """Of the ranks of a torch.distributed process group, None for the default one: a communicator of its own, whose
        unique id travels through the process group. device: the GPU of this rank; None: PyTorch's current one."""
        import torch
        import torch.distributed

        engine, identity, reason = None, None, None
        rank, size = torch.distributed.get_rank(process_group), torch.distributed.get_world_size(process_group)
        if rank < 0:
            raise ArgumentError("process_group: expected one that this rank is part of")
        try:
            engine = engine_of(f"cuda:{torch.cuda.current_device() if device is None else device}")
            identity = _lacuna.unique_id(engine) if rank == 0 else None
        except (Error, RuntimeError, AssertionError) as error:  # of lacuna, or of a PyTorch that finds no GPU
            reason = str(error)
        told: list[Any] = [None] * size
        torch.distributed.all_gather_object(told, (identity, reason), group=process_group)
        for other, (_, failure) in enumerate(told):
            if failure is not None:
                raise DeviceError(f"rank {other} of the process group cannot be part of a group: {failure}")
        return cls(engine, rank, size, unique_id=told[0][0], timeout_s=timeout_s, link_gb_s=link_gb_s, tflops=tflops, exchange=exchange)

    @staticmethod
    def unique_id(device: str = "cuda:0") -> bytes:
        """For one rank, which gives it to the others by whatever means: ncclGetUniqueId."""
        return _lacuna.unique_id(engine_of(device))

    @classmethod
    def from_unique_id(cls, unique_id: bytes, rank: int, size: int, *, device: str = "cuda:0", timeout_s: float = 0, link_gb_s: float = 0,
                       tflops: float = 0, exchange: str = "auto") -> "Group":
        return cls(engine_of(device), rank, size, unique_id=unique_id, timeout_s=timeout_s, link_gb_s=link_gb_s, tflops=tflops,
                   exchange=exchange)

    @classmethod
    def from_communicator(cls, communicator: int, rank: int, size: int, *, device: str = "cuda:0", timeout_s: float = 0,
                          link_gb_s: float = 0, tflops: float = 0, exchange: str = "auto") -> "Group":
        """communicator: the address of an ncclComm_t of the caller's, on that device. It stays the caller's; but where a
        rank is lost it is aborted, and must not be used or destroyed."""
        return cls(engine_of(device), rank, size, communicator=communicator, timeout_s=timeout_s, link_gb_s=link_gb_s, tflops=tflops,
                   exchange=exchange)

    def tokens(self, count: int, layout: str = "contiguous", stripe: int = 0) -> numpy.ndarray:
        """Which of `count` tokens this rank holds, ascending: q[:, :, group.tokens(n, ...)] is its part of the whole."""
        every = numpy.arange(count)
        if layout == "contiguous":
            return every[count * self.rank // self.size:count * (self.rank + 1) // self.size]
        if layout == "striped" and stripe > 0:
            turn, place = numpy.divmod(every // stripe, self.size)
            return every[numpy.where(turn % 2 == 0, place, self.size - 1 - place) == self.rank]
        if layout == "heads":
            return every
        raise ArgumentError(f"layout: expected contiguous, striped with stripe= tokens, or heads, got {layout} with stripe {stripe}")

    def heads(self, heads: int, heads_kv: int, layout: str = "contiguous") -> tuple[slice, slice]:
        """Which heads of q and o, and which of k and v, this rank holds."""
        if layout != "heads":
            return slice(0, heads), slice(0, heads_kv)
        first, end = (heads_kv * rank // self.size for rank in (self.rank, self.rank + 1))
        shared = heads // max(heads_kv, 1)
        return slice(first * shared, end * shared), slice(first, end)

    def plan(self, spec: SpecLike, *, shape: Shape, head_dim: int = 128, dtype: Any = "bf16", layout: str = "contiguous", stripe: int = 0,
             scheme: str = "auto", lse: bool = False, strided: bool = False, work: Any = None,
             sequences: tuple[int, int, int] | None = None) -> Plan:
        """Compiles a spec on all ranks and decides who computes what of a problem.

        shape: (batch, heads, heads_kv, n_q, n_k) of the whole. layout: "contiguous" shards of the tokens, "striped" ones of
        `stripe` tokens each, dealt forwards and backwards in turn, or whole "heads". scheme: "auto" for the shortest, "gather",
        "rows" or "heads". lse: whether launches pass one. strided: whether rows of a head may lie apart in memory (axes
        "bnhd"). work: [heads, q_tiles] numbers of tiles by which work is dealt, the same on all ranks; None: the mask's.
        sequences: (count, max_n_q, max_n_k) of a batch of different lengths, whose calls pass `Sequences`; shape is then (1, heads,
        heads_kv, tokens of q, tokens of k). Their heads stay whole."""
        key = text, _, name, _ = (spec_of(spec), head_dim, dtype_name(dtype), sequences is not None)
        if key not in self._kernels:
            whole = None if sequences else shape
            self._kernels[key] = _lacuna.GroupKernel(self._handle, text.text, text.path, head_dim, name, whole, sequences is not None)
            warn_of(self.engine.take_warnings())
        numbers = [] if work is None else numpy.asarray(work, "float32").ravel().tolist()
        return Plan(self._last, self._kernels[key], tuple(map(int, shape)), layout, stripe, scheme, lse, strided, numbers,
                    sequences or (0, 0, 0))

    def attention(self, q: Any, k: Any, v: Any, *, spec: SpecLike = "dense", layout: str = "contiguous", stripe: int = 0,
                  scheme: str = "auto", shape: Shape | None = None, work: Any = None, axes: str = "bhnd", lse: Any = False,
                  out: Any = None, stream: Any = None, workspace: Any = None, sequences: Sequences | None = None, **parameters: Any) -> Any:
        """This rank's o, or (o, lse); arrays, lse, out, stream, workspace, sequences and parameters as `Plan` has them, the rest as
        `plan` has it. shape: of the whole; None where all ranks hold equally many tokens (or heads). Plans are kept."""
        whole = shape or self._whole(q, k, layout, axes)
        strided = any(array is not None and _has_gaps(array, axes) for array in (q, k, v, out))
        has_lse = lse is not None and lse is not False
        digest = None if work is None else hashlib.sha256(numpy.asarray(work, "float32").tobytes()).digest()
        dtype = str(q.dtype).removeprefix("torch.")
        limits = None if sequences is None else _limits_of(sequences)
        key = (spec_of(spec), q.shape[-1], dtype, whole, layout, stripe, scheme, has_lse, strided, digest, limits)
        if key not in self._plans:
            try:
                plan = self.plan(spec, shape=whole, head_dim=q.shape[-1], dtype=dtype, layout=layout, stripe=stripe, scheme=scheme,
                                 lse=has_lse, strided=strided, work=work, sequences=limits)
            except Error as error:
                if shape is None and any(item.get("code") == _MISMATCH for item in error.diagnostics):
                    raise type(error)(f"{error}\nhelp: where ranks hold different numbers of tokens, pass shape= of the whole "
                                      "(batch, heads, heads_kv, n_q, n_k)", error.diagnostics) from None
                raise
            self._plans[key] = plan
            if len(self._plans) > _KEPT_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return self._plans[key](q, k, v, out=out, lse=lse, stream=stream, axes=axes, workspace=workspace, sequences=sequences,
                                **parameters)

    def _whole(self, q: Any, k: Any, layout: str, axes: str) -> Shape:
        if len(q.shape) != 4 or len(k.shape) != 4:
            raise ArgumentError(f"q, k: expected 4 axes, got {len(q.shape)} and {len(k.shape)}")
        heads, tokens = (1, 2) if axes == "bhnd" else (2, 1)
        by_heads, by_tokens = (self.size, 1) if layout == "heads" else (1, self.size)
        return (q.shape[0], q.shape[heads] * by_heads, k.shape[heads] * by_heads, q.shape[tokens] * by_tokens, k.shape[tokens] * by_tokens)

    def synchronize(self, stream: Any = None) -> None:
        """Waits until a stream has run; None: the current one of the library whose arrays were last passed. In place of
        torch.cuda.synchronize: where a rank is lost, this one ends with an exception after `timeout_s`."""
        if stream is None:
            index = self.engine.device.partition(":")[2]
            stream = self._last.library.current_stream(int(index)) if self._last.library is not None and index else 0
        self._handle.wait(stream if isinstance(stream, int) else stream_handle(stream))

    def __repr__(self) -> str:
        return f"<lacuna.Group rank {self.rank} of {self.size} on {self.engine.device}>"


def _has_gaps(array: Any, axes: str) -> bool:
    """Whether the rows of a head do not lie one behind the other."""
    if callable(getattr(array, "stride", None)):
        strides = array.stride()
    elif getattr(array, "strides", None) is not None:
        strides = tuple(stride // array.itemsize for stride in array.strides)
    else:
        return axes == "bnhd"  # of JAX: compact
    return len(strides) == 4 and strides[2 if axes == "bhnd" else 1] != array.shape[-1]
