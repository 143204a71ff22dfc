"""torch.ops.lacuna.attention, on the CPU and, where there is one, on a GPU."""

import gc
import threading

import lacuna
import pytest
from conftest import CAUSAL, error, exact, has_gpu, needs_gpu, problem

torch = pytest.importorskip("torch")
import lacuna.torch  # noqa: E402
from lacuna.spec import spec_of  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if has_gpu() else [])


def tensors(device, **shape):
    """(q, k, v as tensors, the same values in NumPy); bf16 on a GPU."""
    arrays = problem(**shape)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    made = [torch.from_numpy(array).to(device, dtype) for array in arrays]
    return made, [tensor.float().cpu().numpy() for tensor in made]


def tolerance(device):
    return 1e-5 if device == "cpu" else 1e-2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ["bhnd", "bnhd"])
def test_values(device, layout):
    (q, k, v), host = tensors(device, heads=4, heads_kv=2, n_q=130, d=64)
    expected, expected_lse = exact(*host, causal=True)
    if layout == "bnhd":
        q, k, v = (tensor.transpose(1, 2).contiguous() for tensor in (q, k, v))
    o, lse = lacuna.torch.attention(q, k, v, CAUSAL, lse=True, layout=layout)
    o = o.transpose(1, 2) if layout == "bnhd" else o
    assert error(o.float().cpu().numpy(), expected) < tolerance(device)
    assert abs(lse.cpu().numpy() - expected_lse).max() < 1e-3


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("d_v", [64, 128])
def test_the_fake_agrees(device, d_v):
    (q, k, _), (_, _, v) = (tensors(device, d=d)[0] for d in (64, d_v))
    torch.library.opcheck(torch.ops.lacuna.attention, (q, k, v, "dense", True),
                          test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("device", DEVICES)
def test_compile_without_a_break(device):
    (q, k, v), _ = tensors(device, d=64)

    spec = spec_of("bsfa")
    assert "\n" in spec.text  # the compiler writes the operator's arguments into comments

    def block(q, k, v, threshold):
        return lacuna.torch.attention(q * 2, k, v, spec, threshold=threshold) + 1

    threshold = torch.full((q.shape[1], 1), 0.5, device=device)  # [heads, q_tiles]
    expected = block(q, k, v, threshold)
    backend = "inductor" if device == "cuda" else "aot_eager"
    compiled = torch.compile(block, fullgraph=True, backend=backend)(q, k, v, threshold)
    assert torch.allclose(compiled.float(), expected.float(), atol=2e-2 if device == "cuda" else 1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_are_refused(device):
    (q, k, v), _ = tensors(device)
    q.requires_grad_(True)
    with pytest.raises(lacuna.ArgumentError, match="no gradients"):
        lacuna.attention(q, k, v)
    with pytest.raises(NotImplementedError, match="no gradients"):
        lacuna.torch.attention(q, k, v).sum().backward()
    with torch.no_grad():
        lacuna.attention(q, k, v)


@needs_gpu
def test_devices_that_differ():
    (q, k, v), _ = tensors("cuda")
    with pytest.raises(lacuna.ArgumentError, match="k: device"):
        lacuna.attention(q, k.cpu(), v)
    with pytest.raises(lacuna.ArgumentError, match="threshold: device"):
        lacuna.attention(q, k, v, spec="bsfa", threshold=torch.zeros(q.shape[1], 1))
    with pytest.raises(lacuna.ArgumentError, match="o: device"):
        lacuna.attention(q, k, v, out=q.cpu())
    with pytest.raises(lacuna.ArgumentError, match="workspace: device expected cuda:0, got cpu"):
        lacuna.attention(q, k, v, spec="sparge", workspace=torch.zeros(1 << 24, dtype=torch.uint8))
    kernel = lacuna.compile("fg-attn-cached", head_dim=64, dtype="bf16", device="cuda:0")
    selection = lacuna.Selection(torch.zeros(1 << 20, dtype=torch.uint8))
    with pytest.raises(lacuna.ArgumentError, match="selection: device expected cuda:0, got cpu"):
        kernel(q, k, v, selection=selection)


@needs_gpu
def test_workspace_comes_from_the_allocator_of_pytorch():
    (q, k, v), _ = tensors("cuda", heads=4, n_q=1024, d=64)
    kernel, out = lacuna.compile("sparge", head_dim=64, dtype="bf16", device="cuda:0"), torch.empty_like(q)
    kernel(q, k, v, out=out)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, (free, _) = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()
    kernel(q, k, v, out=out)
    assert torch.cuda.max_memory_allocated() - before >= kernel.workspace(q, k) > 0
    assert torch.cuda.memory_allocated() == before and torch.cuda.mem_get_info()[0] == free


@needs_gpu
@pytest.mark.parametrize("spec", ["dense", "bsfa", "sparge"])
def test_a_captured_graph_follows_its_inputs(spec):
    (q, k, v), _ = tensors("cuda", heads=8, n_q=512, d=128)
    kernel = lacuna.compile(spec, head_dim=128, dtype="bf16", device="cuda:0")
    parameters = {"threshold": 0.5} if spec == "bsfa" else {}
    out = torch.empty_like(q)
    kernel(q, k, v, out=out, **parameters)  # compiled and warm before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(q, k, v, out=out, **parameters)
    for seed in (1, 2):
        fresh, _ = tensors("cuda", heads=8, n_q=512, d=128, seed=seed)
        for old, new in zip((q, k, v), fresh):
            old.copy_(new)
        out.fill_(float("nan"))
        graph.replay()
        assert torch.equal(out, kernel(q, k, v, **parameters)), seed


@needs_gpu
def test_streams_and_threads():
    """Each thread on a stream of its own, the device busy: a launch on the wrong stream would read what is not there yet."""
    failures = []

    def work(seed):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            (q, k, v), host = tensors("cuda", heads=4, n_q=256, d=64, seed=seed)
            for _ in range(20):
                late = torch.empty_like(q)
                torch.cuda._sleep(1_000_000)
                late.copy_(q)
                o = lacuna.attention(late, k, v, spec=CAUSAL)
            stream.synchronize()
            if error(o.float().cpu().numpy(), exact(*host, causal=True)[0]) > 1e-2:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@needs_gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_two_devices():
    """Each thread on a GPU of its own while the other one is current, and on both in turn: results, streams and workspace are those
    of the tensors' device."""
    expected, failures = {}, []
    for index in range(2):
        (q, k, v), host = tensors(f"cuda:{index}", heads=4, n_q=256, d=64, seed=index)
        expected[index] = (q, k, v), exact(*host, causal=True)[0]

    def work(first):
        torch.cuda.set_device(first)
        for turn in range(20):
            index = (first + turn) % 2
            arrays, wanted = expected[index]
            o = lacuna.attention(*arrays, spec=CAUSAL)
            sparse = lacuna.attention(*arrays, spec="sparge")
            torch.cuda.synchronize(index)
            if o.device != arrays[0].device or error(o.float().cpu().numpy(), wanted) > 1e-2 or not torch.isfinite(sparse).all():
                failures.append((first, turn))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    kernel = lacuna.compile(CAUSAL, head_dim=64, dtype="bf16", device="cuda:1")
    with pytest.raises(lacuna.ArgumentError, match="q: device expected cuda:1, got cuda:0"):
        kernel(*expected[0][0])


@needs_gpu
def test_a_stream_that_is_not_the_current_one():
    (q, k, v), host = tensors("cuda", heads=4, n_q=256, d=64)
    expected, side = exact(*host, causal=True)[0], torch.cuda.Stream()
    late = torch.empty_like(q)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        late.copy_(q)
    for stream in (side, side.cuda_stream):  # behind the copy, though another stream is current
        o = lacuna.attention(late, k, v, spec=CAUSAL, stream=stream)
        side.synchronize()
        assert error(o.float().cpu().numpy(), expected) < 1e-2
    for wrong in ("side", 1.5, object()):
        with pytest.raises(lacuna.ArgumentError, match="stream: expected"):
            lacuna.attention(q, k, v, spec=CAUSAL, stream=wrong)


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_whose_memory_was_freed(device):
    (q, k, v), _ = tensors(device)
    v = v.clone()  # whose memory is its own
    v.untyped_storage().resize_(0)
    with pytest.raises(lacuna.ArgumentError, match="argument v: data"):
        lacuna.attention(q, k, v)
    with pytest.raises(lacuna.ArgumentError, match="argument o: data"):
        out = torch.empty_like(q)
        out.untyped_storage().resize_(0)
        lacuna.attention(q, k, k, out=out)


@needs_gpu
def test_ten_thousand_calls_leak_nothing():
    (q, k, v), _ = tensors("cuda", heads=2, n_q=128, d=64)
    kernel = lacuna.compile("sparge", head_dim=64, dtype="bf16", device="cuda:0")

    def call(times):
        for _ in range(times):
            kernel(q, k, v)
            lacuna.attention(q, k, v, spec="bsfa", threshold=0.5)
        torch.cuda.synchronize()
        gc.collect()
        return torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]

    before = call(100)
    assert call(5000) == before


@needs_gpu
def test_numpy_does_not_meet_a_gpu():
    kernel = lacuna.compile("dense", head_dim=64, dtype="bf16", device="cuda:0")
    q, k, v = problem(d=64)
    with pytest.raises(lacuna.ArgumentError):
        kernel(*(array.astype("float16") for array in (q, k, v)))
