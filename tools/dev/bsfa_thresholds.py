#!/usr/bin/env python3
"""Finds the thresholds of block-sparse flash attention for one Q/K/V sample:

    tools/dev/bsfa_thresholds.py tests/data/lm-layer5-4k.safetensors --kept 16 \\
        tests/data/lm-layer5-4k.bsfa-k16.safetensors

For each query head and each row of 128 queries: the maxima of the logits (natural units, after the
softmax scale) of the 64-key tiles that lie before the row's first query; the threshold is the mean
of the k-th and the (k+1)-th largest of them, or -inf where there are no more than k. So exactly k
such tiles are kept, up to ties. Writes `threshold`, f32 [heads, q_tiles]. Needs numpy."""

import argparse
import os

import numpy

import safetensors_io

TILE_Q = 128
TILE_K = 64


def as_f32(tensor):
    if tensor.dtype == "BF16":
        bits = numpy.frombuffer(tensor.data, dtype="<u2").astype(numpy.uint32) << 16
        values = bits.view(numpy.float32)
    elif tensor.dtype in ("F16", "F32"):
        values = numpy.frombuffer(tensor.data, dtype={"F16": "<f2", "F32": "<f4"}[tensor.dtype])
    else:
        raise SystemExit(f"dtype: expected BF16, F16 or F32, got {tensor.dtype}")
    return values.astype(numpy.float32).reshape(tensor.shape)


def row_threshold(q_rows, k, scale, kept):
    """Threshold of one row of query tiles over the keys `k` that lie before it."""
    tiles = len(k) // TILE_K
    if tiles <= kept:
        return -numpy.inf
    column_max = (q_rows @ k.T).max(axis=0) * scale
    tile_max = numpy.sort(column_max.reshape(tiles, TILE_K).max(axis=1))[::-1]
    return (tile_max[kept - 1] + tile_max[kept]) / 2


def thresholds(q, k, kept):
    heads, tokens, head_dim = q.shape
    group = heads // k.shape[0]
    scale = numpy.float32(head_dim ** -0.5)
    q_tiles = -(-tokens // TILE_Q)
    result = numpy.empty((heads, q_tiles), dtype="<f4")
    for head in range(heads):
        for tile in range(q_tiles):
            begin = tile * TILE_Q
            result[head, tile] = row_threshold(q[head, begin:begin + TILE_Q],
                                               k[head // group, :begin], scale, kept)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sample")
    parser.add_argument("out")
    parser.add_argument("--kept", type=int, default=16, help="tiles to keep in each row (16)")
    arguments = parser.parse_args()

    tensors, _ = safetensors_io.read(arguments.sample)
    result = thresholds(as_f32(tensors["q"]), as_f32(tensors["k"]), arguments.kept)
    metadata = {
        "source": f"tools/dev/bsfa_thresholds.py --kept {arguments.kept} "
                  f"{os.path.basename(arguments.sample)}",
        "kept_tiles": str(arguments.kept),
        "tile": f"{TILE_Q} x {TILE_K}",
        "layout": "[heads, q_tiles]",
        "unit": "logit, after the softmax scale; natural",
    }
    tensor = safetensors_io.Tensor("F32", list(result.shape), result.tobytes())
    safetensors_io.write(arguments.out, {"threshold": tensor}, metadata)


if __name__ == "__main__":
    main()
