"""safetensors, as the command reads and writes them: length, JSON header, raw bytes."""

import json
import os
import pathlib
import struct
from typing import Any

import numpy

from .arrays import to_host

_DTYPES = {"F32": numpy.float32, "I32": numpy.int32, "U8": numpy.uint8}


def write(path: str | os.PathLike, tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> None:
    """Arrays of any library, also from a GPU."""
    header, parts, end = {"__metadata__": metadata} if metadata else {}, [], 0
    for name, array in tensors.items():
        host, dtype = to_host(array)
        header[name] = {"dtype": dtype, "shape": host.shape, "data_offsets": [end, end + host.nbytes]}
        parts.append(host)
        end += host.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for part in parts:
            file.write(part.data if part.size else b"")


def write_whole(path: str | os.PathLike, tensors: dict[str, Any], metadata: dict[str, str]) -> None:
    """As `write`, and where that ends early the file of before stays."""
    target = pathlib.Path(path)
    part = target.with_name(target.name + ".part")
    write(part, tensors, metadata)
    part.replace(target)


def parse(data: bytes) -> tuple[dict[str, numpy.ndarray], dict[str, str]]:
    """Tensors of f32, i32 and u8 by name, and the metadata. ValueError if it is no such file."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        metadata = header.pop("__metadata__", {})
        body = memoryview(data)[8 + length:]
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            tensors[name] = numpy.frombuffer(body[begin:end], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return tensors, metadata
    except (struct.error, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"no safetensors file of f32, i32 or u8: {error!r}") from None
