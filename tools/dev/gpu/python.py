"""The Python module on a GPU: its tests, what a call costs next to one from C++, and a model of transformers."""

import json
import os
import sys

from .machine import CARRY, ROOT, SPECS, sh

KERNEL_US, ATTENTION_US = 5.0, 15.0  # bars: host time of a call above that of a launch in C++
LOGITS = 5e-2  # bar: difference of bf16 logits, relative to the largest
STEP_LIMIT_S = {"tests": 150, "overhead": 60, "llama": 170}


def last_object(text):
    return json.loads(text.strip().splitlines()[-1])


def read_overhead(run, text):
    """Beside the Python times that of startup_bench, the fastest of three processes, and what is above it."""
    times = last_object(text)
    launches = [run.program("startup_bench", SPECS / "bsfa.json") for _ in range(3)]
    launch = min(json.loads(launch.stdout)["launch_us"] for launch in launches)
    over = {name: round(time - launch, 2) for name, time in times.items() if name != "sdpa"}
    return {"launch_in_c++": launch, **times, "above_c++": over,
            "reached": {"kernel": over["kernel, all given"] < KERNEL_US, "attention": over["attention"] < ATTENTION_US}}


def read_llama(text):
    """The rows of runtime/examples/llama.py, those too that a run which was cut short had printed, and what they have to reach."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    by_name = {(row["implementation"], row["mode"]): row for row in rows if "error" not in row}
    reached = {}
    for (name, mode), row in by_name.items():
        if name == "lacuna:dense" and ("sdpa", mode) in by_name:
            reached[mode] = {"prefill_of_sdpa": round(row["prefill_ms"] / by_name["sdpa", mode]["prefill_ms"], 3),
                             "logits": max(row["logits_difference"], row["step_difference"]) < LOGITS}
    return {"rows": rows, "lacuna:dense": reached}


def step_python(run):
    """pytest of the wheel's tests, host time of a call in us, and runtime/examples/llama.py at 16384 tokens."""
    env = dict(run.env, PYTHONPATH=os.pathsep.join([str(CARRY / "python"), os.environ.get("PYTHONPATH", "")]),
               PYTHONDONTWRITEBYTECODE="1")
    results = {}

    def call(name, words, read):
        result = sh([sys.executable, *words], timeout_s=STEP_LIMIT_S[name], env=env, cwd=ROOT)
        try:
            results[name] = read(result.stdout)
            failed = {"exit": result.returncode, "error": (result.stdout + result.stderr)[-3000:]} if result.returncode else {}
        except (ValueError, IndexError, KeyError):
            failed = {"exit": result.returncode, "error": (result.stdout + result.stderr)[-3000:]}
        if failed:
            results[name] = {"result": results.get(name), **failed}
        print(name, json.dumps(results[name])[:6000], flush=True)

    parts = {"tests": (["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfs", "--durations=8", "runtime/python/tests"],
                       lambda text: text.strip().splitlines()[-1]),
             "overhead": (["tools/dev/gpu/overhead.py"], lambda text: read_overhead(run, text)),
             "llama": (["runtime/examples/llama.py", "--tokens", "16384", "--generate", "128", "--json"], read_llama)}
    for name, (words, read) in parts.items():
        if run.wants(name):
            call(name, words, read)
    return results
