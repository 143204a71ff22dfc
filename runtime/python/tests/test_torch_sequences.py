"""Batches of sequences as tensors of PyTorch: on the CPU and, where there is one, on a GPU; by the operator and in graphs."""

import lacuna
import numpy
import pytest
from conftest import CAUSAL, Batch, error, has_gpu, needs_gpu

torch = pytest.importorskip("torch")
import lacuna.torch  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if has_gpu() else [])
RAGGED = [(5, 70), (0, 9), (130, 130), (1, 200), (3, 0), (64, 65)]


class Tensors:
    """A Batch on a device, bf16 on a GPU; `batch` has the values that the tensors have."""

    def __init__(self, device, lengths=RAGGED, page_tokens=0, layout="bhnd", seed=0):
        self.batch = batch = Batch(lengths, seed=seed)
        dtype = torch.float32 if device == "cpu" else torch.bfloat16
        for name in ("q", "k", "v"):
            setattr(batch, name, torch.from_numpy(getattr(batch, name)).to(dtype).float().numpy())
        arrays = [batch.q, batch.k, batch.v]
        lists = {"q_begin": batch.q_begin, "n_k": batch.lengths, "k_begin": batch.k_begin}
        if page_tokens:
            *arrays[1:], lists["pages"] = batch.pages(page_tokens)
            del lists["k_begin"]
        self.tensors = [torch.from_numpy(array).to(device, dtype) for array in arrays]
        if layout == "bnhd":
            self.tensors = [tensor.transpose(1, 2).contiguous() for tensor in self.tensors]
        self.lists = {name: torch.from_numpy(array).to(device) for name, array in lists.items()}

    def sequences(self, **more):
        return lacuna.Sequences(**{**self.lists, "max_n_q": max(self.batch.n_q), "max_n_k": max(self.batch.n_k), **more})

    def check(self, o, lse=None, layout="bhnd"):
        on_cpu = o.device.type == "cpu"
        expected, expected_lse = self.batch.exact(causal=True)
        o = o.transpose(1, 2) if layout == "bnhd" else o
        assert error(o.float().cpu().numpy(), expected) < (1e-5 if on_cpu else 1e-2)
        if lse is not None:
            seen = numpy.isfinite(expected_lse)
            assert abs(lse.cpu().numpy()[seen] - expected_lse[seen]).max() < 1e-3


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("page_tokens", [0, 16, 64])
@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
def test_values(device, page_tokens, layout):
    given = Tensors(device, page_tokens=page_tokens, layout=layout)
    for call in (lacuna.attention, lacuna.torch.attention):
        o, lse = call(*given.tensors, spec=CAUSAL, sequences=given.sequences(), lse=True, layout=layout)
        given.check(o, lse, layout)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("page_tokens", [0, 16])
def test_the_fake_agrees(device, page_tokens):
    given = Tensors(device, page_tokens=page_tokens)
    torch.library.opcheck(torch.ops.lacuna.attention, (*given.tensors, CAUSAL, True),
                          {**given.lists, "max_n_q": 130, "max_n_k": 200}, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("device", DEVICES)
def test_compile_without_a_break(device):
    def block(q, k, v, q_begin, n_k, k_begin):
        sequences = lacuna.Sequences(q_begin, n_k, k_begin=k_begin, max_n_q=130, max_n_k=200)
        return lacuna.torch.attention(q * 1, k, v, CAUSAL, sequences=sequences) + 0

    given = Tensors(device)
    backend = "inductor" if device == "cuda" else "aot_eager"
    given.check(torch.compile(block, fullgraph=True, backend=backend)(*given.tensors, *given.lists.values()))


def test_host_tensors_need_no_largest_lengths():
    given = Tensors("cpu")
    given.check(lacuna.attention(*given.tensors, spec=CAUSAL, sequences=given.sequences(max_n_q=None, max_n_k=None)))


def test_tensors_that_do_not_fit():
    given = Tensors("cpu")
    with pytest.raises(lacuna.ArgumentError, match="sequences.n_k: dtype expected i32, got i64"):
        lacuna.attention(*given.tensors, sequences=given.sequences(n_k=given.lists["n_k"].long()))
    with pytest.raises(lacuna.ArgumentError, match="expected one of k_begin and pages, got none"):
        torch.ops.lacuna.attention(*given.tensors, "dense", q_begin=given.lists["q_begin"], n_k=given.lists["n_k"])


@needs_gpu
def test_lists_on_another_device():
    given = Tensors("cuda")
    with pytest.raises(lacuna.ArgumentError, match="sequences.q_begin: device"):
        lacuna.attention(*given.tensors, sequences=given.sequences(q_begin=given.lists["q_begin"].cpu()))
    with pytest.raises(lacuna.ArgumentError, match="sequences.max_n_q: expected a number"):
        lacuna.attention(*given.tensors, sequences=given.sequences(max_n_q=None))


@needs_gpu
@pytest.mark.parametrize("page_tokens", [0, 16])
def test_a_captured_graph_follows_other_lengths(page_tokens):
    """The same rows, cut into other sequences, and lengths of 0."""
    given = Tensors("cuda", [(40, 64), (60, 64)], page_tokens)
    kernel = lacuna.compile(CAUSAL, head_dim=64, dtype="bf16", device="cuda:0", batch="pages" if page_tokens else "sequences")
    sequences, out = given.sequences(max_n_q=100, max_n_k=64), torch.empty_like(given.tensors[0])
    kernel(*given.tensors, sequences=sequences, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(*given.tensors, sequences=sequences, out=out)
    for cut, n_k in ((40, (64, 64)), (10, (33, 64)), (100, (64, 0)), (0, (5, 61))):
        given.batch.q_begin[1], given.batch.n_q, given.batch.n_k = cut, [cut, 100 - cut], list(n_k)
        given.lists["q_begin"].copy_(torch.from_numpy(given.batch.q_begin))
        given.lists["n_k"].copy_(torch.tensor(n_k, dtype=torch.int32))
        out.fill_(float("nan"))
        graph.replay()
        given.check(out)
