"""Steps that measure launches: start, the specs on samples, throughput, prediction, memory."""

import json
import shutil

import safetensors_io
from gpu.machine import CARRY, SPECS, keep, pick

RUN_FIELDS = ("device_name", "target", "dtype", "shape", "tile", "tiles", "error", "time_us", "workspace_bytes", "selection_bytes")
# These ask for a mask or an order of the caller's.
NEED_MORE = ("external-mask", "sparge-video")


def step_startup(run):
    """From process start to the first launch, cold and warm cache; cost of one launch."""
    shutil.rmtree(run.out / "cache", ignore_errors=True)
    rows = []
    for temperature in ("cold", "warm", "warm"):
        result = run.program("startup_bench", SPECS / "bsfa.json")
        if result.returncode:
            return {"error": result.stderr.strip()}
        keep(rows, {"cache": temperature, **json.loads(result.stdout)})
    return rows


def run_row(run, spec, sample=None, param=None):
    """`lacuna run` of a spec: what it reports about tiles, error and time, and about its attend kernel."""
    options = ["--input", sample] if sample else []
    options += ["--param", param] if param else []
    report = run.report("run", SPECS / f"{spec}.json", *options)
    row = {"spec": spec, "input": sample.name if sample else "shipped",
           "param": str(param).replace(str(CARRY / "data") + "/", "") if param else None, **pick(report, *RUN_FIELDS)}
    kernel = report.get("kernel", {})
    return row | {name: kernel[name] for name in ("registers", "spill_bytes", "smem_bytes", "compile_ms") if name in kernel}


def step_specs(run):
    """`lacuna run` of every spec on the shipped 4k sample, then of dense and bsfa on each full sample."""
    rows = []
    for path in sorted(SPECS.glob("*.json")):
        if path.stem not in ("schema", *NEED_MORE) and run.wants(path.stem):
            keep(rows, run_row(run, path.stem))
    for sample in run.samples:
        # The bar is that attend is faster than the same kernel ungated where half of the tiles are gated.
        thresholds = sorted((CARRY / "data").glob(f"{sample.stem}.bsfa-*.safetensors"))
        points = [("dense", None), ("bsfa", "threshold=-1e30"), *(("bsfa", f"threshold=@{path}") for path in thresholds)]
        ungated_us = None
        for spec, param in points:
            if not run.wants(f"{spec} {sample.stem}"):
                continue
            row = run_row(run, spec, sample, param)
            attend_us = row.get("time_us", {}).get("attend")
            ungated_us = attend_us if param == "threshold=-1e30" else ungated_us
            if spec == "bsfa" and attend_us and ungated_us:
                row |= {"gated_share": round(row["tiles"]["gated"] / row["tiles"]["visited"], 4),
                        "faster_than_ungated": round(ungated_us / attend_us, 3)}
            keep(rows, row)
    return rows


def random_sample(path, heads, tokens, head_dim):
    """Normal q, k, v, [heads, tokens, d] bf16: never zeros, which run faster than data does."""
    import numpy

    random = numpy.random.default_rng(1)

    def tensor():
        values = random.standard_normal((heads, tokens, head_dim), dtype=numpy.float32)
        return safetensors_io.Tensor("BF16", list(values.shape), (values.view(numpy.uint32) >> 16).astype("<u2").tobytes())

    safetensors_io.write(path, {name: tensor() for name in "qkv"}, {"source": "random normal"})


