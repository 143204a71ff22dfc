"""Groups of ranks: loopbacks, whose ranks are threads that compute on the CPU."""

import concurrent.futures
import json

import lacuna
import numpy
import pytest
from conftest import CAUSAL, error, exact, problem

WINDOW = json.dumps({"version": 1, "name": "near", "attention": {"mask": "k <= q and q - k < 70"}})
LAYOUTS = [("contiguous", 0), ("striped", 64), ("striped", 50), ("heads", 0)]


def on_all(groups, call):
    """call(group) in a thread for each rank: the results, or the exceptions, by rank."""

    def guarded(group):
        try:
            return call(group)
        except Exception as raised:  # noqa: BLE001: compared by the tests
            return raised

    with concurrent.futures.ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(guarded, groups))


def run(groups, q, k, v, layout="contiguous", stripe=0, axes="bhnd", **more):
    """The whole o (and lse), put together of those of all ranks."""
    shape = (q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2])

    def part(group, array, of_keys):
        heads = group.heads(q.shape[1], k.shape[1], layout)[of_keys]
        rows = array[:, heads][:, :, group.tokens(array.shape[2], layout, stripe)]
        return numpy.ascontiguousarray(rows if axes == "bhnd" else rows.swapaxes(1, 2))

    found = on_all(groups, lambda group: group.attention(part(group, q, 0), part(group, k, 1), part(group, v, 1), layout=layout,
                                                         stripe=stripe, axes=axes, shape=shape, lse=True, **more))
    for result in found:
        if isinstance(result, Exception):
            raise result
    o, lse = numpy.full_like(q, numpy.nan), numpy.full(q.shape[:3], numpy.nan, "float32")
    for group, (part_o, part_lse) in zip(groups, found):
        heads = numpy.arange(q.shape[1])[group.heads(q.shape[1], k.shape[1], layout)[0]]
        rows = numpy.ix_([*range(q.shape[0])], heads, group.tokens(q.shape[2], layout, stripe))
        o[rows], lse[rows] = part_o if axes == "bhnd" else part_o.swapaxes(1, 2), part_lse
    return o, lse


@pytest.fixture(scope="module", params=[1, 2, 3])
def groups(request):
    """Which keep their kernels from test to test."""
    return lacuna.Group.loopback(request.param)


@pytest.mark.parametrize("layout, stripe", LAYOUTS)
def test_results_are_those_of_one_rank(groups, layout, stripe):
    q, k, v = problem(heads=6, heads_kv=3, n_q=250)
    o, lse = run(groups, q, k, v, layout, stripe, spec=CAUSAL)
    one, one_lse = lacuna.attention(q, k, v, spec=CAUSAL, lse=True)
    assert numpy.array_equal(o, one) and numpy.array_equal(lse, one_lse)
    expected, expected_lse = exact(q, k, v, causal=True)
    assert error(o, expected) < 1e-5 and numpy.allclose(lse, expected_lse, atol=1e-4)


@pytest.mark.parametrize("layout, stripe", LAYOUTS)
def test_sequences_are_those_of_one_rank(groups, layout, stripe):
    q, k, v = (array[:1] for array in problem(heads=6, heads_kv=3, n_q=250))
    starts, lengths = numpy.array([0, 30, 230, 250], "int32"), numpy.array([40, 200, 10], "int32")
    run(groups, q, k, v, layout, stripe, spec=CAUSAL)  # whose kernel and plan are others
    for max_n_q, max_n_k in ((200, 220), (210, 200)):
        sequences = lacuna.Sequences(starts, lengths, k_begin=numpy.array([0, 40, 240], "int32"), max_n_q=max_n_q, max_n_k=max_n_k)
        o, lse = run(groups, q, k, v, layout, stripe, spec=CAUSAL, sequences=sequences)
        one, one_lse = lacuna.attention(q, k, v, spec=CAUSAL, sequences=sequences, lse=True)
        assert numpy.array_equal(o, one) and numpy.array_equal(lse, one_lse)


@pytest.mark.parametrize("limits", [{}, {"max_n_q": 64}, {"max_n_k": 64}])
def test_sequences_of_a_group_say_their_limits(groups, limits):
    q, k, v = problem(heads=2, heads_kv=1, n_q=64)
    sequences = lacuna.Sequences(numpy.array([0, 64], "int32"), numpy.array([64], "int32"), k_begin=numpy.array([0], "int32"), **limits)
    with pytest.raises(lacuna.ArgumentError, match="max_n_q and max_n_k"):
        groups[0].attention(q[:1], k[:1], v[:1], sequences=sequences)


