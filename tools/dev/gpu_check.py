#!/usr/bin/env python3
"""The whole GPU check in one go.

  tools/dev/gpu_check.py pack            here: build, strip and stage everything a GPU machine needs in .carry/
  tools/dev/gpu_check.py run [STEP ...]  there: test, sanitise and measure; writes gpu-record.json

The GPU machine needs the checkout, .carry/, a driver, NVRTC and (for the sanitizer steps) compute-sanitizer; no
compiler and no library of ours. Results go to --out; copy the record to tests/numerics/gpu-record.json.
"""
import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARRY = ROOT / ".carry"
TREES = ("compiler", "templates", "runtime")
PROGRAMS = ("lacuna", "test_numerics", "startup_bench")
# Small cases for the sanitizers, which slow a kernel down a hundredfold.
SANITIZED = "Shapes/Attend.*n65_65*:Shapes/Attend.*n257_129*:Layouts/Attend.*:Layouts/Predicted.*"


def sh(command, **options):
    return subprocess.run(command, text=True, capture_output=True, **options)


# ---- pack ---------------------------------------------------------------------------------------------------


def pack(args):
    build = Path(args.build)
    subprocess.run(["cmake", "--build", build, "--target", "lacuna_cli", "test_numerics", "startup_bench"], check=True)
    shutil.rmtree(CARRY / "bin", ignore_errors=True)
    (CARRY / "bin").mkdir(parents=True)
    (CARRY / "data").mkdir(exist_ok=True)
    for name in PROGRAMS:
        subprocess.run(["strip", "-o", CARRY / "bin" / name, build / "bin" / name], check=True)
    for sample in args.sample:
        shutil.copy(sample, CARRY / "data" / Path(sample).name)
    trees = {tree: sh(["git", "rev-parse", f"HEAD:{tree}"], cwd=ROOT).stdout.strip() for tree in TREES}
    dirty = sh(["git", "status", "--porcelain", "--", *TREES], cwd=ROOT).stdout.strip() != ""
    (CARRY / "trees.json").write_text(json.dumps({"trees": trees, "dirty": dirty}))
    total = sum(f.stat().st_size for f in CARRY.rglob("*") if f.is_file())
    print(f"staged {total / 2**20:.1f} MiB in {CARRY}; trees {'dirty' if dirty else 'clean'}")


# ---- run ----------------------------------------------------------------------------------------------------


class Run:
    def __init__(self, out):
        self.out = out
        self.bin = CARRY / "bin"
        self.env = dict(os.environ, LACUNA_TEST_DEVICE="cuda:0", LACUNA_TEST_SOURCE_DIR=str(ROOT),
                        LACUNA_CACHE_DIR=str(out / "cache"))
        if list((CARRY / "data").glob("*.safetensors")):
            self.env["LACUNA_SAMPLES"] = str(CARRY / "data")

    def program(self, name, *arguments, before=(), **options):
        return sh([*before, str(self.bin / name), *map(str, arguments)], env=self.env, cwd=ROOT, **options)


def gtest_summary(path):
    report = json.loads(Path(path).read_text())
    failed = [f"{suite['name']}.{test['name']}" for suite in report["testsuites"] for test in suite["testsuite"]
              if test.get("failures")]
    skipped = sum(test["result"] == "SKIPPED" for suite in report["testsuites"] for test in suite["testsuite"])
    return {"run": report["tests"] - skipped, "skipped": skipped, "failed": failed}


def step_numerics(run):
    """Every spec, dtype, head dim, shape and value against the fp64 oracle; graphs, streams, large offsets."""
    result = run.program("test_numerics", f"--gtest_output=json:{run.out}/numerics.json", "--gtest_brief=1")
    (run.out / "numerics.log").write_text(result.stdout + result.stderr)
    print((result.stdout + result.stderr)[-3000:])
    return gtest_summary(run.out / "numerics.json") if result.returncode in (0, 1) else {"crashed": result.returncode}


def sanitize(run, tool):
    log = run.out / f"{tool}.log"
    result = run.program("test_numerics", f"--gtest_filter={SANITIZED}", "--gtest_brief=1",
                         before=["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--log-file", str(log)])
    summary = [line for line in log.read_text().splitlines() if "SUMMARY" in line or "Error" in line] if log.exists() else []
    return {"filter": SANITIZED, "exit": result.returncode, "summary": summary[-3:], "tests": result.stdout.strip()[-200:]}


def step_memcheck(run):
    """compute-sanitizer memcheck over the small cases."""
    return sanitize(run, "memcheck")


def step_racecheck(run):
    """compute-sanitizer racecheck over the small cases."""
    return sanitize(run, "racecheck")


def step_startup(run):
    """From process start to the first launch, cold and warm cache; cost of one launch."""
    shutil.rmtree(run.out / "cache", ignore_errors=True)
    rows = []
    for temperature in ("cold", "warm", "warm"):
        result = run.program("startup_bench", ROOT / "specs/bsfa.json")
        if result.returncode:
            return {"error": result.stderr.strip()}
        rows.append({"cache": temperature, **json.loads(result.stdout)})
    return rows


