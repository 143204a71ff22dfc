"""What the scripts of tools/dev launch by the Python module: on the CPU, with NumPy in place of PyTorch. For pytest, where the
module is installed."""

import os
import pathlib
import sys
import types

import lacuna
import numpy
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/dev"))

from gpu import machine, subjects, values  # noqa: E402

HEADS, TOKENS = 2, 256


class NumpyTorch:
    """What Problem asks of PyTorch."""

    full_like = staticmethod(numpy.full_like)
    cuda = types.SimpleNamespace(synchronize=lambda: None)


@pytest.fixture
def problem(monkeypatch):
    """Equal scores: an output is the mean of the numbers of the keys that were seen."""
    zeros = numpy.zeros((1, HEADS, TOKENS, 64), "float32")
    numbers = numpy.broadcast_to(numpy.arange(TOKENS, dtype="float32")[:, None], zeros.shape).copy()
    monkeypatch.setattr(values, "make", lambda torch, point: (zeros, zeros, numbers))
    point = types.SimpleNamespace(batch=1, heads=HEADS, queries=TOKENS, n=TOKENS, d=64, dtype="f32", causal=1, density=0.25)
    engines = {"lacuna": lacuna.Engine("cpu"), "other": lacuna.Engine("cpu", template_path=str(ROOT / "templates"))}
    return subjects.Problem(NumpyTorch, engines, point, False)


def test_every_engine_is_a_subject(problem):
    problem.add_lacuna(problem.flop(causal=True), subjects.dense_spec(1))
    assert list(problem.subjects) == ["lacuna", "other"] and not problem.errors
    for o in problem.outputs.values():
        assert numpy.allclose(o, numpy.arange(TOKENS)[:, None] / 2, atol=1e-3)


def test_a_peer_may_fail_and_ours_must_not(problem):
    def peer():
        raise RuntimeError("no such kernel")

    problem.add("peer", peer, 1.0)
    assert problem.errors == {"peer": "RuntimeError: no such kernel"} and not problem.subjects
    with pytest.raises(lacuna.ArgumentError, match="did you mean \"density\""):
        problem.add_lacuna(1.0, subjects.columns_spec(), densty=0.5)


def test_columns_are_those_that_the_check_of_their_output_takes(problem):
    o = problem.lacuna(subjects.columns_spec(), density=0.25)()
    for first in (0, 128):
        kept = [key for key in range(TOKENS) if subjects.is_kept_column(key, first, 0.25)]
        assert abs(len(kept) - TOKENS / 4) < TOKENS / 32
        assert o[0, 0, first, 0] == pytest.approx(sum(kept) / len(kept), abs=1e-3)


def test_lists_say_which_tiles_are_visited(problem):
    spec = subjects.shipped_spec("external-mask", tile={"q": 128, "k": 64})
    indices, counts = numpy.empty((1, HEADS, 2, 4), "int32"), numpy.full((1, HEADS, 2), 2, "int32")
    indices[:] = 1, 3, 0, 0
    o = problem.lacuna(spec, list_indices=indices, list_counts=counts)()
    assert o[0, 0, 0, 0] == pytest.approx((64 + 127 + 192 + 255) / 4, abs=1e-3)


def test_counts_report_what_a_gate_leaves_out(problem):
    counts = numpy.zeros((1, HEADS, 2, 3), "int32")
    name, loosest, *_ = subjects.GATE_PARAMS["bsfa"]
    for threshold, gated in ((1e30, 2), (loosest, 0)):
        problem.lacuna(subjects.shipped_spec("bsfa"), counts=counts, **{name: threshold})()
        assert counts[0, 0, 1].tolist() == [4, 4, gated]  # the second row: two tiles before the diagonal


def test_events_go_to_the_launch(problem):
    launch = problem.lacuna(subjects.dense_spec(0))
    assert isinstance(launch.kernels, tuple)
    with pytest.raises(lacuna.ArgumentError, match="stage_events: expected none on the CPU, got 3"):
        launch([1, 2, 3])


def test_a_family_is_asked_for_while_a_kernel_is_compiled(problem, monkeypatch):
    monkeypatch.delenv("LACUNA_ATTEND_FAMILY", raising=False)
    with subjects.only_family("mma"):
        assert os.environ["LACUNA_ATTEND_FAMILY"] == "mma"
    assert "LACUNA_ATTEND_FAMILY" not in os.environ


def test_the_specs_that_are_put_together_are_accepted():
    for spec in (subjects.columns_spec(), subjects.quantised_spec(64), subjects.topk_spec(0), subjects.topk_spec(1), subjects.split_spec(16)):
        assert lacuna.compile(spec, device="cpu").info["spec"] == spec["name"]


def test_the_module_that_is_on_the_path_is_taken():
    assert machine.load_lacuna() is lacuna
