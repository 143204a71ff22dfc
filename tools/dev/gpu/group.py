"""Several GPUs: `lacuna bench --gpus` against one GPU, PyTorch's own ways, a rank that is killed, and the Python module."""

import importlib.util
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

from .machine import CARRY, ROOT, SPECS, keep, sh, sh_lines

CAUSAL = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'
RATIO = ("--param", "ratio=0.25")


class Point(NamedTuple):
    """One `lacuna bench --gpus`, head dim 128, bf16; the least efficiency that is asked of two and of four GPUs (None: none)."""
    spec: str
    tokens: int
    layout: str
    options: tuple = ()
    of_two: float | None = None
    of_four: float | None = None
    heads: str = "32:8"  # query heads and KV heads

    def name(self):
        return " ".join(["table", self.spec, str(self.tokens), self.layout, *([] if self.heads == "32:8" else [self.heads]), *self.options[1::2]])


POINTS = [Point("causal", 32768, "striped", of_two=0.92), Point("causal", 32768, "contiguous", of_two=0.92),
          Point("causal", 8192, "contiguous", heads="40:40"),
          Point("causal", 32768, "contiguous", ("--scheme", "rows"), heads="40:40"), Point("causal", 32768, "contiguous", ("--scheme", "heads")),
          Point("sparge-topk", 32768, "striped", RATIO, of_two=0.70), Point("cascade", 32768, "contiguous", of_two=0.70)]
LONG_POINTS = [Point("causal", 131072, "striped", of_two=0.97, of_four=0.95), Point("causal", 131072, "contiguous", of_two=0.97, of_four=0.95),
               Point("sparge-topk", 131072, "striped", RATIO, of_two=0.85), Point("cascade", 131072, "contiguous", of_two=0.85),
               Point("causal", 131072, "contiguous", heads="40:40"),
               Point("causal", 32768, "contiguous", ("--exchange", "messages")), Point("causal", 32768, "heads"),
               Point("sparge-topk", 524288, "striped", RATIO), Point("cascade", 524288, "contiguous"), Point("causal", 524288, "contiguous")]
LAYER_POINTS = [("sparge-topk", "striped", RATIO), ("cascade", "contiguous", ())]
MOST_IMBALANCE, MOST_SENT = 0.03, 1.05  # as asked of two GPUs
# What messages under attention are given: multiprocessors that launches leave to it, and blocks of NCCL; -1: none, as NCCL
# decides. The first is what the default was before there was a margin.
VARIANTS = [(-1, -1), (16, 16), (8, 8), (4, 4), (16, -1), (24, 24), (32, -1)]
VARIANTS_S = 95
PLACES = ["created", "compiled", "planned", "launched", *(f"{milliseconds} ms" for milliseconds in range(5, 325, 20))]