def step_specs(run):
    """`lacuna run` of every spec on the shipped 4k sample and of bsfa on each full sample."""
    rows = []
    inputs = [None, *sorted((CARRY / "data").glob("*k.safetensors"))]
    for sample in inputs:
        for spec in sorted((ROOT / "specs").glob("*.json")):
            if spec.name in ("schema.json", "external-mask.json", "sparge-video.json") or (sample and spec.stem not in ("bsfa", "dense")):
                continue  # the two ask for a mask or an order of the caller's
            thresholds = sorted((CARRY / "data").glob(f"{sample.stem}.{spec.stem}-*.safetensors")) if sample else [None]
            for threshold in thresholds or [None]:
                options = ["--input", sample] if sample else []
                options += ["--param", f"threshold=@{threshold}"] if threshold else []
                result = run.program("lacuna", "run", spec, "--device", "cuda:0", "--json", *options)
                name = {"spec": spec.stem, "input": sample.name if sample else "shipped", "params": threshold.name if threshold else None}
                rows.append({**name, **json.loads(result.stdout)} if result.returncode == 0
                            else {**name, "exit": result.returncode, "error": result.stderr.strip()[-500:]})
                print(json.dumps(rows[-1])[:600])
    return rows


def random_sample(path, heads, tokens, head_dim):
    """Normal q, k, v, [heads, tokens, d] bf16: never zeros, which run faster than data does."""
    import numpy
    import safetensors_io

    random = numpy.random.default_rng(1)

    def tensor():
        values = random.standard_normal((heads, tokens, head_dim), dtype=numpy.float32)
        return safetensors_io.Tensor("BF16", list(values.shape), (values.view(numpy.uint32) >> 16).astype("<u2").tobytes())

    safetensors_io.write(path, {name: tensor() for name in "qkv"}, {"source": "random normal"})


def step_throughput(run):
    """Dense and gated attention on random normal data, 16 heads of 16384 tokens: TFLOP/s, causal counted as half."""
    rows = []
    for head_dim in (64, 128, 256):
        heads, tokens = 16 * 128 // head_dim, 16384
        sample = run.out / "random.safetensors"
        random_sample(sample, heads, tokens, head_dim)
        runs = [("dense", None), ("alibi", None)]
        runs += [("bsfa", f"threshold={value}") for value in (-1e30, 3.8, 4.0, 4.2, 1e30)]
        for spec, param in runs:
            options = ["--param", param] if param else []
            result = run.program("lacuna", "run", ROOT / f"specs/{spec}.json", "--device", "cuda:0", "--json", "--input",
                                 sample, *options)
            row = {"spec": spec, "d": head_dim, "param": param}
            if result.returncode:
                rows.append({**row, "error": result.stderr.strip()[-300:]})
                continue
            report = json.loads(result.stdout)
            flop = 4 * heads * tokens * tokens * head_dim / (1 if spec == "dense" else 2)
            time_us = report["time_us"]
            tiles = report["tiles"]
            rows.append({**row, "gated": round(tiles["gated"] / tiles["visited"], 4), "attend_us": time_us["attend"],
                         "dense_us": time_us["dense"], "tflops": round(flop / time_us["attend"] / 1e6, 1)})
            print(json.dumps(rows[-1]), flush=True)
        sample.unlink()
    return rows


def step_prediction(run):
    """What deciding takes of a launch: `lacuna bench` at 32 heads of 32768 tokens, next to dense attention."""
    rows = []
    for spec in ("sparge", "sparge-topk", "topk-blocks", "sale", "xattention", "fg-attn-pooled", "streaming"):
        result = run.program("lacuna", "bench", ROOT / f"specs/{spec}.json", "--device", "cuda:0", "--json", "--shape",
                             "h=32,n=32768", "--seconds", "2")
        if result.returncode:
            rows.append({"spec": spec, "error": result.stderr.strip()[-300:]})
            continue
        report = json.loads(result.stdout)
        medians = {launch["name"]: launch["median_us"] for launch in report["launches"]}
        rows.append({"spec": spec, "tiles": report["tiles"], "workspace_bytes": report["workspace_bytes"], "median_us": medians,
                     "prediction_of_dense": round((medians[spec] - medians["attend"]) / medians["dense"], 4)})
        print(json.dumps(rows[-1]), flush=True)
    return rows


STEPS = {name.removeprefix("step_"): step for name, step in list(globals().items()) if name.startswith("step_")}


def machine():
    query = sh(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"])
    fields = [field.strip() for field in query.stdout.split("\n")[0].split(",")]
    return dict(zip(("gpu", "driver", "max_sm_clock", "power_limit"), fields), system=platform.platform())


def run(args):
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    record = {"date": time.strftime("%Y-%m-%d"), **machine(), **json.loads((CARRY / "trees.json").read_text()), "steps": {}}
    state = Run(out)
    for name in args.steps or STEPS:
        begin = time.monotonic()
        print(f"== {name}: {STEPS[name].__doc__}", flush=True)
        try:
            result = STEPS[name](state)
        except (OSError, ValueError, KeyError) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        record["steps"][name] = {"seconds": round(time.monotonic() - begin, 1), "result": result}
        (out / "gpu-record.json").write_text(json.dumps(record, indent=1) + "\n")
        if name not in ("specs", "throughput", "prediction"):
            print(json.dumps(result)[:1500], flush=True)
    shutil.rmtree(out / "cache", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    packing = verbs.add_parser("pack", help="stage .carry/")
    packing.add_argument("--build", default=str(ROOT / "build/bench"))
    packing.add_argument("--sample", nargs="*", default=[], help="samples and their thresholds to take along")
    packing.set_defaults(call=pack)
    running = verbs.add_parser("run", help="test and measure on this machine's GPU")
    running.add_argument("--out", default=os.environ.get("OUT", str(ROOT / "build/gpu-check")))
    running.add_argument("steps", nargs="*", metavar="STEP", help=f"default: all of {', '.join(STEPS)}")
    running.set_defaults(call=run)
    args = parser.parse_args()
    if unknown := set(getattr(args, "steps", [])) - set(STEPS):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    args.call(args)


if __name__ == "__main__":
    sys.exit(main())