def step_throughput(run):
    """Dense and gated attention on random normal data, 16 heads of 16384 tokens: TFLOP/s, causal counted as half."""
    rows = []
    points = [("dense", None), ("alibi", None)]
    points += [("bsfa", f"threshold={value}") for value in (-1e30, 3.8, 4.0, 4.2, 1e30)]
    for head_dim in (64, 128, 256):
        wanted = [(spec, param) for spec, param in points if run.wants(f"{spec} d={head_dim} {param}")]
        if not wanted:
            continue
        heads, tokens = 16 * 128 // head_dim, 16384
        sample = run.out / "random.safetensors"
        random_sample(sample, heads, tokens, head_dim)
        for spec, param in wanted:
            row = run_row(run, spec, sample, param)
            brief = {"spec": spec, "d": head_dim, "param": param, **pick(row)}
            if "time_us" in row:
                flop = 4 * heads * tokens * tokens * head_dim / (1 if spec == "dense" else 2)
                attend_us, tiles = row["time_us"]["attend"], row["tiles"]
                brief |= {"gated": round(tiles["gated"] / tiles["visited"], 4), "attend_us": attend_us,
                          "dense_us": row["time_us"]["dense"], "tflops": round(flop / attend_us / 1e6, 1)}
            keep(rows, brief)
        sample.unlink()
    return rows


def bench(run, spec, shape, *options, **limits):
    """`lacuna bench`: medians by launch and by kernel, rates against GEMM, tiles, workspace; or the error."""
    report = run.report("bench", SPECS / f"{spec}.json", "--shape", shape, *options, **limits)
    row = {"spec": spec, "at": shape, **pick(report, "tiles", "workspace_bytes", "gemm_tflops")}
    for parts, name in (("launches", "median_us"), ("kernels", "kernels_us")):
        if parts in report:
            row[name] = {part["name"]: part["median_us"] for part in report[parts]}
    if "gemm_tflops" in report:
        row["of_gemm"] = {launch["name"]: round(launch["of_gemm"], 4) for launch in report["launches"]}
    return row


def decides(kernel):
    """Has this kernel no part in attention itself, nor in the order of its tokens?"""
    return kernel != "attend" and not kernel.startswith(("permute_", "unpermute"))


# Every spec that decides, and what has a way of its own: the mma family, rows of more than 512 tiles. (spec, tokens, family)
DECIDING = ("sparge", "sparge-topk", "topk-blocks", "sale", "xattention", "fg-attn-pooled", "fg-attn-cached", "streaming",
            "flexprefill", "minference-block", "minference-vertical-slash", "moba-blocks")
PREDICTIONS = [("sparge", 32768, "mma"), *((spec, 32768, None) for spec in DECIDING), ("sparge", 65536, None),
               ("xattention", 65536, None)]


def step_prediction(run):
    """What deciding takes of a launch: `lacuna bench` at 32 heads, next to dense attention of one family."""
    rows = []
    for spec, tokens, family in PREDICTIONS:
        point = spec if tokens == 32768 else f"{spec} {tokens}"
        if not run.wants(f"{point} {family}" if family else point):
            continue
        row = bench(run, spec, f"h=32,n={tokens}", "--seconds", "1",
                    more_env={"LACUNA_ATTEND_FAMILY": family} if family else None)
        if family:
            row["family"] = family
        if "median_us" in row:
            median_us = row["median_us"]
            row["prediction_of_dense"] = round((median_us[spec] - median_us["attend"]) / median_us["dense"], 4)
            if kernels_us := row.get("kernels_us"):
                decision_us = sum(time_us for kernel, time_us in kernels_us.items() if decides(kernel))
                row["decision_of_dense"] = round(decision_us / median_us["dense"], 4)
        keep(rows, row)
    return rows


def step_memory(run):
    """Workspace of long contexts, launched, next to what `explain --shape` says about each slot's part of it."""
    rows = []
    for spec, shape in (("sparge", "h=32,n=131072"), ("sale", "h=32,n=65536"), ("fg-attn-cached", "h=4,n=65536")):
        if not run.wants(f"{spec} {shape}"):
            continue
        row = bench(run, spec, shape, "--seconds", "1", timeout_s=90)
        explained = run.program("lacuna", "explain", SPECS / f"{spec}.json", "--arch", "sm_90a", "--shape",
                                shape, "--json")
        if explained.returncode == 0:
            launch = json.loads(explained.stdout)["plans"][0]["launch"]
            row |= {"explained_bytes": launch["workspace_bytes"], "explained": launch["workspace"]}
        keep(rows, row)
    return rows
