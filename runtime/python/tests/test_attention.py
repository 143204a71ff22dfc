"""lacuna.attention and kernels on NumPy arrays: results, forms of a spec, layouts, outputs, parameters."""

import concurrent.futures
import gc
import json
import pathlib

import lacuna
import numpy
import pytest
from conftest import CAUSAL, error, exact, problem


@pytest.mark.parametrize("dtype, bound", [("float32", 1e-5), ("float16", 2e-3)])
def test_dense_attention_is_that_of_fp64(dtype, bound):
    q, k, v = problem(dtype=dtype)
    o = lacuna.attention(q, k, v)
    assert (type(o), o.dtype, o.shape) == (numpy.ndarray, q.dtype, q.shape)
    assert error(o, exact(q, k, v)[0]) < bound


def test_bfloat16_of_ml_dtypes():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    q, k, v = problem(dtype=bfloat16)
    o = lacuna.attention(q, k, v)
    assert o.dtype == bfloat16
    assert error(o, exact(q, k, v)[0]) < 1e-2


def test_heads_share_keys_and_queries_are_the_last():
    q, k, v = problem(heads=8, heads_kv=2, n_q=33, n_k=100, d=72, batch=2)
    o, lse = lacuna.attention(q, k, v, spec=CAUSAL, lse=True)
    expected, expected_lse = exact(q, k, v, causal=True)
    assert error(o, expected) < 1e-5
    assert numpy.allclose(lse, expected_lse, atol=1e-4)


