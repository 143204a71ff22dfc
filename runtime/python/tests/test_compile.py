"""Kernels that are kept: signature, plan, facts, devices; and what check, explain and specs say."""

import json
import os
import pathlib
import subprocess

import lacuna
import numpy
import pytest
from conftest import CAUSAL
from lacuna import command


def test_a_kernel_says_what_it_takes():
    kernel = lacuna.compile("sparge", head_dim=64, dtype=numpy.float32, device="cpu")
    assert repr(kernel.signature) == ("sparge(q, k, v, *, tau: f32[heads] = 0.98, theta: f32[heads] = 0.3, "
                                      "lambda: f32[heads] = -10.0)")
    assert kernel.signature.parameters["tau"]["maximum"] == 1.0
    assert kernel.signature.keeps_selection and kernel.signature.lse
    assert repr(lacuna.compile("window", head_dim=64, device="cpu").signature) == "window(q, k, v, *, sink: i32 = 4, window: i32 = 1024)"
    external = lacuna.compile("external-mask", head_dim=64, dtype="f32", device="cpu").signature
    assert external.tensors == ("q", "k", "v", "list_indices", "list_counts")
    assert lacuna.compile("bsfa", head_dim=64, device="cpu").signature.parameters["threshold"]["default"] == "-inf"


def test_a_signature_has_all_tensors_and_a_digest():
    signature = lacuna.compile("bsfa", head_dim=64, dtype="f32", device="cpu", batch="pages").signature
    pages = {argument["name"]: argument for argument in signature.arguments}
    assert signature.batch == "pages" and pages["k"]["shape"] == ["pages", "heads_kv", "page_tokens", "d"]
    assert pages["sequences.pages"] == {"name": "sequences.pages", "dtype": "i32", "shape": ["count", "max_pages"], "output": False,
                                        "required": True}
    other = lacuna.compile(lacuna.Spec("\n" + pathlib.Path(lacuna.specs()["bsfa"]["path"]).read_text()), head_dim=64, dtype="f32", device="cpu")
    assert other.signature.digest == signature.digest and len(signature.digest) == 64


