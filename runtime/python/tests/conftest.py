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


class Batch:
    """Sequences of `lengths` (n_q, n_k), of random normal values; keys one sequence behind the other, and in pages in any order."""

    def __init__(self, lengths, heads=4, heads_kv=2, d=64, dtype="float32", seed=0):
        random = numpy.random.default_rng(seed)
        self.n_q, self.n_k = ([pair[axis] for pair in lengths] for axis in (0, 1))
        self.q = random.standard_normal((1, heads, sum(self.n_q), d)).astype(dtype)
        self.k, self.v = (random.standard_normal((1, heads_kv, sum(self.n_k), d)).astype(dtype) for _ in range(2))
        self.q_begin = numpy.cumsum([0, *self.n_q]).astype("int32")
        self.k_begin = numpy.cumsum([0, *self.n_k])[:-1].astype("int32")
        self.lengths, self.random = numpy.array(self.n_k, "int32"), random

    def pages(self, page_tokens):
        """(k, v [pages, heads_kv, page_tokens, d], table); what no sequence holds is NaN."""
        counts = [-(-n // page_tokens) for n in self.n_k]
        order = self.random.permutation(sum(counts) + 3)
        table = numpy.full((len(counts), max(counts) + 1), -7, "int32")
        stores = [numpy.full((len(order), x.shape[1], page_tokens, x.shape[3]), numpy.nan, x.dtype) for x in (self.k, self.v)]
        used = 0
        for b, count in enumerate(counts):
            table[b, :count] = order[used:used + count]
            used += count
            for n in range(self.n_k[b]):
                for store, rows in zip(stores, (self.k, self.v)):
                    store[table[b, n // page_tokens], :, n % page_tokens] = rows[0, :, self.k_begin[b] + n]
        return (*stores, table)

    def exact(self, causal=False):
        """(o, lse) in fp64, each sequence by itself."""
        o, lse = numpy.zeros(self.q.shape), numpy.full(self.q.shape[:3], -numpy.inf)
        for b, (n_q, n_k) in enumerate(zip(self.n_q, self.n_k)):
            rows, keys = (slice(first, first + n) for first, n in ((self.q_begin[b], n_q), (self.k_begin[b], n_k)))
            seen = min(n_q, n_k) if causal else n_q * (n_k > 0)  # rows with a key are the last ones
            rows = slice(rows.stop - seen, rows.stop)
            o[:, :, rows], lse[:, :, rows] = exact(self.q[:, :, rows], self.k[:, :, keys], self.v[:, :, keys], causal) if seen else (0, 0)
        return o, lse


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
