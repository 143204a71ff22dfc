"""Specs behind attn_implementation of Hugging Face transformers: a small Llama with random weights."""

import json

import lacuna
import pytest
from conftest import has_gpu

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import lacuna.transformers  # noqa: E402

DEVICE, DTYPE = ("cuda", torch.bfloat16) if has_gpu() else ("cpu", torch.float32)
TOLERANCE = 5e-2 if has_gpu() else 1e-3


@pytest.fixture(scope="module")
def names():
    return lacuna.transformers.register()


def model(implementation, seed=0):
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(hidden_size=256, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, head_dim=64, vocab_size=128, attn_implementation=implementation)
    return transformers.LlamaForCausalLM(config).to(DEVICE, DTYPE).eval()


def tokens(count=70, batch=2):
    return torch.randint(1, 128, (batch, count), generator=torch.Generator().manual_seed(3)).to(DEVICE)


@torch.no_grad()
def test_logits_are_those_of_sdpa(names):
    assert "lacuna:dense" in names
    expected = model("sdpa")(tokens()).logits
    found = model("lacuna:dense")(tokens()).logits
    assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()


@torch.no_grad()
def test_generation_goes_on_from_a_cache(names):
    """With random weights two tokens can be nearly as likely, so logits are compared, not tokens."""
    given = tokens(40, 1)
    found, expected = (model(name).generate(given, max_new_tokens=6, do_sample=False, output_logits=True,
                                            return_dict_in_generate=True, pad_token_id=0)
                       for name in ("lacuna:dense", "sdpa"))
    first = [step.logits[0] for step in (found, expected)]
    assert (first[0] - first[1]).abs().max() <= TOLERANCE * first[1].abs().max()
    assert found.sequences.shape == expected.sequences.shape


@torch.no_grad()
def test_a_spec_for_each_layer(names, tmp_path):
    table = tmp_path / "layers.json"
    table.write_text(json.dumps({"default": "dense", "layers": {"1": {"spec": "bsfa", "threshold": -1e30}}}))
    lacuna.transformers.register("lacuna:two", layers=table)
    expected = model("sdpa")(tokens()).logits
    found = model("lacuna:two")(tokens()).logits  # a gate that skips nothing
    assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()


@torch.no_grad()
def test_what_no_spec_follows_is_refused(names):
    given = tokens()
    padded = torch.ones_like(given)
    padded[0, :5] = 0
    with pytest.raises(lacuna.ArgumentError, match="padded tokens"):
        model("lacuna:dense")(given, attention_mask=padded)


@torch.no_grad()
def test_a_cache_that_has_room_for_more(names):
    """A static cache holds more keys than the model has seen: the rest must not be attended to."""
    given = tokens(40, 1)
    found, expected = (model(name).generate(given, max_new_tokens=5, do_sample=False, output_logits=True, cache_implementation=cache,
                                            return_dict_in_generate=True, pad_token_id=0, disable_compile=True)
                       for name, cache in (("lacuna:dense", "static"), ("sdpa", "dynamic")))
    first = [step.logits[0] for step in (found, expected)]
    assert (first[0] - first[1]).abs().max() <= TOLERANCE * first[1].abs().max()
    assert all(torch.isfinite(step).all() for step in found.logits)


@torch.no_grad()
def test_a_paged_cache_is_refused(names):
    """What continuous batching passes."""
    forward = lacuna.transformers.attention_function("lacuna:dense", {None: lacuna.hosting.choice_of("dense")})
    q = torch.randn(1, 4, 16, 64, device=DEVICE, dtype=DTYPE)
    with pytest.raises(lacuna.ArgumentError, match="asks for cache"):
        forward(torch.nn.Module(), q, q, q, None, cache=object())


@torch.no_grad()
def test_compiled_in_one_graph(names):
    network, given = model("lacuna:dense"), tokens()
    expected = network(given).logits
    compiled = torch.compile(network, fullgraph=True, backend="inductor" if has_gpu() else "aot_eager")(given).logits
    assert (compiled - expected).abs().max() <= TOLERANCE * expected.abs().max()