@pytest.mark.parametrize("scheme", ["gather", "rows", "heads"])
def test_each_scheme_and_positions_in_the_whole(scheme):
    q, k, v = problem(heads=4, heads_kv=2, n_q=300, batch=2)
    o, _ = run(lacuna.Group.loopback(3, exchange="messages" if scheme == "rows" else "auto"), q, k, v, spec=WINDOW, scheme=scheme)
    assert numpy.array_equal(o, lacuna.attention(q, k, v, spec=WINDOW))


def test_ranks_that_hold_nothing():
    q, k, v = problem(heads=4, heads_kv=2, n_q=130)
    o, _ = run(lacuna.Group.loopback(3), q, k, v, "heads", spec=CAUSAL)
    assert numpy.array_equal(o, lacuna.attention(q, k, v, spec=CAUSAL))
    q, k, v = problem(n_q=2, n_k=90)
    o, _ = run(lacuna.Group.loopback(4), q, k, v, spec=CAUSAL)
    assert numpy.array_equal(o, lacuna.attention(q, k, v, spec=CAUSAL))


def test_tokens_before_heads():
    q, k, v = problem(heads=4, heads_kv=2, n_q=256)
    o, _ = run(lacuna.Group.loopback(2), q, k, v, "striped", 32, axes="bnhd", spec=CAUSAL)
    assert numpy.array_equal(o, lacuna.attention(q, k, v, spec=CAUSAL))


def test_parameters_are_those_of_the_whole():
    q, k, v = problem(heads=4, n_q=512)
    threshold = numpy.random.default_rng(1).uniform(0, 3, (4, 4)).astype("float32")  # [heads, q_tiles]
    o, _ = run(lacuna.Group.loopback(2), q, k, v, spec="bsfa", threshold=threshold)
    assert numpy.array_equal(o, lacuna.attention(q, k, v, spec="bsfa", threshold=threshold))


def test_a_plan_says_what_each_scheme_would_do():
    groups = lacuna.Group.loopback(2, link_gb_s=200, tflops=600)
    shape = (1, 32, 8, 32768, 32768)
    plans = on_all(groups, lambda group: group.plan(CAUSAL, shape=shape, layout="striped", stripe=1024, dtype="bf16"))
    table = plans[1].table
    assert (table["ranks"], table["rank"], table["layout"]) == (2, 1, "striped")
    assert [scheme["scheme"] for scheme in table["schemes"]] == ["gather", "rows", "heads"]
    chosen = next(scheme for scheme in table["schemes"] if scheme["scheme"] == table["scheme"])
    assert chosen["possible"] and len(chosen["sent_bytes"]) == 2 and 0.5 < table["efficiency"] <= 1
    assert table["link"]["gb_per_s"] == 200 and json.loads(json.dumps(table)) == table
    assert plans[0].shape == (1, 32, 8, 16384, 16384) and plans[0].tile[0] >= 16
    assert "rank 0 of 2" in repr(plans[0]) and "rank 1 of 2" in repr(groups[1])


def test_a_plan_is_launched_many_times():
    q, k, v = problem(n_q=128)

    def work(group):
        plan = group.plan("dense", shape=(1, 4, 4, 128, 128), head_dim=64, dtype="f32")
        mine = [numpy.ascontiguousarray(array[:, :, group.tokens(128)]) for array in (q, k, v)]
        outputs = [plan(*mine) for _ in range(3)]
        group.synchronize()
        assert all(numpy.array_equal(outputs[0], o) for o in outputs)
        return outputs[0]

    parts = on_all(lacuna.Group.loopback(2), work)
    assert numpy.array_equal(numpy.concatenate(parts, axis=2), lacuna.attention(q, k, v))


def test_work_is_dealt_by_the_callers_counts():
    groups = lacuna.Group.loopback(2)
    work = numpy.zeros((4, 2), "float32")
    work[0] = 8  # all work in the first head, which is cut
    plans = on_all(groups, lambda group: group.plan("dense", shape=(1, 4, 4, 256, 256), head_dim=64, dtype="f32", scheme="rows", work=work))
    assert not any(isinstance(plan, Exception) for plan in plans), plans
    wrong = on_all(groups, lambda group: group.plan("dense", shape=(1, 4, 4, 256, 256), head_dim=64, dtype="f32", work=work[:3]))
    assert all(isinstance(raised, lacuna.ArgumentError) and "work: expected" in str(raised) for raised in wrong)


