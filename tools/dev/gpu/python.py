"""The Python module on a GPU: its tests, what a call costs, and a model of transformers."""

import json
import os
import sys

from .machine import CARRY, ROOT, sh

OVERHEAD = """
import json, time, torch, lacuna, lacuna.torch
q, k, v = (torch.randn(1, 8, 64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
kernel = lacuna.compile("dense", head_dim=64, dtype="bf16", device="cuda:0")
out = torch.empty_like(q)
calls = {"kernel": lambda: kernel(q, k, v, out=out), "kernel without out": lambda: kernel(q, k, v),
         "attention": lambda: lacuna.attention(q, k, v, spec="dense"), "operator": lambda: lacuna.torch.attention(q, k, v, "dense"),
         "sdpa": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)}
times = {}
with torch.no_grad():
    for name, call in calls.items():
        for _ in range(200): call()
        best = 1e9
        for _ in range(20):  # short bursts: the queue of the driver never fills
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(50): call()
            best = min(best, (time.perf_counter() - begin) / 50 * 1e6)
        times[name] = round(best, 2)
print(json.dumps(times))
"""


def step_python(run):
    """pytest of the wheel's tests, host time of a call in us, and runtime/examples/llama.py at 16384 tokens."""
    env = dict(run.env, PYTHONPATH=os.pathsep.join([str(CARRY / "python"), os.environ.get("PYTHONPATH", "")]),
               PYTHONDONTWRITEBYTECODE="1")
    results = {}

    def call(name, words, limit_s, read=None):
        result = sh([sys.executable, *words], timeout_s=limit_s, env=env, cwd=ROOT)
        try:
            results[name] = read(result.stdout)
        except (ValueError, IndexError):
            results[name] = {"exit": result.returncode, "error": (result.stdout + result.stderr)[-1500:]}
        print(name, json.dumps(results[name])[:1500], flush=True)
        return result

    tests = call("tests", ["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfs", "runtime/python/tests"], 240,
                 lambda text: text.strip().splitlines()[-1])
    if tests.returncode:
        print(tests.stdout[-5000:], flush=True)
    call("overhead_us", ["-c", OVERHEAD], 90, lambda text: json.loads(text.strip().splitlines()[-1]))
    call("llama_16384", ["runtime/examples/llama.py", "--tokens", "16384", "--generate", "128", "--json"], 240,
         lambda text: json.loads(text.strip().splitlines()[-1]))
    return results
