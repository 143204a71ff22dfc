"""The examples that need no GPU, and every snippet of the README."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest
from conftest import has_gpu

RUNTIME = pathlib.Path(__file__).parents[2]
README = (RUNTIME / "python/README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(*words):
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("words", [["--layout", "striped", "--stripe", "96"], ["--layout", "contiguous", "--scheme", "rows"],
                                   ["--layout", "heads", "--spec", "bsfa", "--param", "threshold=0.5"]], ids=lambda words: words[1])
def test_context_parallel_on_a_loopback(words):
    done = run(RUNTIME / "examples/context_parallel.py", "--backend", "loopback", "--ranks", 3, "--tokens", 500, "--heads", 6, "--heads-kv", 3,
               "--head-dim", 64, "--repeats", 1, "--json", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["ranks"] == 3 and facts["rel_l1"] <= 1e-5
    assert "each rank has the results of one GPU" in done.stdout and "  gather " in done.stdout


def test_context_parallel_tells_a_wrong_word():
    assert run(RUNTIME / "examples/context_parallel.py", "--layout", "even").returncode == 2


def test_a_variant_from_its_text_to_its_time(tmp_path):
    device = "cuda:0" if has_gpu() else "cpu"
    done = run(RUNTIME / "examples/variant.py", "--tokens", 512, "--heads", 2, "--device", device, "--picture", tmp_path / "tiles.svg")
    assert done.returncode == 0, done.stderr
    reports = [float(line.split("error ")[1].split(",")[0]) for line in done.stdout.splitlines() if line.startswith(f"mine on {device}")]
    assert len(reports) == 2 and reports[1] <= 0.05 and "gate.skip        gap < least" in done.stdout
    assert "least [" in done.stdout and "dense: " in done.stdout and "<svg" in (tmp_path / "tiles.svg").read_text()


def wanted(snippet):
    """The modules that a snippet needs, from its imports."""
    return [name for name in ("torch", "transformers", "diffusers") if re.search(rf"^\s*import .*\b{name}\b", snippet, re.MULTILINE)]


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippets_of_the_readme(number, tmp_path):
    snippet = SNIPPETS[number]
    for module in wanted(snippet):
        pytest.importorskip(module)
    if "cuda" in snippet and not has_gpu():
        pytest.skip("no GPU")
    script = tmp_path / "snippet.py"
    script.write_text(snippet, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one_rank = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=200, cwd=tmp_path, env={**os.environ, **one_rank})
    assert done.returncode == 0, done.stderr
