"""lacuna.Group.from_torch: the unique id travels through a process group of PyTorch, and so do failures."""

import os
import pathlib
import subprocess
import sys

import lacuna
import pytest
from conftest import CAUSAL, needs_gpu

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("a PyTorch without torch.distributed", allow_module_level=True)

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/context_parallel.py"

# Rank 1 asks for a GPU that no machine has: both ranks have to hear of it, and none may wait.
ONE_FAILS = """
import sys, datetime, torch.distributed, lacuna
rank, place = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=2,
                                     timeout=datetime.timedelta(seconds=60))
try:
    lacuna.Group.from_torch(device=1000 if rank == 1 or not torch.cuda.is_available() else 0)
except lacuna.DeviceError as error:
    print(error)
torch.distributed.destroy_process_group()
"""

# Sequences of different lengths on as many GPUs as there are ranks, against the same on one GPU.
SEQUENCES = """
import torch, torch.distributed, lacuna
torch.distributed.init_process_group("nccl")
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.cuda.set_device(rank)
group = lacuna.Group.from_torch(timeout_s=30)
lengths, tokens, heads, heads_kv = (1000, 3, 2300, 793), 4096, 8, 4
torch.manual_seed(1)
q, k, v = (torch.randn(1, h, tokens, 128, device="cuda", dtype=torch.bfloat16) for h in (heads, heads_kv, heads_kv))
i32 = lambda *numbers: torch.tensor(numbers, device="cuda", dtype=torch.int32)
starts = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
sequences = lacuna.Sequences(i32(*starts), i32(*lengths), k_begin=i32(*starts[:-1]), max_n_q=2304, max_n_k=2304)
for spec in ("SPECS"):
    whole = lacuna.attention(q, k, v, spec=spec, sequences=sequences)
    for layout, stripe in (("contiguous", 0), ("striped", 256), ("heads", 0)):
        held, held_kv = group.heads(heads, heads_kv, layout)
        rows = torch.as_tensor(group.tokens(tokens, layout, stripe), device="cuda")
        part = lambda tensor, some: tensor[:, some][:, :, rows].contiguous()
        o = group.attention(part(q, held), part(k, held_kv), part(v, held_kv), spec=spec, sequences=sequences, layout=layout, stripe=stripe,
                            shape=(1, heads, heads_kv, tokens, tokens))
        group.synchronize()
        error = (o.float() - part(whole, held).float()).abs().max().item()
        print(spec[:30], layout, "bits" if error == 0 else error, flush=True)
        assert error < 2e-2, (spec, layout, error)
torch.distributed.destroy_process_group()
"""


def test_a_rank_that_fails_is_an_error_on_every_rank(tmp_path):
    ranks = [subprocess.Popen([sys.executable, "-c", ONE_FAILS, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) for rank in range(2)]
    for rank in ranks:
        out, err = rank.communicate(timeout=120)
        assert rank.returncode == 0, err
        assert "of the process group cannot be part of a group" in out


@pytest.fixture
def alone(tmp_path):
    """A process group of one rank."""
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@needs_gpu
@pytest.mark.parametrize("axes", ["bhnd", "bnhd"])
def test_a_group_of_one_rank(alone, axes):
    group = lacuna.Group.from_torch(timeout_s=30)
    assert (group.rank, group.size, group.engine.device) == (0, 1, "cuda:0")
    q, k, v = (torch.randn(1, heads, 1024, 128, device="cuda", dtype=torch.bfloat16) for heads in (8, 2, 2))
    expected, expected_lse = lacuna.attention(q, k, v, spec=CAUSAL, lse=True)
    if axes == "bnhd":
        q, k, v = (tensor.transpose(1, 2).contiguous() for tensor in (q, k, v))
    o, lse = group.attention(q, k, v, spec=CAUSAL, lse=True, axes=axes)
    group.synchronize()
    o = o.transpose(1, 2) if axes == "bnhd" else o
    assert torch.equal(o, expected) and torch.equal(lse, expected_lse)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(lacuna.ArgumentError, match="captured"), torch.cuda.graph(graph):
        group.attention(q, k, v, spec=CAUSAL, lse=True, axes=axes)


@needs_gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_the_example_on_two_gpus():
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(EXAMPLE), "--tokens", "4096",
             "--repeats", "3", "--peers", "none"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the results of one GPU" in done.stdout


@needs_gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_sequences_on_two_gpus(tmp_path):
    script = tmp_path / "sequences.py"
    script.write_text(SEQUENCES.replace('("SPECS")', repr((CAUSAL, "sparge-topk"))))
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
