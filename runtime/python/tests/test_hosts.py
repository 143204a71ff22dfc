"""Specs in diffusers, the package itself or a stand-in with what lacuna.diffusers uses of it, and in vllm-omni's form."""

import enum
import importlib
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
    (q, k, v), arrays = tensors(heads=4, n_q=130)
    registry = dispatch._AttentionBackendRegistry
    before = registry._active_backend, dict(registry._backends)
    with ours.attention_backend("bsfa", threshold=1e30):
        gated = dispatch.dispatch_attention_fn(q, k, v)
        with pytest.raises(lacuna.ArgumentError, match="diffusers asks for attn_mask"):
            dispatch.dispatch_attention_fn(q, k, v, attn_mask=torch.ones(130, 130, dtype=torch.bool, device=DEVICE))
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
