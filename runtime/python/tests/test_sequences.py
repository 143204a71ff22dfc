"""Batches of sequences of different lengths, and keys in pages: NumPy arrays on the CPU."""

import lacuna
import numpy
import pytest
from conftest import CAUSAL, Batch, error

RAGGED = [(5, 70), (0, 9), (130, 130), (1, 200), (3, 0), (64, 65)]


def following(batch, **more):
    return lacuna.Sequences(batch.q_begin, batch.lengths, k_begin=batch.k_begin, **more)


def close(found, expected):
    (o, lse), (expected_o, expected_lse) = found, expected
    assert error(o, expected_o) < 1e-5
    assert numpy.array_equal(numpy.isinf(lse), numpy.isinf(expected_lse))
    seen = numpy.isfinite(expected_lse)
    assert numpy.allclose(lse[seen], expected_lse[seen], atol=1e-4)


@pytest.mark.parametrize("heads_kv", [1, 2, 4])
@pytest.mark.parametrize("spec, causal", [("dense", False), (CAUSAL, True)])
def test_each_sequence_is_attention_by_itself(heads_kv, spec, causal):
    batch = Batch(RAGGED, heads_kv=heads_kv)
    found = lacuna.attention(batch.q, batch.k, batch.v, spec=spec, sequences=following(batch, max_n_q=130, max_n_k=200), lse=True)
    close(found, batch.exact(causal))


@pytest.mark.parametrize("page_tokens", [16, 64])
@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
def test_keys_in_pages(page_tokens, layout):
    batch = Batch(RAGGED)
    k, v, table = batch.pages(page_tokens)
    sequences = lacuna.Sequences(batch.q_begin, batch.lengths, pages=table)
    q = batch.q
    if layout == "bnhd":  # pages of [tokens, heads, d]
        q, k, v = (numpy.ascontiguousarray(array.swapaxes(1, 2)) for array in (q, k, v))
    o, lse = lacuna.attention(q, k, v, spec=CAUSAL, sequences=sequences, lse=True, layout=layout)
    close((o.swapaxes(1, 2) if layout == "bnhd" else o, lse), batch.exact(causal=True))


def test_pages_of_any_strides():
    batch = Batch(RAGGED)
    k, v, table = batch.pages(16)
    both = numpy.stack([k, v], axis=1).swapaxes(2, 3).copy()  # [pages, 2, tokens, heads, d], as servers have them
    views = [both[:, i].swapaxes(1, 2) for i in range(2)]
    wide = numpy.full((len(table), 2 * table.shape[1]), -1, "int32")
    wide[:, :table.shape[1]] = table
    o = lacuna.attention(batch.q, *views, sequences=lacuna.Sequences(batch.q_begin, batch.lengths, pages=wide[:, :table.shape[1]]))
    assert error(o, batch.exact()[0]) < 1e-5


def test_promises_are_those_of_each_sequence():
    """A parameter that never falls may hold anything behind the last token of a sequence."""
    spec = {"version": 1, "name": "places", "attention": {"mask": "place[k] <= q + n_k - n_q"},
            "params": {"place": {"type": "i32", "shape": "[batch, n_k]", "monotone": True}}}
    batch = Batch(RAGGED)
    place = numpy.zeros((len(RAGGED), 200), "int32")
    for n, length in enumerate(batch.n_k):
        place[n, :length] = range(length)
    close(lacuna.attention(batch.q, batch.k, batch.v, spec=spec, sequences=following(batch, max_n_q=130, max_n_k=200), lse=True, place=place),
          batch.exact(causal=True))
    place[2, 77] = 3
    with pytest.raises(lacuna.ArgumentError, match="of sequence 2: is declared monotone, but value 3 at .* is not at least 76"):
        lacuna.attention(batch.q, batch.k, batch.v, spec=spec, sequences=following(batch, max_n_q=130, max_n_k=200), place=place)


