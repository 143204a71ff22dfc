#!/usr/bin/env python3
"""Cuts the first tokens out of a Q/K/V sample: tests/data/*-4k.safetensors are made by

    tools/dev/slice_sample.py lm-layer5-16k.safetensors 4096 tests/data/lm-layer5-4k.safetensors

Tensors are [heads, tokens, head_dim]. Under a causal mask the first tokens of a longer document are
themselves a document, so the slice is as real as the whole."""

import argparse
import os

import safetensors_io


def slice_tokens(tensor, tokens):
    heads, length, _ = tensor.shape
    if tokens > length:
        raise SystemExit(f"tokens: expected at most {length}, got {tokens}")
    head_bytes = len(tensor.data) // heads
    kept = head_bytes // length * tokens
    data = b"".join(tensor.data[h * head_bytes:h * head_bytes + kept] for h in range(heads))
    return safetensors_io.Tensor(tensor.dtype, [heads, tokens, tensor.shape[2]], data)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sample")
    parser.add_argument("tokens", type=int)
    parser.add_argument("out")
    arguments = parser.parse_args()

    tensors, metadata = safetensors_io.read(arguments.sample)
    length = tensors["q"].shape[1]
    metadata["slice"] = (f"tokens 0 to {arguments.tokens - 1} of the {length} tokens of "
                         f"{os.path.basename(arguments.sample)}")
    tensors = {name: slice_tokens(tensor, arguments.tokens) for name, tensor in tensors.items()}
    safetensors_io.write(arguments.out, tensors, metadata)


if __name__ == "__main__":
    main()