def nccl_path():
    """libnccl of PyTorch's wheel, if it is there: the library finds others by itself."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations if spec else ()):
        if (path := Path(folder) / "nccl/lib/libnccl.so.2").exists():
            return str(path)
    return os.environ.get("LACUNA_NCCL_PATH", "")


def gpu_count():
    return len(sh(["nvidia-smi", "-L"]).stdout.strip().splitlines()) if shutil.which("nvidia-smi") else 0


class Parts:
    """The parts of the step: each says what it found in a line of its own, whatever becomes of the others."""

    def __init__(self, run):
        self.run, self.results = run, {}
        self.gpus = 2 if run.device == "cpu" else gpu_count()
        self.env = dict(run.env, LACUNA_NCCL_PATH=nccl_path(), PYTHONDONTWRITEBYTECODE="1",
                        PYTHONPATH=os.pathsep.join([str(CARRY / "python"), os.environ.get("PYTHONPATH", "")]))

    def call(self, name, words, timeout_s):
        begin = time.monotonic()
        result = sh([sys.executable, *words], timeout_s=timeout_s, env=self.env, cwd=ROOT)
        return result, {"part": name, "seconds": round(time.monotonic() - begin, 1)}

    def tokens(self, count):
        """On the CPU, where the steps are only shown, fewer."""
        return count if self.run.device != "cpu" else count // 64


def bench(parts, spec, tokens, layout, options, timeout_s, measured_s=1, heads="32:8"):
    """One `lacuna bench --gpus` as a row: times, traffic and what each rank did when."""
    run = parts.run
    path = SPECS / f"{spec}.json"
    if spec == "causal":
        path = run.out / "causal.json"
        path.write_text(CAUSAL)
    query_heads, kv_heads = heads.split(":")
    report = run.report("bench", path, "--shape", f"h={query_heads},h_kv={kv_heads},n={tokens}", "--gpus", parts.gpus, "--layout", layout,
                        "--seconds", measured_s, *options, more_env=parts.env, timeout_s=timeout_s)
    if "group" not in report:
        return report, None
    group = report["group"]
    chosen = next(row for row in group["plan"]["schemes"] if row["scheme"] == group["plan"]["scheme"])
    facts = {"scheme": chosen["scheme"], "chunks": chosen["chunks"], "launches": chosen["launches"],
             "ms": {name: [round(group[name][key] / 1e3, 3) for key in ("median_us", "low_us", "high_us", "single_us")]
                    for name in ("one", "all")},
             "planned_ms": round(chosen["total_us"] / 1e3, 3), "efficiency": round(group["efficiency"], 4),
             "sent_over_least": round(group["sent_bytes"] / max(group["least_bytes"], 1), 4), "sent_bytes": group["sent_bytes"],
             "imbalance": round(group["imbalance"], 4), "same_bits": group["same_bits"], "relative_l1": group["relative_l1"],
             "link_gb_s": round(group["plan"]["link"]["gb_per_s"], 1), "workspace_mib": round(group["workspace_bytes"] / 2**20)}
    return {**facts, "device": report["device"]}, group["trace"]


def print_trace(trace):
    """When each part of a launch began and ended on each rank, in us."""
    for number, rank in enumerate(trace if trace and trace[0] else []):
        print(f"   rank {number}: " + ", ".join(f"{what} {time_us:.0f}" for what, time_us in rank), flush=True)


def table(parts, points, timeout_s):
    rows = parts.results.setdefault("table", [])
    for point in points:
        if not parts.run.wants(point.name()):
            continue
        bar = {2: point.of_two, 4: point.of_four}.get(parts.gpus)
        row, trace = bench(parts, point.spec, parts.tokens(point.tokens), point.layout, point.options, timeout_s, heads=point.heads)
        if trace is not None:
            row["good"] = (bar is None or row["efficiency"] >= bar) and row["sent_over_least"] <= MOST_SENT
        keep(rows, {"point": point.name(), "bar": bar, **row})
        print_trace(trace)
        row["trace"] = trace


def variants(parts, timeout_s):
    """A row for each of VARIANTS, contiguous shards first, as many as VARIANTS_S allow; the default has the point's bar."""
    rows, end = parts.results.setdefault("variants", []), time.monotonic() + VARIANTS_S
    for layout in ("contiguous", "striped"):
        for margin, ctas in VARIANTS:
            point = f"variants causal 32768 {layout} margin {margin} ctas {ctas}"
            if not parts.run.wants(point):
                continue
            seconds = end - time.monotonic()
            if seconds < 5:
                print(f"   left out after {VARIANTS_S} s: {point}", flush=True)
                continue
            row, trace = bench(parts, "causal", parts.tokens(32768), layout, ("--exchange", "messages", "--sm-margin", margin, "--max-ctas", ctas),
                               min(seconds, timeout_s), measured_s=0.3)
            row["good"] = "efficiency" in row
            keep(rows, {"point": point, **row})
            print_trace(trace)
            row["trace"] = trace
    print("   layout      margin  CTAs  efficiency  group ms  one ms  GB/s of link", flush=True)
    for row in rows:
        if "efficiency" in row:
            _, _, _, layout, _, margin, _, ctas = row["point"].split()
            print(f"   {layout:11} {margin:>6}  {ctas:>4}  {row['efficiency']:10.3f}  {row['ms']['all'][0]:8.3f}  {row['ms']['one'][0]:6.3f}"
                  f"  {row['link_gb_s']:12.0f}", flush=True)