def test_a_kernel_for_sequences_and_one_for_pages():
    batch = Batch(RAGGED)
    kernel = lacuna.compile(CAUSAL, head_dim=64, dtype="f32", device="cpu", batch="sequences")
    out = numpy.full_like(batch.q, numpy.nan)
    assert kernel(batch.q, batch.k, batch.v, sequences=following(batch), out=out) is out
    assert error(out, batch.exact(causal=True)[0]) < 1e-5
    k, v, table = batch.pages(32)
    paged = lacuna.compile(CAUSAL, head_dim=64, dtype="f32", device="cpu", batch="pages")
    sequences = lacuna.Sequences(batch.q_begin, batch.lengths, pages=table, max_n_q=130, max_n_k=200)
    assert numpy.array_equal(paged(batch.q, k, v, sequences=sequences), out)
    assert (kernel.batch, paged.batch, sequences.batch) == ("sequences", "pages", "pages")
    assert paged.workspace(batch.q, k, sequences=sequences) == 0
    with pytest.raises(lacuna.ArgumentError, match="batch: expected uniform, sequences or pages, got paged"):
        lacuna.compile("dense", device="cpu", batch="paged")


def test_lengths_are_read_at_each_launch():
    batch = Batch([(4, 50), (6, 60)])
    sequences = following(batch)
    lacuna.attention(batch.q, batch.k, batch.v, sequences=sequences)
    batch.q_begin[1], batch.lengths[:] = 1, (50, 10)  # the same arrays hold another batch
    batch.n_q, batch.n_k = [1, 9], [50, 10]
    assert error(lacuna.attention(batch.q, batch.k, batch.v, sequences=sequences), batch.exact()[0]) < 1e-5


def test_rows_of_no_sequence_are_not_written():
    batch = Batch([(4, 50), (6, 60)])
    q = numpy.concatenate([batch.q[:, :, :2], batch.q, batch.q[:, :, :3]], axis=2)
    out, lse = numpy.full_like(q, -5), numpy.full(q.shape[:3], -5, "float32")
    sequences = lacuna.Sequences(batch.q_begin + 2, batch.lengths, k_begin=batch.k_begin)
    lacuna.attention(q, batch.k, batch.v, sequences=sequences, out=out, lse=lse)
    close((out[:, :, 2:-3], lse[:, :, 2:-3]), batch.exact())
    for rows in (slice(0, 2), slice(-3, None)):
        assert (out[:, :, rows] == -5).all() and (lse[:, :, rows] == -5).all()


def test_specs_gates_and_counts():
    batch = Batch([(128, 256), (100, 100)], heads_kv=4)
    counts = numpy.full((2, 4, 1, 3), -1, "int32")
    o = lacuna.attention(batch.q, batch.k, batch.v, spec="bsfa", threshold=1e30, sequences=following(batch), counts=counts)
    assert counts[:, 0, 0].tolist() == [[4, 4, 2], [2, 2, 0]]
    ungated = lacuna.attention(batch.q, batch.k, batch.v, spec="bsfa", sequences=following(batch))
    assert not numpy.array_equal(o[:, :, :128], ungated[:, :, :128]) and numpy.array_equal(o[:, :, 128:], ungated[:, :, 128:])


def test_no_sequences_and_no_tokens():
    batch = Batch([(0, 0)])
    assert lacuna.attention(batch.q, batch.k, batch.v, sequences=following(batch)).shape == (1, 4, 0, 64)
    none = lacuna.Sequences(numpy.zeros(1, "int32"), numpy.zeros(0, "int32"), k_begin=numpy.zeros(0, "int32"))
    assert lacuna.attention(batch.q, batch.k, batch.v, sequences=none).shape == (1, 4, 0, 64)


def refused(match, batch, sequences, kind=lacuna.ArgumentError, k=None, **more):
    with pytest.raises(kind, match=match):
        lacuna.attention(batch.q, batch.k if k is None else k, batch.v if k is None else k, sequences=sequences, **more)


