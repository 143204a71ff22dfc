"""Specs behind attn_implementation of Hugging Face transformers: a small Llama with random weights."""

import json

import lacuna
import numpy
import pytest
from conftest import CAUSAL, has_gpu, problem

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import lacuna.layers  # noqa: E402
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


def close(found, expected):
    assert torch.isfinite(found).all()
    assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max()


@torch.no_grad()
def test_logits_are_those_of_sdpa(names):
    assert "lacuna:dense" in names
    close(model("lacuna:dense")(tokens()).logits, model("sdpa")(tokens()).logits)


@torch.no_grad()
@pytest.mark.parametrize("cache, compiled", [("dynamic", False), ("static", False), *([("static", True)] if has_gpu() else [])])
def test_generation_goes_on_from_a_cache(names, cache, compiled):
    """With random weights two tokens can be nearly as likely, so logits are compared, not tokens. Where there is a GPU, transformers
    compiles the steps of a static cache by itself."""
    given = tokens(40, 2)
    found, expected = (model(name).generate(given, max_new_tokens=6, do_sample=False, output_logits=True, cache_implementation=kind,
                                            return_dict_in_generate=True, pad_token_id=0, disable_compile=not compiled)
                       for name, kind in (("lacuna:dense", cache), ("sdpa", "dynamic")))
    close(found.logits[0], expected.logits[0])
    assert found.sequences.shape == expected.sequences.shape and all(torch.isfinite(step).all() for step in found.logits)


@torch.no_grad()
def test_a_spec_for_each_layer(names, tmp_path):
    table = tmp_path / "layers.json"
    table.write_text(json.dumps({"default": "dense", "layers": {"1": {"spec": "bsfa", "threshold": -1e30}}}))
    lacuna.transformers.register("lacuna:two", layers=table)
    close(model("lacuna:two")(tokens()).logits, model("sdpa")(tokens()).logits)  # a gate that skips nothing


@pytest.fixture(scope="module")
def params():
    """Thresholds of bsfa that leave out a lot."""
    sample = problem(heads=4, heads_kv=2, n_q=512, dtype="float16")
    found = lacuna.calibrate("bsfa", samples=[sample], rel_l1=0.5, device="cuda:0" if has_gpu() else "cpu")
    assert (found["threshold"] > -1e30).any()
    return found


@torch.no_grad()
def test_specs_and_parameters_of_all_layers_from_one_file(names, params, tmp_path):
    params.save(tmp_path / "layer1.safetensors")
    (tmp_path / "mine.json").write_text(CAUSAL)
    named = {"default": "mine.json", "layers": {"0": {"spec": "bsfa", "threshold": -1e30}, "1-3": {"spec": "bsfa", "calibration": "layer1.safetensors"}}}
    (tmp_path / "layers.json").write_text(json.dumps(named))
    document = {"default": tmp_path / "mine.json", "layers": {**named["layers"], "1-3": {"spec": "bsfa", "calibration": params}}}
    place = tmp_path / "moved"
    place.mkdir()
    lacuna.layers.save_layers(place / "mine.layers", document)
    logits = []
    for number, layers in enumerate((tmp_path / "layers.json", document, place / "mine.layers")):
        lacuna.transformers.register(f"lacuna:calibrated{number}", layers=layers)
        logits.append(model(f"lacuna:calibrated{number}")(tokens(512, 1)).logits)
    assert torch.equal(logits[0], logits[1]) and torch.equal(logits[0], logits[2])
    assert not torch.equal(logits[0], model("lacuna:dense")(tokens(512, 1)).logits)
    choices = lacuna.layers.layers_of(place / "mine.layers")
    assert sorted(choices, key=str) == [0, 1, 2, 3, None]
    assert numpy.array_equal(choices[2].calibration["threshold"], params["threshold"])


@torch.no_grad()
def test_calibrated_parameters_in_a_compiled_graph(names, params):
    lacuna.transformers.register("lacuna:params", "bsfa", calibration=params)
    network, given = model("lacuna:params"), tokens(300, 1)
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")(given).logits
    close(compiled, network(given).logits)


