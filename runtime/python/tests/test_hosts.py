"""Specs in diffusers, the package itself or a stand-in with what lacuna.diffusers uses of it, and in vllm-omni, called as its
dispatcher of sparse kernels does and, where it is installed, by it."""

import enum
import importlib
import importlib.metadata
import importlib.util
import sys
import types

import lacuna
import numpy
import pytest
from conftest import error, exact, has_gpu, problem

torch = pytest.importorskip("torch")

DEVICE, DTYPE = ("cuda", torch.bfloat16) if has_gpu() else ("cpu", torch.float32)
BOUND = 1e-2 if has_gpu() else 1e-5


def tensors(**shape):
    """(q, k, v [b, n, h, d], the same values in NumPy as [b, h, n, d])"""
    made = [torch.from_numpy(array).to(DEVICE, DTYPE).transpose(1, 2).contiguous() for array in problem(**shape)]
    return made, [tensor.transpose(1, 2).float().cpu().numpy() for tensor in made]


def close(o, expected):
    assert error(o.transpose(1, 2).float().cpu().numpy(), expected) < BOUND


def stand_in():
    """diffusers.models.attention_dispatch and attention_processor, as small as their use."""

    class AttentionBackendName(str, enum.Enum):
        NATIVE = "native"

    class _AttentionBackendRegistry:
        _backends, _constraints, _supported_arg_names = {}, {}, {}
        _active_backend = AttentionBackendName.NATIVE

        @classmethod
        def register(cls, backend):
            def keep(function):
                cls._backends[backend], cls._constraints[backend] = function, []
                cls._supported_arg_names[backend] = {"query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa"}
                return function
            return keep

        @classmethod
        def set_active_backend(cls, backend):
            cls._active_backend = backend

    @_AttentionBackendRegistry.register(AttentionBackendName.NATIVE)
    def native(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        heads_first = (x.transpose(1, 2) for x in (query, key, value))
        return torch.nn.functional.scaled_dot_product_attention(*heads_first, attn_mask, dropout_p, is_causal, scale=scale,
                                                                enable_gqa=enable_gqa).transpose(1, 2)

    def dispatch_attention_fn(query, key, value, **named):
        registry = _AttentionBackendRegistry
        return registry._backends[registry._active_backend](query, key, value, **named)

    class Attention(torch.nn.Module):
        def __init__(self, query_dim, heads, dim_head):
            super().__init__()
            self.heads, self.scale, self.residual_connection, self.rescale_output_factor = heads, dim_head ** -0.5, False, 1.0
            self.spatial_norm = self.group_norm = self.norm_q = self.norm_k = self.norm_cross = None
            self.to_q, self.to_k, self.to_v = (torch.nn.Linear(query_dim, heads * dim_head, bias=False) for _ in range(3))
            self.to_out = torch.nn.ModuleList([torch.nn.Linear(heads * dim_head, query_dim), torch.nn.Dropout(0.0)])
            self.processor = AttnProcessor2_0()

        def set_processor(self, processor):
            self.processor = processor

        def forward(self, hidden_states, **named):
            return self.processor(self, hidden_states, **named)

    class AttnProcessor2_0:
        def __call__(self, attn, states):
            q, k, v = (project(states).unflatten(-1, (attn.heads, -1)) for project in (attn.to_q, attn.to_k, attn.to_v))
            return attn.to_out[1](attn.to_out[0](native(q, k, v).flatten(2)))

    def module(name, **members):
        made = types.ModuleType(name)
        vars(made).update(members)
        return made

    dispatch = module("diffusers.models.attention_dispatch", AttentionBackendName=AttentionBackendName,
                      _AttentionBackendRegistry=_AttentionBackendRegistry, dispatch_attention_fn=dispatch_attention_fn)
    processor = module("diffusers.models.attention_processor", Attention=Attention, AttnProcessor2_0=AttnProcessor2_0)
    models = module("diffusers.models", attention_dispatch=dispatch, attention_processor=processor)
    return [module("diffusers", models=models), models, dispatch, processor]


@pytest.fixture
def host(monkeypatch):
    """(lacuna.diffusers, attention_dispatch, attention_processor)"""
    if importlib.util.find_spec("diffusers") is None:
        for module in stand_in():
            monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.delitem(sys.modules, "lacuna.diffusers", raising=False)
    found = [importlib.import_module(name) for name in ("lacuna.diffusers", "diffusers.models.attention_dispatch",
                                                        "diffusers.models.attention_processor")]
    yield found
    sys.modules.pop("lacuna.diffusers", None)


@torch.no_grad()
def test_what_diffusers_dispatches_goes_to_a_spec(host):
    ours, dispatch, _ = host
    (q, k, v), arrays = tensors(heads=4, n_q=300)
    registry = dispatch._AttentionBackendRegistry
    before = registry._active_backend, dict(registry._backends)
    with ours.attention_backend("bsfa", threshold=1e30):
        gated = dispatch.dispatch_attention_fn(q, k, v)
        with pytest.raises(lacuna.ArgumentError, match="diffusers asks for attn_mask"):
            dispatch.dispatch_attention_fn(q, k, v, attn_mask=torch.ones(300, 300, dtype=torch.bool, device=DEVICE))
    with ours.attention_backend("dense"):
        close(dispatch.dispatch_attention_fn(q, k, v), exact(*arrays)[0])
        close(dispatch.dispatch_attention_fn(q, k, v, is_causal=True, scale=0.3), exact(*arrays, causal=True, scale=0.3)[0])
    assert (registry._active_backend, registry._backends) == before
    assert error(gated.transpose(1, 2).float().cpu().numpy(), exact(*arrays, causal=True)[0]) > 10 * BOUND
    close(dispatch.dispatch_attention_fn(q, k, v), exact(*arrays)[0])


@torch.no_grad()
def test_an_error_puts_diffusers_back(host):
    ours, dispatch, _ = host
    registry = dispatch._AttentionBackendRegistry
    before = dict(registry._backends)
    with pytest.raises(KeyError), ours.attention_backend("dense"):
        raise KeyError("of the pipeline")
    assert registry._backends == before


@torch.no_grad()
def test_a_processor_of_an_attention_module(host):
    ours, _, processors = host
    torch.manual_seed(0)
    attention = processors.Attention(query_dim=128, heads=2, dim_head=64).to(DEVICE, DTYPE).eval()
    states = torch.randn(2, 70, 128, device=DEVICE, dtype=DTYPE)
    attention.set_processor(processors.AttnProcessor2_0())
    expected = attention(states)
    attention.set_processor(ours.AttnProcessor("dense"))
    found = attention(states)
    assert (found - expected).abs().max() <= 10 * BOUND * expected.abs().max()
    with pytest.raises(lacuna.ArgumentError, match="attn_mask"):
        attention(states, attention_mask=torch.zeros(2, 70, 70, device=DEVICE, dtype=DTYPE))


@torch.no_grad()
def test_a_callable_of_vllm_omni():
    import lacuna.vllm_omni

    (q, k, v), arrays = tensors(heads=4, heads_kv=2, n_q=130)
    attend = lacuna.vllm_omni.attention("dense")
    close(attend(q, k, v, None, False, 64 ** -0.5), exact(*arrays)[0])
    close(attend(q, k, v, None, True, 0.3), exact(*arrays, causal=True, scale=0.3)[0])
    with pytest.raises(lacuna.ArgumentError, match="vllm-omni asks for attn_mask"):
        attend(q, k, v, {"attn_mask": torch.ones(1, device=DEVICE)})


@torch.no_grad()
def test_parameters_of_a_call_of_vllm_omni():
    import lacuna.vllm_omni

    (q, k, v), arrays = tensors(heads=4, n_q=256)
    attend = lacuna.vllm_omni.attention("bsfa", threshold=-1e30)
    ungated = attend(q, k, v)
    close(ungated, exact(*arrays, causal=True)[0])  # a gate that skips nothing
    gated = attend(q, k, v, types.SimpleNamespace(attn_mask=None, threshold=1e30))
    assert not torch.equal(gated, ungated)
    by_head = torch.full((4, 2), 1e30, device=DEVICE)
    assert torch.equal(attend(q, k, v, {"threshold": by_head}), gated)
    assert numpy.isfinite(gated.float().cpu().numpy()).all()


def dispatched(attend, q, k, v, static, extra=None, causal=False):
    """As vllm-omni calls a kernel of its SPARSE_ATTN backend: what was configured, the state of the step, what the model adds."""
    state = {"denoise_step_idx": torch.tensor([3]), "total_denoise_steps": torch.tensor([50]), "latent_shape": torch.tensor([[13, 10, 8]]),
             "patch_size": torch.tensor([[1, 2, 2]]), "total_latent_frames": 13, "patches_per_frame": 20, "num_frames": None}
    merged = {name: value for name, value in {**static, **state, **(extra or {})}.items() if value is not None}
    return attend(q, k, v, merged, is_causal=causal, softmax_scale=q.shape[-1] ** -0.5)


@torch.no_grad()
def test_a_kernel_of_vllm_omni():
    import lacuna.vllm_omni

    (q, k, v), arrays = tensors(heads=4, n_q=260)
    attend = lacuna.vllm_omni.attn_fn
    close(dispatched(attend, q, k, v, {"spec": "dense"}), exact(*arrays)[0])
    close(dispatched(attend, q, k, v, {"spec": {"version": 1, "name": "mine"}}, causal=True), exact(*arrays, causal=True)[0])
    gated = dispatched(attend, q, k, v, {"spec": "bsfa", "threshold": 1e30})
    assert torch.equal(gated, lacuna.attention(q, k, v, spec="bsfa", threshold=1e30, layout="bnhd"))
    order = torch.randperm(260, device=DEVICE).to(torch.int32)
    permuted = {"version": 1, "name": "permuted", "permute": "external"}
    close(dispatched(attend, q, k, v, {"spec": permuted}, {"order": order}), exact(*arrays)[0])


@torch.no_grad()
def test_a_kernel_of_vllm_omni_in_a_compiled_graph():
    import lacuna.vllm_omni

    (q, k, v), arrays = tensors(heads=2, n_q=130)

    def block(q, k, v):
        return dispatched(lacuna.vllm_omni.attn_fn, q * 1, k, v, {"spec": "bsfa", "threshold": -1e30}) + 0

    close(torch.compile(block, fullgraph=True, backend="aot_eager")(q, k, v), exact(*arrays, causal=True)[0])


@torch.no_grad()
def test_what_a_kernel_of_vllm_omni_refuses():
    import lacuna.vllm_omni

    (q, k, v), _ = tensors(heads=2, n_q=64)
    for match, static, extra in (("expected \"spec\"", {}, {}), ("did you mean 'threshold'", {"spec": "bsfa", "treshold": 1.0}, {}),
                                 ("asks for full_attn_spans", {"spec": "dense"}, {"full_attn_spans": [[(0, 3)]]}),
                                 ("asks for cu_seqlens_q", {"spec": "dense"}, {"cu_seqlens_q": torch.tensor([0, 64])}),
                                 ("asks for valid_kv_length", {"spec": "dense"}, {"valid_kv_length": 60})):
        with pytest.raises(lacuna.ArgumentError, match=match):
            dispatched(lacuna.vllm_omni.attn_fn, q, k, v, static, extra)


def test_vllm_omni_finds_the_kernel_by_its_name():
    import lacuna.vllm_omni

    try:
        importlib.metadata.distribution("lacuna-attention")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package was put on the path, not installed")
    (entry,) = importlib.metadata.entry_points(group="vllm_omni.sparse_attn", name="lacuna")
    assert entry.load() is lacuna.vllm_omni.attn_fn
    assert not getattr(entry.load(), "capabilities", None)  # masks are refused by the dispatcher too


@torch.no_grad()
def test_the_dispatcher_of_vllm_omni():
    backend = pytest.importorskip("vllm_omni.diffusion.attention.backends.sparse_attn")
    (q, k, v), arrays = tensors(heads=4, n_q=130)
    made = backend.SparseAttentionBackend.get_impl_cls()(num_heads=4, head_size=64, softmax_scale=64 ** -0.5,
                                                         backend_kwargs={"backend": "lacuna", "params": {"spec": "dense"}})
    close(made.forward(q, k, v), exact(*arrays)[0])