def changed(batch, **fields):
    return lacuna.Sequences(**{"q_begin": batch.q_begin, "n_k": batch.lengths, "k_begin": batch.k_begin, **fields})


def test_what_is_no_batch():
    batch = Batch([(4, 50), (6, 60)])
    for fields, match in (({"k_begin": None}, "expected one of k_begin and pages, got none"),
                          ({"pages": numpy.zeros((2, 4), "int32")}, "expected one of k_begin and pages, got both"),
                          ({"n_k": None}, "sequences.n_k: expected an array, got None"),
                          ({"q_begin": None}, "sequences.q_begin: expected an array, got None")):
        with pytest.raises(lacuna.ArgumentError, match=match):
            changed(batch, **fields)
    refused("sequences: expected a lacuna.Sequences", batch, (batch.q_begin, batch.lengths), TypeError)
    refused("sequences.n_k: expected an array .*, got list", batch, changed(batch, n_k=[50, 60]), TypeError)


def test_arrays_of_a_batch_that_do_not_fit():
    batch = Batch([(4, 50), (6, 60)])
    refused("sequences.q_begin: dtype expected i32, got i64", batch, changed(batch, q_begin=batch.q_begin.astype("int64")))
    refused("sequences.q_begin: count . 1 expected 3, got 2", batch, changed(batch, q_begin=batch.q_begin[:2]))
    refused("sequences.k_begin: count expected 2, got 3", batch, changed(batch, k_begin=batch.q_begin))
    refused("sequences.n_k: .*expected 1", batch, changed(batch, n_k=batch.lengths[None]))
    refused("sequences.max_n_q: expected an int, got float", batch, changed(batch, max_n_q=1.5))
    refused("sequences.max_n_k: expected 0 to 2147483647, got -1", batch, changed(batch, max_n_k=-1))
    refused("sequences.q_begin", batch, changed(batch, q_begin=batch.q_begin[::-1].copy()))
    refused("sequences.q_begin", batch, changed(batch, q_begin=batch.q_begin + 1))
    refused("sequences.k_begin", batch, changed(batch, k_begin=batch.k_begin + 1))
    refused("sequences.n_k|max_n_k", batch, changed(batch, max_n_k=59))
    refused("argument k: .*expected 1, got 2", batch, changed(batch), k=numpy.zeros((2, 2, 60, 64), "float32"))


def test_pages_that_do_not_fit():
    batch = Batch([(4, 50), (6, 60)])
    k, _, table = batch.pages(16)
    paged = {"k_begin": None, "pages": table}
    refused("sequences.pages: dtype expected i32, got i64", batch, changed(batch, **{**paged, "pages": table.astype("int64")}), k=k)
    refused("page_tokens", batch, changed(batch, **paged), k=k[:, :, :12])
    refused("sequences.pages", batch, changed(batch, **{**paged, "pages": table + 1000}), k=k)


def test_kernels_and_batches_that_differ():
    batch = Batch([(4, 50), (6, 60)])
    q, k, v = batch.q, batch.k, batch.v
    uniform, following_kernel = (lacuna.compile("dense", head_dim=64, dtype="f32", device="cpu", batch=name) for name in ("uniform", "sequences"))
    with pytest.raises(lacuna.ArgumentError, match="sequences: expected null, got"):
        uniform(q, k, v, sequences=following(batch))
    with pytest.raises(lacuna.ArgumentError, match="sequences: expected lacuna_sequences, got null"):
        following_kernel(q, k, v)
    pages = changed(batch, k_begin=None, pages=batch.pages(16)[2])
    with pytest.raises(lacuna.ArgumentError, match="sequences.k_begin|sequences.pages"):
        following_kernel(q, *batch.pages(16)[:2], sequences=pages)
    with pytest.raises(lacuna.ArgumentError, match="expected max_n_q and max_n_k"):
        following_kernel.workspace(q, k, sequences=following(batch))