def test_what_is_no_table_of_layers(tmp_path):
    for text, match in (("[]", "expected an object"), ("{", "expected JSON"), ('{"layer": {}}', "expected default and layers, got layer"),
                        ('{"layers": {"x": "dense"}}', "expected numbers like"), ('{"layers": {"1": {"threshold": 1}}}', "1: expected a spec"),
                        ('{"layers": {"1": {"spec": "bsfa", "threshold": [1]}}}', "threshold: expected a number, got list")):
        (tmp_path / "layers.json").write_text(text)
        with pytest.raises(lacuna.ArgumentError, match=match):
            lacuna.layers.layers_of(tmp_path / "layers.json")
    with pytest.raises(lacuna.SpecError, match="did you mean 'bsfa'"):
        lacuna.layers.layers_of({"layers": {"1": "bfsa"}})
    with pytest.raises(lacuna.ArgumentError, match="1: expected a spec"):
        lacuna.layers.save_layers(tmp_path / "x", {"layers": {"1": {}}})
    assert not (tmp_path / "x").exists()


@torch.no_grad()
def test_what_no_spec_follows_is_refused(names):
    given = tokens()
    padded = torch.ones_like(given)
    padded[0, :5] = 0
    with pytest.raises(lacuna.ArgumentError, match="padded tokens"):
        model("lacuna:dense")(given, attention_mask=padded)
    square = torch.ones(2, 1, given.shape[1], given.shape[1], dtype=torch.bool, device=DEVICE)
    with pytest.raises(lacuna.ArgumentError, match="a mask of the caller's is a spec's to say"):
        model("lacuna:dense")(given, attention_mask=square)


def static_cache(network, batch=1, room=64):
    return transformers.StaticCache(config=network.config, max_cache_len=room)


@torch.no_grad()
def last_logits(network, given, steps=3, step=None, cache=None):
    """Of the prompt without its last tokens, and of these one by one by `step`."""
    cache = transformers.DynamicCache(config=network.config) if cache is None else cache
    step = network if step is None else step
    logits = [network(given[:, :-steps], past_key_values=cache).logits[:, -1]]
    for at in range(given.shape[1] - steps, given.shape[1]):
        logits.append(step(given[:, at:at + 1], past_key_values=cache).logits[:, -1])
    return torch.stack(logits)


@torch.no_grad()
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_cache_that_has_room_for_more(names, batch, compiled):
    """A static cache holds more keys than the model has seen: the rest must not be attended to. A compiled step is one graph,
    which reads on the device how far the cache is filled."""
    given, network = tokens(40, batch), model("lacuna:dense")
    step = torch.compile(network, fullgraph=True, backend="aot_eager") if compiled else network
    close(last_logits(network, given, step=step, cache=static_cache(network)), last_logits(model("sdpa"), given))


@torch.no_grad()
@pytest.mark.skipif(not has_gpu(), reason="no GPU")
def test_a_captured_step_follows_the_cache(names):
    given, network = tokens(40, 2), model("lacuna:dense")
    expected = last_logits(model("sdpa"), given)
    cache, token = static_cache(network), given[:, -3:-2].clone()
    network(given[:, :-3], past_key_values=cache)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiles the kernel, and fills a place of the cache that is given back
        network(token, past_key_values=cache)
    torch.cuda.current_stream().wait_stream(side)
    cache.layers[0].cumulative_length.sub_(1), cache.layers[1].cumulative_length.sub_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = network(token, past_key_values=cache).logits[:, -1]
    for at in range(3):
        token.copy_(given[:, 37 + at:38 + at])
        graph.replay()
        close(logits, expected[1 + at])


@torch.no_grad()
def test_a_few_queries_of_a_predictor(names):
    """Steps of generation by a spec that decides about tiles in two steps; at thresholds of 0 it keeps them all."""
    lacuna.transformers.register("lacuna:all", "cascade", alpha=0.0, tau=0.0)
    given, network = tokens(200), model("lacuna:all")
    expected = last_logits(model("sdpa"), given)
    close(last_logits(network, given), expected)
    close(last_logits(network, given, cache=static_cache(network, room=256)), expected)
    assert torch.isfinite(last_logits(model("lacuna:cascade"), given)).all()


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
    close(compiled, expected)