@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_values_of_another_width(layout, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    q, k, _ = problem(heads=4, heads_kv=2, d=96, dtype=dtype)
    _, _, v = problem(heads=4, heads_kv=2, d=64, dtype=dtype, seed=1)
    arrays = [q, k, v] if layout == "bhnd" else [numpy.ascontiguousarray(array.swapaxes(1, 2)) for array in (q, k, v)]
    o = lacuna.attention(*arrays, spec=CAUSAL, layout=layout)
    assert o.dtype == q.dtype and o.shape == (*arrays[0].shape[:3], 64)
    assert error(o if layout == "bhnd" else o.swapaxes(1, 2), exact(q, k, v, causal=True)[0]) < 1e-2
    kernel = lacuna.compile(CAUSAL, head_dim=96, head_dim_v=64, dtype=dtype, device="cpu")
    assert numpy.array_equal(kernel(*arrays, layout=layout), o) and kernel.info["head_dim_v"] == 64
    with pytest.raises(lacuna.ArgumentError, match="argument v: .*expected 64, got 96"):
        kernel(arrays[0], arrays[1], arrays[1], layout=layout)


def test_a_spec_has_many_forms():
    q, k, v = problem(n_q=256)
    path = pathlib.Path(lacuna.specs()["bsfa"]["path"])
    document = json.loads(path.read_text())
    first = lacuna.attention(q, k, v, spec="bsfa", threshold=1.0)
    for spec in (path, str(path), path.read_text(), document, lacuna.Spec(path.read_text())):
        assert numpy.array_equal(lacuna.attention(q, k, v, spec=spec, threshold=1.0), first)
    document["gate"]["skip"] = "tile_max < threshold + 1.0e30"  # the same dict, another spec
    assert not numpy.array_equal(lacuna.attention(q, k, v, spec=document, threshold=1.0), first)


def test_a_file_that_changes_is_read_again(tmp_path):
    q, k, v = problem()
    path = tmp_path / "mine.json"
    path.write_text('{"version": 1, "name": "mine"}')
    assert error(lacuna.attention(q, k, v, spec=path), exact(q, k, v)[0]) < 1e-5
    path.write_text(CAUSAL)
    assert error(lacuna.attention(q, k, v, spec=path), exact(q, k, v, causal=True)[0]) < 1e-5


def test_tokens_before_heads():
    q, k, v = problem(heads=4, heads_kv=2)
    swapped = [numpy.ascontiguousarray(array.swapaxes(1, 2)) for array in (q, k, v)]
    o, lse = lacuna.attention(*swapped, layout="bnhd", lse=True)
    assert o.shape == swapped[0].shape and lse.shape == q.shape[:3]
    assert numpy.array_equal(o.swapaxes(1, 2), lacuna.attention(q, k, v))


def test_strides_are_followed_and_nothing_is_copied():
    q, k, v = problem()
    packed = numpy.stack([q, k, v], axis=3)  # [b, h, n, 3, d]
    out = numpy.full((1, 4, 2 * 96, 64), -1, "float32")
    o = lacuna.attention(packed[..., 0, :], packed[..., 1, :], packed[..., 2, :], out=out[:, :, ::2])
    assert o.base is out
    assert numpy.array_equal(o, lacuna.attention(q, k, v))
    assert (out[:, :, 1::2] == -1).all()


def test_results_go_where_the_caller_says():
    q, k, v = problem()
    out, lse = numpy.empty_like(q), numpy.empty(q.shape[:3], "float32")
    got = lacuna.attention(q, k, v, out=out, lse=lse)
    assert got[0] is out and got[1] is lse
    assert numpy.allclose(lse, exact(q, k, v)[1], atol=1e-4)


def test_parameters_are_numbers_or_arrays_of_the_declared_shape():
    q, k, v = problem(n_q=256)
    kernel = lacuna.compile("bsfa", head_dim=64, dtype="f32", device="cpu")
    counts = numpy.empty((1, 4, 2, 3), "int32")
    o = kernel(q, k, v, threshold=1e30, counts=counts)
    assert counts[0, 0, 1].tolist() == [4, 4, 2]  # of the second row two tiles lie before the diagonal
    by_array = kernel(q, k, v, threshold=numpy.full((4, 2), 1e30, "float32"))
    assert numpy.array_equal(by_array, o)
    for one in (numpy.float32(1e30), numpy.float64(1e30), 10 ** 30):
        assert numpy.array_equal(kernel(q, k, v, threshold=one), o)
    assert not numpy.array_equal(kernel(q, k, v), o)  # the default gates nothing


def test_a_call_may_bring_its_scale():
    q, k, v = problem()
    assert error(lacuna.attention(q, k, v, softmax_scale=0.3), exact(q, k, v, scale=0.3)[0]) < 1e-5
    assert error(lacuna.attention(q, k, v), exact(q, k, v)[0]) < 1e-5
    with pytest.raises(lacuna.ArgumentError, match="softmax_scale: expected a positive f32"):
        lacuna.attention(q, k, v, softmax_scale=-1)


def test_keys_and_values_of_e4m3():
    e4m3 = pytest.importorskip("ml_dtypes").float8_e4m3fn
    q, k, v = problem(heads=4, heads_kv=2)
    scales = numpy.array([[0.02, 0.03]], "float32"), numpy.array([[0.01]], "float32")
    codes = [(x / scale[..., None, None]).astype(e4m3) for x, scale in zip((k, v), scales)]
    numbers = [c.astype("float32") * scale[..., None, None] for c, scale in zip(codes, scales)]
    kernel = lacuna.compile("dense", head_dim=64, dtype="f32", device="cpu", kv="e4m3")
    o = kernel(q, *codes, k_scale=scales[0], v_scale=scales[1])
    assert error(o, exact(q, *(n.repeat(2, axis=1) for n in numbers))[0]) < 1e-5
    with pytest.raises(lacuna.ArgumentError, match="k: dtype expected e4m3, got f32"):
        kernel(q, k, v)


def test_lists_of_tiles_and_the_tile_mask():
    q, k, v = problem(heads=1, n_q=128, n_k=256)
    spec = {"version": 1, "name": "lists", "mask": "external", "tile": {"q": 128, "k": 64}}
    mask = numpy.empty((1, 1, 1, 4), "uint8")
    o = lacuna.attention(q, k, v, spec=spec, list_indices=numpy.array([[[[1, 3, 0, 0]]]], "int32"),
                         list_counts=numpy.array([[[2]]], "int32"), tile_mask=mask)
    assert mask.tolist() == [[[[0, 1, 0, 1]]]]
    keys = numpy.r_[64:128, 192:256]
    assert error(o, exact(q, k[:, :, keys], v[:, :, keys])[0]) < 1e-5


def test_one_decision_serves_several_calls():
    q, k, v = problem(n_q=256)
    kernel = lacuna.compile("fg-attn-cached", head_dim=64, dtype="f32", device="cpu")
    selection = kernel.new_selection(q, k)
    first = kernel(q, k, v, c=20.0, selection=selection)
    assert selection.calls == 1
    again = kernel(-q, k, v, c=20.0, selection=selection)  # other scores, the keys of before
    selection.forget()
    assert numpy.array_equal(kernel(q, k, v, c=20.0, selection=selection), first)
    assert not numpy.array_equal(again, kernel(-q, k, v, c=20.0))


def test_the_order_that_a_spec_generates():
    q, k, v = problem(n_q=64)
    spec = {"version": 1, "name": "curve", "permute": {"hilbert": [1, 8, 8]}}
    kernel = lacuna.compile(spec, head_dim=64, dtype="f32", device="cpu")
    order = kernel.tokens_in_order(64)
    assert sorted(order.tolist()) == list(range(64))
    assert error(kernel(q, k, v, order=order), exact(q, k, v)[0]) < 1e-5
    with pytest.raises(lacuna.ArgumentError, match="count: expected 64"):
        kernel.tokens_in_order(63)


def test_threads_share_a_kernel_and_the_table_of_kernels():
    problems = [problem(seed=seed) for seed in range(8)]
    alone = [lacuna.attention(*each, spec=CAUSAL) for each in problems]
    fresh = json.dumps({"version": 1, "name": "fresh", "attention": {"mask": "k <= q + n_k - n_q"}})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            together = list(pool.map(lambda each: lacuna.attention(*each, spec=fresh), problems))
            assert all(numpy.array_equal(*pair) for pair in zip(alone, together))


def test_calls_keep_nothing_alive():
    q, k, v = problem(heads=1, n_q=8)
    kernel = lacuna.compile("bsfa", head_dim=64, dtype="f32", device="cpu")
    out, lse, threshold = numpy.empty_like(q), numpy.empty((1, 1, 8), "float32"), numpy.zeros((1, 1), "float32")

    def counts():
        import sys
        return [sys.getrefcount(array) for array in (q, k, v, out, lse, threshold, kernel)]

    kernel(q, k, v, out=out, lse=lse, threshold=threshold)
    gc.collect()
    before = counts()
    for _ in range(1000):
        kernel(q, k, v, out=out, lse=lse, threshold=threshold)
        lacuna.attention(q, k, v, spec="bsfa", threshold=0.5)
    assert counts() == before


class Exchanged:
    """An array that only speaks DLPack, of one version or the other."""

    def __init__(self, array, versioned=True):
        self.array, self.versioned, self.shape = array, versioned, array.shape

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("unexpected keyword max_version")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [True, False])
def test_any_array_with_dlpack(versioned):
    q, k, v = problem()
    o, lse = numpy.empty_like(q), numpy.empty(q.shape[:3], "float32")
    arrays = [Exchanged(array, versioned) for array in (q, k, v, o, lse)]
    lacuna.attention(*arrays[:3], out=arrays[3], lse=arrays[4])
    assert numpy.array_equal(o, lacuna.attention(q, k, v))
    with pytest.raises(lacuna.ArgumentError, match="makes no arrays of .*Exchanged: pass out="):
        lacuna.attention(*arrays[:3])