def imbalance(parts, timeout_s):
    """Work dealt by the tiles that a layer's own queries and keys visit."""
    rows = parts.results.setdefault("layer", [])
    for sample in parts.run.samples[-1:]:
        tokens = int(sample.stem.rsplit("-", 1)[-1].removesuffix("k")) * 1024
        for spec, layout, options in LAYER_POINTS:
            for scheme in ("auto", "rows", "heads"):
                point = f"layer {spec} {layout} {scheme}"
                if not parts.run.wants(point):
                    continue
                row, _ = bench(parts, spec, tokens, layout, (*options, "--values", str(sample), "--scheme", scheme), timeout_s)
                row["good"] = row.get("imbalance", 1) <= MOST_IMBALANCE or "no such scheme" in row.get("error", "")
                keep(rows, {"point": point, "sample": sample.name, **row})


def peers(parts, timeout_s):
    """runtime/examples/context_parallel.py: PyTorch's gathered keys and its context parallel in the same run."""
    rows = parts.results.setdefault("peers", [])
    for name, options in (("peers causal 32768", ()), ("peers sparge-topk 32768", ("--spec", "sparge-topk", "--param", "ratio=0.25"))):
        if not parts.run.wants(name):
            continue
        start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(parts.gpus)]
        words = [*start, "runtime/examples/context_parallel.py", *options, "--json", "--tokens", str(parts.tokens(32768))]
        if parts.run.device == "cpu":
            words = words[len(start):] + ["--backend", "loopback", "--heads", "4", "--heads-kv", "2", "--repeats", "2"]
        result, row = parts.call(name, words, timeout_s)
        try:
            report = json.loads(result.stdout.strip().splitlines()[-1])
            times = report["time_ms"]
            row |= {"time_ms": times, "rel_l1": report["rel_l1"], "exit": result.returncode,
                    "good": result.returncode == 0 and all(times["group"] < times[peer] for peer in times if peer != "group")}
            row["said"] = [line for line in result.stdout.splitlines() if "context parallel:" in line]
        except (ValueError, IndexError, KeyError):
            row |= {"exit": result.returncode, "good": False, "error": (result.stdout + result.stderr)[-700:]}
        keep(rows, row)


def drill(parts, timeout_s):
    """Kills rank 1 in 20 places; the other ranks have to end with an error within 10 s."""
    places = [place for place in PLACES if parts.run.wants(f"drill {place}")]
    if parts.run.device == "cpu" or not places:
        return
    rows = parts.results.setdefault("drill", [])

    def take(line):
        if not line.startswith("{"):
            return False
        row = json.loads(line)
        keep(rows, {"part": f"drill {row['place']}", **row})
        return True

    begin = time.monotonic()
    result = sh_lines([sys.executable, "-u", "tools/dev/gpu/group_drill.py", parts.run.out, parts.gpus, *places], take, timeout_s, env=parts.env, cwd=ROOT)
    whole = {"part": "drill", "seconds": round(time.monotonic() - begin, 1)}
    missing = [place for place in places if place not in {row.get("place") for row in rows}]
    keep(rows, {**whole, "good": not missing, **({"missing": missing, "error": result.stdout[-700:]} if missing else {})})


def python_tests(parts, timeout_s):
    if not parts.run.wants("tests"):
        return
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfs", "runtime/python/tests/test_group.py",
             "runtime/python/tests/test_torch_group.py"]
    result, row = parts.call("tests", words, timeout_s)
    lines = result.stdout.strip().splitlines()
    row |= {"exit": result.returncode, "good": result.returncode == 0, "said": lines[-1] if lines else result.stderr[-300:]}
    keep(parts.results.setdefault("tests", []), row)
    if result.returncode:
        print((result.stdout + result.stderr)[-4000:], flush=True)


def step_group(run):
    """On all GPUs of this machine: efficiency, bytes, what each rank does when; PyTorch's ways; a rank that is killed in
    20 places; balance on a layer; the tests of the Python module. Parts for --only: table, variants, peers, drill, layer, tests."""
    parts = Parts(run)
    if parts.gpus < 2:
        return {"skipped": "one GPU"}
    variants(parts, 30)
    table(parts, POINTS, 60)
    peers(parts, 60)
    drill(parts, 100)
    imbalance(parts, 40)
    python_tests(parts, 120)
    table(parts, LONG_POINTS, 150)
    rows = [row for part in parts.results.values() for row in part]
    failed = [row.get("point") or row["part"] for row in rows if row.get("good") is not True]
    print(f"group: {len(rows) - len(failed)} of {len(rows)} as asked" + "".join(f"\n  not: {name}" for name in failed), flush=True)
    return {"good": len(rows) - len(failed), "of": len(rows), "not": failed, **parts.results}
