"""What the tests share: problems, attention in fp64 to compare with, and which hosts are installed."""

import importlib.util

import numpy
import pytest

CAUSAL = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'


def has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch
    return torch.cuda.is_available()


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no GPU, or no PyTorch to ask for it")


def problem(heads=4, heads_kv=None, n_q=96, n_k=None, d=64, batch=1, dtype="float32", seed=0):
    """q, k, v of random normal values."""
    random = numpy.random.default_rng(seed)
    shapes = (batch, heads, n_q, d), (batch, heads_kv or heads, n_k or n_q, d), (batch, heads_kv or heads, n_k or n_q, d)
    return tuple(random.standard_normal(shape).astype(dtype) for shape in shapes)


def exact(q, k, v, causal=False, scale=None):
    """(o, lse) in fp64."""
    q, k, v = (numpy.asarray(array, "float64") for array in (q, k, v))
    k, v = (numpy.repeat(array, q.shape[1] // array.shape[1], axis=1) for array in (k, v))
    s = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if causal:
        rows, columns = numpy.indices(s.shape[-2:])
        s = numpy.where(columns <= rows + s.shape[-1] - s.shape[-2], s, -numpy.inf)
    largest = s.max(-1, keepdims=True)
    p = numpy.exp(s - largest)
    return p @ v / p.sum(-1, keepdims=True), (largest + numpy.log(p.sum(-1, keepdims=True)))[..., 0]


def error(o, expected):
    """Relative L1."""
    return float(abs(numpy.asarray(o, "float64") - expected).sum() / abs(expected).sum())
