"""liblacuna.so for Python: the C ABI of runtime/include/lacuna/lacuna.h through ctypes. Tensors are borrowed by address,
shape and strides, so that any array library may own them:

    engine = Engine("liblacuna.so", "cuda:0")
    kernel = engine.compile(spec_text, head_dim=128, shape=(1, 32, 32, 8192, 8192))
    kernel.launch(kernel.bind(stream, q=tensor(pointer, shape, strides, "bf16"), k=..., v=..., o=...))
"""

import ctypes
import json
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint64,
                    c_void_p)

ABI_VERSION = 1
# Name -> (lacuna_dtype or None, DLPack type code, bits).
DTYPES = {"bf16": (0, 4, 16), "f16": (1, 2, 16), "f32": (2, 2, 32), "i32": (None, 0, 32), "u8": (None, 1, 8)}
DLPACK_CPU, DLPACK_CUDA = 1, 2
BATCHES = {"uniform": 0, "sequences": 1, "pages": 2}


class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class SizedStructure(Structure):
    """Begins with its own size, as every struct of the ABI does."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class EngineOptions(SizedStructure):
    _fields_ = [("struct_size", c_size_t), ("device", c_char_p), ("cache_directory", c_char_p), ("template_path", c_char_p),
                ("threads", c_int32), ("on_event", c_void_p), ("user", c_void_p)]


class Shape(SizedStructure):
    _fields_ = [("struct_size", c_size_t), ("batch", c_int32), ("heads", c_int32), ("heads_kv", c_int32), ("n_q", c_int32),
                ("n_k", c_int32)]


class CompileOptions(SizedStructure):
    _fields_ = [("struct_size", c_size_t), ("head_dim", c_int32), ("dtype", c_int32), ("path", c_char_p),
                ("shape", POINTER(Shape)), ("batch", c_int32)]


class Param(Structure):
    _fields_ = [("name", c_char_p), ("tensor", POINTER(DLTensor)), ("value", c_double)]


TENSORS = ("q", "k", "v", "o", "lse", "counts", "tile_mask", "list_indices", "list_counts")
LATE_TENSORS = ("previous_lse", "order")


class Sequences(SizedStructure):
    _fields_ = [("struct_size", c_size_t), ("count", c_int32), ("max_n_q", c_int32), ("max_n_k", c_int32),
                *((name, POINTER(DLTensor)) for name in ("q_begin", "n_k", "k_begin", "pages"))]


class LaunchArgs(SizedStructure):
    _fields_ = [("struct_size", c_size_t), *((name, POINTER(DLTensor)) for name in TENSORS), ("params", POINTER(Param)),
                ("params_count", c_size_t), ("workspace", c_void_p), ("workspace_bytes", c_size_t), ("stream", c_void_p),
                *((name, POINTER(DLTensor)) for name in LATE_TENSORS), ("mask", c_void_p),
                ("stage_events", POINTER(c_void_p)), ("stage_events_count", c_size_t), ("sequences", POINTER(Sequences))]


class LacunaError(Exception):
    """What lacuna_last_error says."""


def tensor(address, shape, strides, dtype, device="cuda:0"):
    """A view of memory that somebody else owns; strides in elements."""
    kind, _, index = device.partition(":")
    _, code, bits = DTYPES[dtype]
    axes = c_int64 * len(shape)
    return DLTensor(address, DLDevice(DLPACK_CUDA if kind == "cuda" else DLPACK_CPU, int(index or 0)), len(shape),
                    DLDataType(code, bits, 1), axes(*shape), axes(*strides), 0)


def load(path):
    library = ctypes.CDLL(path)
    library.lacuna_abi_version.restype = ctypes.c_uint32
    if (version := library.lacuna_abi_version()) != ABI_VERSION:
        raise LacunaError(f"{path}: expected ABI version {ABI_VERSION}, got {version}")
    for name in ("lacuna_last_error", "lacuna_engine_device_name", "lacuna_engine_target", "lacuna_kernel_info_json"):
        getattr(library, name).restype = c_char_p
    return library


class Engine:
    """Lives as long as the process."""

    def __init__(self, path, device, template_path=None):
        """`template_path`: device headers in place of the embedded ones."""
        self.library = load(path)
        self.handle = c_void_p()
        options = EngineOptions(device=device.encode(), template_path=template_path.encode() if template_path else None)
        self.check(self.library.lacuna_engine_create(byref(options), byref(self.handle)))
        self.device_name = self.library.lacuna_engine_device_name(self.handle).decode()
        self.target = self.library.lacuna_engine_target(self.handle).decode()

    def check(self, status):
        if status != 0:
            raise LacunaError(self.library.lacuna_last_error().decode().strip())

    def compile(self, spec, head_dim, shape, dtype="bf16", batch="uniform"):
        """A prepared kernel; spec is JSON text, shape (batch, heads, heads_kv, n_q, n_k), of sequences their number and the
        most queries and keys that one may have."""
        return Kernel(self, spec, head_dim, shape, dtype, batch)


class Kernel:
    """Prepared; lives as long as the process, as its engine does."""

    def __init__(self, engine, spec, head_dim, shape, dtype, batch="uniform"):
        self.engine, library = engine, engine.library
        self.handle = c_void_p()
        text = spec.encode()
        self.shape = Shape(**dict(zip(("batch", "heads", "heads_kv", "n_q", "n_k"), shape)))
        options = CompileOptions(head_dim=head_dim, dtype=DTYPES[dtype][0], shape=ctypes.pointer(self.shape),
                                 batch=BATCHES[batch])
        engine.check(library.lacuna_compile(engine.handle, text, c_size_t(len(text)), byref(options), byref(self.handle)))
        engine.check(library.lacuna_prepare(self.handle))
        tile_q, tile_k, size = c_int32(), c_int32(), c_size_t()
        engine.check(library.lacuna_kernel_tile(self.handle, byref(tile_q), byref(tile_k)))
        engine.check(library.lacuna_workspace_bytes(self.handle, byref(self.shape), byref(size)))
        self.tile = (tile_q.value, tile_k.value)
        self.workspace_bytes = size.value
        self.info = json.loads(library.lacuna_kernel_info_json(self.handle))

    def bind(self, stream=None, params=(), workspace=None, stage_events=(), sequences=None, **tensors):
        """Arguments of a launch: params are (name, number or DLTensor), stage_events CUevents, sequences the four tensors by
        name; all of it stays the caller's."""
        array = (Param * len(params))()
        for slot, (name, value) in zip(array, params):
            slot.name = name.encode()
            if isinstance(value, DLTensor):
                slot.tensor = ctypes.pointer(value)
            else:
                slot.value = value
        args = LaunchArgs(params=array, params_count=len(params), workspace=workspace,
                          workspace_bytes=self.workspace_bytes if workspace else 0, stream=stream,
                          stage_events=(c_void_p * len(stage_events))(*stage_events) if stage_events else None,
                          stage_events_count=len(stage_events))
        for name, view in tensors.items():
            setattr(args, name, ctypes.pointer(view))
        if sequences:
            batch = Sequences(count=self.shape.batch, max_n_q=self.shape.n_q, max_n_k=self.shape.n_k)
            for name, view in sequences.items():
                setattr(batch, name, ctypes.pointer(view))
            args.sequences = ctypes.pointer(batch)
        return args

    def launch(self, args):
        """Enqueues the work; what `bind` took must live until the stream has run it."""
        self.engine.check(self.engine.library.lacuna_launch(self.handle, byref(args)))