def test_branches_report_and_keep_by_their_names():
    q, k, v = problem(heads=2, heads_kv=1, n_q=128, n_k=256, d=64)
    spec = {"version": 1, "name": "parts", "params": {"kept": {"type": "i32", "default": 1}}, "branches": [
        {"name": "some", "weight": "1",
         "predictor": {"tile": {"q": 64, "k": 64}, "keep": "j < kept", "reuse": 2}, "tile": {"q": 64, "k": 64}},
        {"name": "half", "dims": "0:32", "weight": "-0.5"}]}
    kernel = lacuna.compile(spec, head_dim=64, dtype="f32", device="cpu")
    assert [b["branch"] for b in kernel.info["branches"]] == ["some", "half"]
    mask = numpy.zeros((1, 2, 2, 4), "uint8")
    selection = kernel.new_selection(q, k, branch="some")
    o = kernel(q, k, v, kept=2, branches={"some": {"tile_mask": mask, "selection": selection}})
    assert mask[0, 0].tolist() == [[1, 1, 0, 0]] * 2
    assert selection.calls == 1
    assert numpy.array_equal(kernel(q, k, v, kept=4, branches={"some": {"selection": selection}}), o), "decided before"
    expected = exact(q, k[:, :, :128], v[:, :, :128])[0] - 0.5 * exact(q[..., :32], k[..., :32], v)[0]
    assert error(o, expected) < 1e-5
    with pytest.raises(lacuna.ArgumentError, match="branches: expected some of some, half, got other"):
        kernel(q, k, v, branches={"other": {"tile_mask": mask}})
    with pytest.raises(lacuna.ArgumentError, match="branches: expected a dict of dicts"):
        kernel(q, k, v, branches={"some": mask})
