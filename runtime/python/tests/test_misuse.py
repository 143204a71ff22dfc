"""What is wrong ends in an exception that says what was expected; never in a crash."""

import os
import subprocess
import sys

import lacuna
import numpy
import pytest
from conftest import problem


def refused(match, *arrays, kind=lacuna.ArgumentError, spec="bsfa", **more):
    with pytest.raises(kind, match=match):
        lacuna.attention(*arrays, spec=spec, **more)


def test_names():
    q, k, v = problem()
    refused("parameter treshold: is not a parameter of this kernel; it has threshold(.|\n)*did you mean \"threshold\"", q, k, v, treshold=1.0)
    refused("did you mean 'bsfa'", q, k, v, kind=lacuna.SpecError, spec="bfsa")
    refused("cannot be read", q, k, v, kind=lacuna.SpecError, spec="/nowhere/x.json")
    refused("expected \"bhnd\" or \"bnhd\", got \"hnd\"", q, k, v, layout="hnd")
    refused("layout: expected a str", q, k, v, layout=3)
    refused("expected a name, JSON text", q, k, v, kind=TypeError, spec=3)


def test_none_and_lists_are_named():
    q, k, v = problem()
    refused("argument v: expected an array .*, got NoneType", q, k, None, kind=TypeError)
    kernel = lacuna.compile("dense", head_dim=64, dtype="f32", device="cpu")
    with pytest.raises(TypeError, match="argument q: expected an array .*, got NoneType"):
        kernel(None, k, v)
    with pytest.raises(TypeError, match="argument threshold: expected a number, or an array, got list"):
        lacuna.run(q, k, v, spec="bsfa", threshold=[1.0])


def test_dtypes():
    q, k, v = problem()
    refused("q: dtype expected bfloat16, float16 or float32, got float64", q.astype("float64"), k, v)
    refused("q: dtype expected .*, got int32", q.astype("int32"), k, v)
    refused("argument k: dtype expected f32, got f16", q, k.astype("float16"), v)
    refused("argument o: dtype expected f32, got f16", q, k, v, out=q.astype("float16"))
    refused("parameter threshold: dtype expected f32, got f64", q, k, v, threshold=numpy.zeros((4, 1)))
    refused("dtype expected", q.astype("complex64"), k, v, kind=TypeError)
    refused("dtype expected", q.astype(object), k, v, kind=TypeError)
    refused("dtype expected", q.astype(">f4"), k, v, kind=TypeError)


def test_shapes():
    q, k, v = problem()
    refused("expected 4 axes, .batch, heads, tokens, head_dim., got 3", q[0], k, v)
    refused("argument k: rank expected 4 .*, got 3", q, k[0], v)
    refused("argument k: d expected 64, got 32", q, k[..., :32], v)
    refused("argument v: n_k expected 96, got 95", q, k, v[:, :, :95])
    refused("heads expected a multiple of heads_kv .3., got 4", q, k[:, :3], v[:, :3])
    refused("parameter threshold: heads expected 4, got 3", q, k, v, threshold=numpy.zeros((3, 1), "float32"))
    refused("argument lse: n_q expected 96, got 95", q, k, v, lse=numpy.empty((1, 4, 95), "float32"))
    deep = numpy.zeros((1,) * 9, "float32")
    refused("at most 4 axes, got 9", deep, k, v, kind=TypeError)


def test_strides():
    q, k, v = problem(d=128)
    refused("argument q: stride of d expected 1, got 2", q[..., ::2], k[..., :64], v[..., :64])
    lacuna.attention(q[:, :, ::-1], k, v)  # backwards over tokens is a stride like others
    bytes_ = numpy.zeros(96 * 4 * 64 * 4 + 1, "uint8")[1:].view("float32").reshape(1, 4, 96, 64)
    refused("data expected aligned to 4 bytes", bytes_, k[..., :64], v[..., :64])
    record = numpy.zeros((1, 4, 96, 64), numpy.dtype([("x", "f4"), ("y", "u1")]))["x"]
    refused("stride of axis .* expected whole elements", record, k[..., :64], v[..., :64], kind=TypeError)
    flat = numpy.lib.stride_tricks.as_strided(numpy.zeros(64, "float32"), (1, 4, 96, 64), (0, 0, 0, 4))
    refused("argument o: stride of n_q expected not 0", *problem(), out=flat)


def test_memory_that_must_not_be_written():
    q, k, v = problem()
    frozen = numpy.zeros_like(q)
    frozen.flags.writeable = False
    refused("argument o: expected memory to write, got a read-only array", q, k, v, out=frozen)
    lse = numpy.empty(q.shape[:3], "float32")
    lse.flags.writeable = False
    refused("argument lse: expected memory to write", q, k, v, lse=lse)
    refused("argument o: expected memory of its own, got that of v", q, k, v, out=v)
    for array in (q, k, v):
        array.flags.writeable = False
    lacuna.attention(q, k, v)  # may be read


@pytest.mark.parametrize("wrong", [None, 3, "q", [1.0], {"a": 1}, object()])
def test_what_is_no_array(wrong):
    q, k, v = problem()
    for arrays in ((wrong, k, v), (q, wrong, v), (q, k, wrong)):
        with pytest.raises(TypeError):
            lacuna.attention(*arrays)
    if wrong is not None:
        with pytest.raises(TypeError):
            lacuna.attention(q, k, v, out=wrong)


