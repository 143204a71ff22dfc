"""What lacuna asks of the library whose arrays it is given: memory for results and workspace, and the current stream.

One Library for each array library; what only exchanges DLPack gets the last one, which can be read and written to but
not made.
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy

from .errors import ArgumentError


def _as_numpy(array: Any) -> tuple[numpy.ndarray, str]:
    host = numpy.asarray(array)
    return host, host.dtype.name


@dataclasses.dataclass(frozen=True)
class Library:
    """`empty(shape, dtype name, like)` and `empty_like(q)` make results, `workspace(bytes, like, stream)` device memory
    whose release waits for that stream, `to_host` a copy in host memory and the name of its dtype. Streams are handles of
    the driver, 0 the default one; `finish` waits for one of them on a device."""

    name: str
    empty: Callable[[tuple[int, ...], str, Any], Any]
    empty_like: Callable[[Any], Any]
    workspace: Callable[[int, Any, int], Any] | None = None
    current_stream: Callable[[int], int] = lambda device: 0
    to_host: Callable[[Any], tuple[numpy.ndarray, str]] = _as_numpy
    from_numpy: Callable[[numpy.ndarray, Any], Any] = lambda array, like: array
    by_buffer: bool = False
    refuse_gradients: Callable[[], None] | None = None
    finish: Callable[[int, int], None] | None = None


def _numpy() -> Library:
    return Library("numpy", empty=lambda shape, dtype, like: numpy.empty(shape, dtype), empty_like=numpy.empty_like,
                   by_buffer=True)


def _torch() -> Library:
    import torch

    def refuse_gradients() -> None:
        if torch.is_grad_enabled():
            raise ArgumentError("lacuna computes no gradients: call it under torch.no_grad() or torch.inference_mode(), or "
                                "pass q.detach(), k.detach(), v.detach()")

    def workspace(size: int, like: Any, stream: int) -> Any:
        if stream == torch.cuda.current_stream(like.device).cuda_stream:
            return torch.empty(size, dtype=torch.uint8, device=like.device)
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device)):
            return torch.empty(size, dtype=torch.uint8, device=like.device)

    def to_host(tensor: Any) -> tuple[numpy.ndarray, str]:
        host = tensor.detach().cpu().contiguous()
        if host.dtype == torch.bfloat16:  # which NumPy lacks
            return host.view(torch.int16).numpy(), "bfloat16"
        return _as_numpy(host.numpy())

    return Library("torch", empty=lambda shape, dtype, like: torch.empty(shape, dtype=getattr(torch, dtype), device=like.device),
                   empty_like=lambda q: torch.empty_like(q, requires_grad=False), workspace=workspace,
                   current_stream=lambda device: torch.cuda.current_stream(device).cuda_stream, to_host=to_host,
                   from_numpy=lambda array, like: torch.from_numpy(array).to(like.device), refuse_gradients=refuse_gradients)


def _cupy() -> Library:
    import cupy

    def workspace(size: int, like: Any, stream: int) -> Any:
        with like.device, cupy.cuda.ExternalStream(stream):
            return cupy.empty(size, dtype=cupy.uint8)

    def on_device_of(like: Any, make: Callable[[], Any]) -> Any:
        with like.device:
            return make()

    return Library("cupy", empty=lambda shape, dtype, like: on_device_of(like, lambda: cupy.empty(shape, dtype)),
                   empty_like=lambda q: on_device_of(q, lambda: cupy.empty_like(q)), workspace=workspace,
                   current_stream=lambda device: cupy.cuda.get_current_stream(device).ptr, to_host=lambda array: _as_numpy(cupy.asnumpy(array)),
                   from_numpy=lambda array, like: on_device_of(like, lambda: cupy.asarray(array)))


def _jax() -> Library:
    import jax
    import jax.numpy

    from .driver import synchronize

    # JAX's arrays never change once made, and JAX knows no stream of the caller's. So results are arrays of its own that
    # nobody else has seen, written before they are handed out, and the launch is waited for.
    def made(shape: Any, dtype: Any, like: Any) -> Any:
        return jax.device_put(jax.numpy.empty(shape, dtype), like.sharding).block_until_ready()

    return Library("jax", empty=made, empty_like=lambda q: made(q.shape, q.dtype, q),
                   workspace=lambda size, like, stream: made((size,), "uint8", like),
                   from_numpy=lambda array, like: jax.device_put(array, like.sharding), finish=synchronize)


def _unknown(name: str) -> Library:
    def refuse(*_: Any) -> Any:
        raise ArgumentError(f"lacuna makes no arrays of {name}: pass out=, lse= and workspace= (those of Kernel.workspace) of your own")

    return Library(name, empty=refuse, empty_like=refuse, workspace=refuse)


_LIBRARIES: dict[str, Callable[[], Library]] = {"numpy": _numpy, "torch": _torch, "cupy": _cupy, "jax": _jax, "jaxlib": _jax}


def library_of(cls: type) -> Library:
    """By the package that the type, or one that it is made of, comes from."""
    for base in cls.__mro__:
        package = base.__module__.partition(".")[0]
        if package in _LIBRARIES and package in sys.modules:
            # A scalar of NumPy is no array.
            if package == "numpy" and not issubclass(cls, numpy.ndarray):
                break
            return _LIBRARIES[package]()
    return _unknown(f"{cls.__module__}.{cls.__qualname__}")


def stream_handle(stream: Any) -> int:
    """Of a stream (or event) of PyTorch, CuPy, or of whatever has __cuda_stream__."""
    for attribute in ("cuda_stream", "cuda_event", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    raise ArgumentError(f"stream: expected a number (CUstream) or a stream of PyTorch or CuPy, got {type(stream).__name__}")


_SAFETENSORS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int32": "I32", "int64": "I64", "uint8": "U8"}


def to_host(array: Any) -> tuple[numpy.ndarray, str]:
    """Contiguous host memory of an array of any library, and what safetensors calls its dtype."""
    if not hasattr(array, "__dlpack__"):
        raise ArgumentError(f"expected an array, got {type(array).__name__}")
    host, dtype = library_of(type(array)).to_host(array)
    if dtype not in _SAFETENSORS:
        raise ArgumentError(f"dtype: expected one of {', '.join(_SAFETENSORS)}, got {dtype}")
    return numpy.ascontiguousarray(host), _SAFETENSORS[dtype]