def test_kernels_that_were_compiled_elsewhere(tmp_path):
    engine = lacuna.Engine("cpu", forbid_compiling=True)  # of kernels for a GPU
    with pytest.raises(lacuna.ArgumentError, match="bundle"):
        engine.add_kernels(b"no bundle")
    with pytest.raises(TypeError):
        engine.add_kernels("a text")
    bundle = tmp_path / "kernels.lacuna"
    built = subprocess.run([command.PROGRAM, "build", lacuna.specs()["dense"]["path"], "--arch", "sm_80", "--head-dim", "64", "--bundle", bundle],
                           capture_output=True, text=True)
    if built.returncode == 3:
        pytest.skip("no NVRTC to make a bundle with")
    held = bytearray(bundle.read_bytes())
    engine.add_kernels(held)
    with pytest.raises(BufferError):
        held.clear()  # while the engine holds it
    kernel = engine.compile("dense", head_dim=64, dtype="f32")
    del engine
    q = numpy.ones((1, 1, 8, 64), "float32")
    assert numpy.allclose(kernel(q, q, q), 1)
    del kernel
    held.clear()
    broken = bytearray(bundle.read_bytes())
    broken[len(broken) // 2] ^= 1
    with pytest.raises(lacuna.ArgumentError):
        lacuna.Engine("cpu").add_kernels(broken)


def test_a_kernel_says_what_was_decided():
    kernel = lacuna.compile("bsfa", head_dim=96, dtype="bf16", device="cpu")
    assert (kernel.info["head_dim"], kernel.info["dtype"], kernel.info["device"]) == (96, "bf16", "cpu")
    assert kernel.plan["tile.q"] == "128" and "spec" in str(kernel.plan)
    with pytest.raises(KeyError, match="did you mean 'tile.q'"):
        kernel.plan["tileq"]
    q = numpy.zeros((1, 8, 64, 96), "float32")
    assert kernel.workspace(q, q) == 0  # on the CPU ops have memory of their own


def test_a_plan_is_that_of_the_kernel_whatever_it_was_compiled_with(tmp_path):
    def lacuna_command(*words):
        subprocess.run([command.PROGRAM, *words], env={**os.environ, "LACUNA_CACHE_DIR": str(tmp_path)}, check=True, capture_output=True)

    spec = tmp_path / "causal.json"
    spec.write_text(CAUSAL)
    records = tmp_path / "records.jsonl"
    lacuna_command("tune", spec, "--shape", "h=1,n=32", "--head-dim", "64", "--dtype", "f32", "--device", "cpu", "--budget", "0.001s",
                   "--export", records)
    record = json.loads(records.read_text().splitlines()[0])
    threads = record["config"].split()[-1]
    with records.open("w") as file:
        for tile, tokens in (("q64 k32", 256), ("q32 k16", 16384)):
            print(json.dumps({**record, "config": f"{tile} ascending {threads}", "best": "1", "shape": f"n={tokens}",
                              "problem": f"rows=4 group=1 n_q={tokens} n_k={tokens}"}), file=file)
    lacuna_command("tune", "--import", records)
    engine = lacuna.Engine("cpu", cache_directory=str(tmp_path))
    for shape, tile in ((None, (32, 16)), ((1, 4, 4, 256, 256), (64, 32))):
        kernel = engine.compile(spec, head_dim=64, dtype="f32", shape=shape)
        assert (kernel.info["tile"]["q"], kernel.info["tile"]["k"]) == tile
        assert (int(kernel.plan["tile.q"]), int(kernel.plan["tile.k"])) == tile


def test_dtypes_have_many_names():
    for name in ("bf16", "bfloat16"):
        assert lacuna.compile("dense", dtype=name, device="cpu").info["dtype"] == "bf16"
    with pytest.raises(lacuna.ArgumentError, match="dtype: expected bf16, f16 or f32, got int8"):
        lacuna.compile("dense", dtype=numpy.int8)


def test_engines_are_the_callers():
    engine = lacuna.Engine("cpu", threads=1)
    kernel = engine.compile("dense", head_dim=64, dtype="f32")
    assert (kernel.engine is engine, engine.device, engine.target) == (True, "cpu", "cpu")
    q = numpy.ones((1, 1, 8, 64), "float32")
    assert numpy.allclose(kernel(q, q, q), 1)


def test_errors_of_a_spec_have_carets():
    text = '{"version": 1, "name": "x", "attention": {"mask": "k <= qq"}}'
    for call in (lambda: lacuna.check(text), lambda: lacuna.compile(text), lambda: lacuna.explain(text)):
        with pytest.raises(lacuna.SpecError) as caught:
            call()
        assert str(caught.value).startswith("<memory>:1:57: error:") and "^" in str(caught.value)
        (diagnostic,) = caught.value.diagnostics
        assert (diagnostic["line"], diagnostic["column"], diagnostic["path"]) == (1, 57, "<memory>")
    assert isinstance(caught.value, ValueError)


def test_every_error_of_a_spec_is_told():
    with pytest.raises(lacuna.SpecError) as caught:
        lacuna.check('{"version": 1, "name": "x", "tile": {"q": 100, "k": 3}}')
    assert [diagnostic["pointer"] for diagnostic in caught.value.diagnostics] == ["/tile/q", "/tile/k"]


def test_a_good_spec_has_nothing_to_say():
    assert lacuna.check("bsfa") == []
    with pytest.raises(lacuna.ArgumentError, match="sm_90"):
        lacuna.check("bsfa", arch="sm_91b")


def test_explanations():
    explained = lacuna.explain("sparge", arch="sm_90a,sm_80", head_dim=128)
    assert [plan["target"] for plan in explained.plans] == ["sm_90a", "sm_80"]
    assert "Shared memory" in str(explained) and explained["tile.q"] == "128"
    assert "E0203" in str(lacuna.explain("E0203"))
    assert "on the device" in str(lacuna.explain("dense", arch="sm_90a", batch="pages"))  # how often rows are split
    assert "on the device" not in str(lacuna.explain("dense", arch="sm_90a"))
    assert "order" in str(lacuna.explain("sparge-video", arch="sm_90a", batch="pages"))
    with pytest.raises(lacuna.SpecError, match="head_dim"):
        lacuna.explain("quest", arch="sm_90a", head_dim=576)


def test_what_several_gpus_would_do():
    group = lacuna.explain("dense", arch="sm_90a", shape="h=32,h_kv=8,n=32768", gpus=4, layout="striped", stripe=4096).plans[0]["group"]
    assert (group["ranks"], group["layout"]) == (4, "striped") and len(group["schemes"]) == 3
    with pytest.raises(lacuna.SpecError, match="batches of one length"):
        lacuna.explain("dense", arch="sm_90a", batch="pages", gpus=2)


def test_specs_that_come_along():
    table = lacuna.specs()
    assert table["sparge"]["params"] == ["tau", "theta", "lambda"]
    assert {"dense", "bsfa", "distance-gate"} <= set(table)
    assert "sparge-topk" in repr(table)
    for name in table:
        lacuna.check(name)