def refused(found, *texts, kind=lacuna.ArgumentError):
    """Every rank has an exception, and all texts are in one or another."""
    assert all(isinstance(raised, kind) for raised in found), found
    for text in texts:
        assert any(text in str(raised) for raised in found), (text, found)


def test_ranks_that_differ():
    q, k, v = problem(n_q=64)

    def call(group, **by_rank):
        return group.attention(q, k, v, **{name: values[group.rank] for name, values in by_rank.items()})

    def differ(timeout_s=0, **by_rank):
        return on_all(lacuna.Group.loopback(2, timeout_s=timeout_s), lambda group: call(group, **by_rank))

    refused(differ(spec=["dense", CAUSAL]), "asks for spec dense", "rank 1 for spec causal", kind=lacuna.Error)
    refused(differ(layout=["contiguous", "striped"], stripe=[0, 32]), "layout", kind=lacuna.Error)
    refused(differ(timeout_s=0.2, spec=["dense", "bfsa"]), "did you mean 'bsfa'", kind=lacuna.Error)


def test_ranks_that_hold_different_numbers_of_tokens():
    q, k, v = problem(n_q=101)

    def call(group):
        return group.attention(*(array[:, :, group.tokens(101)] for array in (q, k, v)))

    refused(on_all(lacuna.Group.loopback(2), call), "pass shape= of the whole", kind=lacuna.Error)


def test_a_rank_that_fails_is_an_error_on_the_others():
    q, k, v = problem(n_q=64)
    groups = lacuna.Group.loopback(2)
    on_all(groups, lambda group: group.attention(q, k, v))
    wrong = on_all(groups, lambda group: group.attention(q, k, v[:, :, :63] if group.rank else v))
    assert isinstance(wrong[1], lacuna.ArgumentError) and "v: n_k expected 64, got 63" in str(wrong[1])
    assert isinstance(wrong[0], lacuna.DeviceError) and "the group is lost: rank 1" in str(wrong[0])
    refused(on_all(groups, lambda group: group.attention(q, k, v)), "the group is lost", kind=lacuna.DeviceError)


def test_a_rank_that_does_not_come():
    groups = lacuna.Group.loopback(2, timeout_s=0.2)
    with pytest.raises(lacuna.DeviceError, match="rank 1 did not come to compile within 0.2 s"):
        groups[0].attention(*problem(n_q=64))


def test_what_a_group_does_not_take():
    (group,) = lacuna.Group.loopback(1)
    q, k, v = problem(n_q=64)
    for match, more in (("layout: expected contiguous, striped or heads, got even", {"layout": "even"}),
                        ("scheme: expected auto, gather, rows or heads, got all", {"scheme": "all"}),
                        ("stripe: expected 1 or more tokens, got 0", {"layout": "striped"}),
                        ("axes: expected \"bhnd\" or \"bnhd\", got 'hnd'", {"axes": "hnd", "shape": (1, 4, 4, 64, 64)}),
                        ("dtype: expected bf16, f16 or f32", {"q": q.astype("float64")})):
        with pytest.raises(lacuna.ArgumentError, match=match):
            group.attention(**{"q": q, "k": k, "v": v, **more})
    with pytest.raises(lacuna.Error, match="external"):
        group.plan("external-mask", shape=(1, 4, 4, 64, 64), head_dim=64, dtype="f32")
    with pytest.raises(lacuna.ArgumentError, match="layout: expected contiguous"):
        group.tokens(10, "even")
    with pytest.raises(lacuna.ArgumentError, match="expected 128 bytes, got 3"):
        lacuna.Group.from_unique_id(b"abc", 0, 1, device="cpu")
    with pytest.raises(lacuna.Error, match="loopback"):
        lacuna.Group.from_unique_id(bytes(128), 0, 1, device="cpu")
    with pytest.raises(lacuna.ArgumentError, match="engine: expected one of a GPU"):
        lacuna.Group.unique_id("cpu")
    with pytest.raises(lacuna.ArgumentError, match="size: expected 1 to"):
        lacuna.Group.loopback(0)