@pytest.mark.parametrize("wrong", ["1", [1.0], object(), {}])
def test_what_is_no_parameter(wrong):
    with pytest.raises((TypeError, lacuna.ArgumentError)):
        lacuna.attention(*problem(), spec="bsfa", threshold=wrong)


def test_parameters_out_of_range():
    refused("parameter tau: expected a value in .0, 1., got 2", *problem(), spec="sparge", tau=2)
    refused("parameter window: expected an i32, got 1.5", *problem(), spec="window", window=1.5)
    needy = {"version": 1, "name": "needy", "attention": {"mask": "k <= q + far"}, "params": {"far": {}}}
    refused("parameter far: is missing: expected f32 scalar; it has no default", *problem(), spec=needy)


def test_tensors_that_a_spec_does_not_take():
    q, k, v = problem()
    refused("argument order: expected null, got a tensor: the spec has no \"permute\"", q, k, v, order=numpy.zeros(96, "int32"))
    refused("argument list_indices: expected a tensor, got null", q, k, v, spec="external-mask")


@pytest.mark.parametrize("n_q, n_k", [(0, 0), (0, 5), (5, 0)])
def test_zero_lengths(n_q, n_k):
    q, k, v = problem(n_q=1)
    q, k, v = numpy.resize(q, (1, 4, n_q, 64)), numpy.resize(k, (1, 4, n_k, 64)), numpy.resize(v, (1, 4, n_k, 64))
    o, lse = lacuna.attention(q, k, v, lse=True)
    assert o.shape == q.shape and lse.shape == (1, 4, n_q)
    assert (o == 0).all()


def test_no_heads_and_no_batch():
    empty = numpy.empty((0, 4, 8, 64), "float32")
    assert lacuna.attention(empty, empty, empty).shape == empty.shape
    headless = numpy.empty((1, 0, 8, 64), "float32")
    assert lacuna.attention(headless, headless, headless).shape == headless.shape


def test_devices():
    with pytest.raises(lacuna.ArgumentError, match="device: expected .*got \"tpu\""):
        lacuna.compile("dense", device="tpu")
    with pytest.raises(lacuna.Error):
        lacuna.compile("dense", device="cuda:99")


class Elsewhere:
    """Says that it is on a GPU, and has nothing."""

    shape = (1, 1, 8, 64)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise BufferError("it was freed")


def test_an_array_whose_memory_is_gone():
    with pytest.raises(BufferError, match="it was freed"):
        lacuna.attention(Elsewhere(), Elsewhere(), Elsewhere(), stream=1)


class Liar:
    """__dlpack__ that gives no capsule."""

    shape = (1, 1, 8, 64)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return 3


def test_a_library_that_breaks_the_protocol():
    with pytest.raises(TypeError, match="gave no tensor"):
        lacuna.attention(Liar(), Liar(), Liar())


def test_a_selection_of_other_memory():
    q, k, v = problem(n_q=256)
    kernel = lacuna.compile("fg-attn-cached", head_dim=64, dtype="f32", device="cpu")
    with pytest.raises(lacuna.ArgumentError, match="selection"):
        kernel(q, k, v, selection=lacuna.Selection(numpy.zeros(8, "uint8")))
    frozen = numpy.zeros(64, "uint8")
    frozen.flags.writeable = False
    with pytest.raises(lacuna.ArgumentError, match="read-only"):
        lacuna.Selection(frozen)
    with pytest.raises(TypeError):
        kernel(q, k, v, selection=numpy.zeros(8, "uint8"))
    with pytest.raises(lacuna.ArgumentError, match="keeps no selection"):
        lacuna.compile("dense", head_dim=64, dtype="f32", device="cpu").new_selection(q, k)


def test_a_workspace_that_is_none():
    q, k, v = problem()
    kernel = lacuna.compile("dense", head_dim=64, dtype="f32", device="cpu")
    memory = numpy.zeros(4096, "uint8")
    assert numpy.array_equal(kernel(q, k, v, workspace=memory), kernel(q, k, v))
    with pytest.raises(lacuna.ArgumentError, match="workspace: expected memory without gaps"):
        kernel(q, k, v, workspace=memory[::2])
    with pytest.raises(TypeError, match="workspace: expected an array"):
        kernel(q, k, v, workspace=4096)
    memory.flags.writeable = False
    with pytest.raises(lacuna.ArgumentError, match="workspace: expected memory to write, got a read-only array"):
        kernel(q, k, v, workspace=memory)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_objects_that_were_never_made():
    for cls in (lacuna.Kernel, lacuna.Engine, lacuna.Selection):
        made = cls.__new__(cls)
        with pytest.raises(Exception):
            made(1, 2, 3) if cls is lacuna.Kernel else made.device if cls is lacuna.Engine else made.calls


def test_a_child_of_fork_computes_too():
    script = ("import os, numpy, lacuna\n"
              "q = numpy.ones((1, 1, 8, 64), 'float32')\n"
              "lacuna.attention(q, q, q)\n"
              "child = os.fork()\n"
              "if child == 0:\n"
              "    os._exit(0 if numpy.allclose(lacuna.attention(q, q, q), 1) else 1)\n"
              "os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n")
    assert subprocess.run([sys.executable, "-c", script], env=os.environ, timeout=120).returncode == 0
