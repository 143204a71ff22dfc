"""Reads and writes safetensors files with the standard library: 8 bytes of header length, a JSON
header, raw little-endian bytes. Values are bytes, so that bf16 needs no special support."""

import json
import os
import struct
from dataclasses import dataclass


@dataclass
class Tensor:
    dtype: str  # "BF16", "F32", ...
    shape: list
    data: bytes


def read(path):
    """Returns (tensors by name, metadata)."""
    with open(path, "rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_bytes))
        body = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = Tensor(entry["dtype"], entry["shape"], body[begin:end])
    return tensors, metadata


def write(path, tensors, metadata):
    """Writes a temporary file beside `path` and renames it."""
    header = {"__metadata__": metadata}
    offset = 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape,
                        "data_offsets": [offset, offset + len(tensor.data)]}
        offset += len(tensor.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the data begins 8-byte aligned
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.data)
    os.replace(temporary, path)
