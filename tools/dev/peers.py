#!/usr/bin/env python3
"""Lacuna next to cuDNN's attention and FlexAttention in one PyTorch process.

  tools/dev/peers.py --library build/bench/bin/liblacuna.so
  tools/dev/peers.py --points dense:d=128,n=4096,causal=1 lists:n=16384,k=64,density=0.25 gate
  tools/dev/peers.py --points lists --seconds 3 --mma --json lists.json

A GPU at its power limit slows down with time and with whatever ran before. So the launches of a point's subjects take
turns one by one, sustained for --seconds, and only their ratios count; clock and power are sampled meanwhile. 32 heads,
bf16, random normal values, 16384 tokens in all (32768 at n = 32768). TFLOP/s count 4 * d for each pair of tokens (of the
kept tiles, for lists), half of it with a causal mask. Each point is checked once: against cuDNN's output, or, for lists,
against plain attention of some rows of tiles and FlexAttention's.

Points: dense:d=,n=,causal=  lists:n=,k=,density= (random tiles of 128 x k)  gate:n=,gated= (block-sparse flash attention,
threshold chosen for that share). Presets: dense, lists, gate. Needs PyTorch, a Hopper GPU for cuDNN's best, and NVRTC.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import statistics
import sys
import threading
import time

import lacuna_abi
from gpu.machine import CARRY, SPECS
from gpu.sensors import Sensors

HEADS, TOKENS = 32, 16384
TOLERANCE = 1e-2  # sum |difference| / sum |reference|, both in bf16
CAUSAL = "k <= q + n_k - n_q"
LEAST_ROUNDS = 5
POINT_LIMIT_S = 75  # FlexAttention compiles for some of it


@dataclasses.dataclass(frozen=True)
class Point:
    kind: str  # dense, lists, gate
    d: int = 128
    n: int = TOKENS
    causal: int = 0
    k: int = 128  # keys of a listed tile
    density: float = 0.5
    gated: float = 0.75

    FIELDS = {"dense": ("d", "n", "causal"), "lists": ("d", "n", "k", "density"), "gate": ("d", "n", "gated")}

    def __str__(self):
        return f"{self.kind}:" + ",".join(f"{name}={getattr(self, name)}" for name in self.FIELDS[self.kind])

    @property
    def batch(self):
        return max(1, TOKENS // self.n)

    @property
    def bar(self):
        """What the ratio has to reach, and against which subject."""
        if self.kind == "gate":
            return "dense", 1.35
        if self.kind == "lists":
            bars = {128: {0.5: 0.95, 0.25: 0.92, 0.1: 0.85}, 64: {0.5: 0.90, 0.25: 0.88, 0.1: 0.80}}
            return "dense", bars.get(self.k, {}).get(self.density)
        return "cudnn", (1.18 if self.causal else 1.08) if self.d == 128 else 1.0


LONG = (8192, 16384, 32768)
PRESETS = {
    "dense": [Point("dense", d, n, causal) for d, lengths in ((128, (4096, *LONG)), (64, LONG), (256, LONG))
              for n in lengths for causal in (0, 1)],
    "lists": [Point("lists", n=n, k=k, density=density) for k in (128, 64) for n in (16384, 32768)
              for density in (0.5, 0.25, 0.1)],
    "gate": [Point("gate")],
}


def parse_points(words):
    points = []
    for word in words:
        kind, _, fields = word.partition(":")
        if kind not in Point.FIELDS:
            raise SystemExit(f"--points: expected one of {', '.join(Point.FIELDS)}, got {word}")
        given = dict(field.partition("=")[::2] for field in fields.split(",") if field)
        if unknown := set(given) - set(Point.FIELDS[kind]):
            raise SystemExit(f"--points {word}: {kind} takes {', '.join(Point.FIELDS[kind])}, got {', '.join(sorted(unknown))}")
        try:
            values = {name: (float if name in ("density", "gated") else int)(value) for name, value in given.items()}
        except ValueError as error:
            raise SystemExit(f"--points {word}: {error}") from None
        points += [Point(kind, **values)] if given else PRESETS[kind]
    return points


@contextlib.contextmanager
def only_family(name):
    """What is compiled within has this family of attend, whatever the planner would choose; None: the planner's."""
    if name:
        os.environ["LACUNA_ATTEND_FAMILY"] = name
    try:
        yield
    finally:
        if name:
            del os.environ["LACUNA_ATTEND_FAMILY"]


class Problem:
    """Tensors of a point, and a way to launch each subject on them: subjects is name -> function, work is name -> FLOP."""

    def __init__(self, torch, engine, point, with_mma):
        self.torch, self.engine, self.point, self.with_mma = torch, engine, point, with_mma
        torch.manual_seed(1)
        size = (point.batch, HEADS, point.n, point.d)
        self.q, self.k, self.v = (torch.randn(size, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
        self.subjects, self.work, self.outputs, self.errors = {}, {}, {}, {}

    def flop(self, causal=False):
        point = self.point
        return 4 * point.batch * HEADS * point.n * point.n * point.d / (2 if causal else 1)

    def add(self, name, launch, work):
        """Takes a subject in if its first launch succeeds, as ours must; keeps that launch's output."""
        try:
            self.outputs[name] = launch()
            self.torch.cuda.synchronize()
        except lacuna_abi.LacunaError:
            raise
        except Exception as error:  # a peer that cannot do a point is a gap in the table, no more
            self.errors[name] = f"{type(error).__name__}: {error}"[:600]
            return
        self.subjects[name], self.work[name] = launch, work

    def view(self, tensor, dtype="bf16"):
        return lacuna_abi.tensor(tensor.data_ptr(), tensor.shape, tensor.stride(), dtype)

    def lacuna(self, spec, params=(), family=None, **more):
        """A function that launches a spec and returns its output; `more` are further tensors of i32."""
        torch, point = self.torch, self.point
        with only_family(family):
            kernel = self.engine.compile(json.dumps(spec), point.d, (point.batch, HEADS, HEADS, point.n, point.n))
        o = torch.full_like(self.q, float("nan"))
        workspace = torch.empty(kernel.workspace_bytes, dtype=torch.uint8, device="cuda") if kernel.workspace_bytes else None
        args = kernel.bind(torch.cuda.current_stream().cuda_stream, params,
                           workspace.data_ptr() if workspace is not None else None,
                           q=self.view(self.q), k=self.view(self.k), v=self.view(self.v), o=self.view(o),
                           **{name: self.view(tensor, "i32") for name, tensor in more.items()})
        owned = (o, workspace, more)

        def launch():
            kernel.launch(args)
            return owned[0]

        return launch

    def add_lacuna(self, work, spec, params=(), **more):
        """The subject of the point, and beside it the same on the portable family."""
        self.add("lacuna", self.lacuna(spec, params, **more), work)
        if self.with_mma:
            self.add("mma", self.lacuna(spec, params, family="mma", **more), work)

    def cudnn(self, causal):
        def launch():
            return self.torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=bool(causal))
        return launch


def dense_spec(causal):
    return {"version": 1, "name": "dense", **({"attention": {"mask": CAUSAL}} if causal else {})}


def shipped_spec(name, **changes):
    return {**json.loads((SPECS / f"{name}.json").read_text()), **changes}


def relative_l1(got, expected):
    return float((got.float() - expected.float()).abs().sum() / expected.float().abs().sum())


def compare(problem, name, reference):
    """Relative L1 error of one subject's output against another's; None if one of them has none."""
    outputs = problem.outputs
    return relative_l1(outputs[name], outputs[reference]) if name in outputs and reference in outputs else None


def set_up_dense(problem):
    point = problem.point
    work = problem.flop(point.causal)
    problem.add_lacuna(work, dense_spec(point.causal))
    problem.add("cudnn", problem.cudnn(point.causal), work)
    return compare(problem, "lacuna", "cudnn")


def set_up_gate(problem):
    """Causal attention whose tiles fall out by their largest logit; rates count all causal work: their ratios are of time."""
    torch, point = problem.torch, problem.point
    spec, work = shipped_spec("bsfa"), problem.flop(causal=True)
    counts = torch.empty((point.batch, HEADS, -(-point.n // spec["tile"]["q"]), 3), dtype=torch.int32, device="cuda")

    def gated_share(threshold):
        problem.lacuna(spec, [("threshold", threshold)], counts=counts)()
        _, visited, gated = counts.sum((0, 1, 2)).tolist()
        return gated / visited

    low, high = 0.0, 10.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if gated_share(middle) < point.gated else (low, middle)
    problem.add_lacuna(work, spec, [("threshold", high)])
    problem.add("ungated", problem.lacuna(spec, [("threshold", -1e30)]), work)
    problem.add("dense", problem.lacuna(dense_spec(True)), work)
    problem.add("cudnn", problem.cudnn(True), work)
    return compare(problem, "ungated", "cudnn")


def some_rows_error(problem, mask, tile_q, tile_k):
    """Relative L1 error of the listed output, over the first, a middle and the last row of tiles of two heads."""
    torch, point = problem.torch, problem.point
    rows = mask.shape[2]
    got, expected = [], []
    for head in (0, HEADS - 1):
        for row in sorted({0, rows // 2, rows - 1}):
            tokens = slice(row * tile_q, (row + 1) * tile_q)
            scores = problem.q[0, head, tokens].float() @ problem.k[0, head].float().T * point.d ** -0.5
            kept = mask[0, head, row].repeat_interleave(tile_k)
            weights = torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1)
            expected.append(weights @ problem.v[0, head].float())
            got.append(problem.outputs["lacuna"][0, head, tokens])
    return relative_l1(torch.cat(got), torch.cat(expected))


def set_up_lists(problem):
    torch, point = problem.torch, problem.point
    spec = shipped_spec("external-mask", tile={"q": 128, "k": point.k})
    tile_q, rows, columns = 128, point.n // 128, point.n // point.k
    mask = torch.rand((point.batch, HEADS, rows, columns), device="cuda") < point.density
    mask[..., 0] |= ~mask.any(-1)  # no row without a tile
    indices = torch.argsort(mask.logical_not().to(torch.uint8), dim=-1, stable=True).to(torch.int32)
    counts = mask.sum(-1, dtype=torch.int32)
    work = problem.flop() * float(counts.sum()) / mask.numel()
    problem.add_lacuna(work, spec, list_indices=indices, list_counts=counts)
    problem.add("dense", problem.lacuna(dense_spec(False)), problem.flop())
    problem.add("flex", flex_attention(problem, indices, counts, (tile_q, point.k)), work)
    return max(some_rows_error(problem, mask, tile_q, point.k), compare(problem, "lacuna", "flex") or 0)


def flex_attention(problem, indices, counts, block_size):
    """FlexAttention, compiled, on the same tiles: all of them whole, so that no mask function runs."""
    torch = problem.torch
    from torch.nn.attention import flex_attention as flex

    none = torch.zeros_like(counts)
    blocks = flex.BlockMask.from_kv_blocks(none, torch.zeros_like(indices), counts, indices, BLOCK_SIZE=block_size)
    compiled = torch.compile(flex.flex_attention, dynamic=False)

    def launch():
        return compiled(problem.q, problem.k, problem.v, block_mask=blocks)

    return launch


SET_UP = {"dense": set_up_dense, "lists": set_up_lists, "gate": set_up_gate}


def interleave(torch, subjects, seconds):
    """Microseconds of every launch, subject by subject in turn; never more than two rounds queued, never none."""
    def queue_round():
        events = []
        for launch in subjects.values():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            launch()
            end.record()
            events.append((begin, end))
        return events

    rounds = []
    begin = time.monotonic()
    while len(rounds) < LEAST_ROUNDS or time.monotonic() - begin < seconds:
        rounds.append(queue_round())
        if len(rounds) > 1:
            rounds[-2][-1][1].synchronize()
    torch.cuda.synchronize()
    return {name: [events[x][0].elapsed_time(events[x][1]) * 1e3 for events in rounds] for x, name in enumerate(subjects)}


@contextlib.contextmanager
def limited(point):
    """Ends the process when a point takes too long: nothing in it can wait for a GPU that hangs and then go on."""
    def give_up():
        print(f"{point}: no end within {POINT_LIMIT_S} s, given up", flush=True)
        os._exit(124)

    timer = threading.Timer(POINT_LIMIT_S, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def measure(torch, engine, sensors, point, options):
    problem, seconds = Problem(torch, engine, point, options.mma), options.seconds
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        error = SET_UP[point.kind](problem)
        problem.outputs.clear()
        interleave(torch, problem.subjects, seconds / 3)  # to the temperature and the clock of the work itself
        sensors.begin()
        times_us = interleave(torch, problem.subjects, seconds)
        state = sensors.end()
    rates = {name: problem.work[name] / statistics.median(times) / 1e6 for name, times in times_us.items()}
    row = {"point": str(point), "median_us": {name: round(statistics.median(times), 2) for name, times in times_us.items()},
           "rounds": len(times_us["lacuna"]), "tflops": {name: round(rate, 1) for name, rate in rates.items()},
           "rel_l1": error, **state}
    own, work = times_us["lacuna"], problem.work
    row["ratio"] = {name: round(statistics.median(b / a for a, b in zip(own, times)) * work["lacuna"] / work[name], 4)
                    for name, times in times_us.items() if name != "lacuna"}
    against, least = point.bar
    if least and against in row["ratio"]:
        row["bar"] = {"against": against, "at_least": least, "reached": row["ratio"][against] >= least}
    if problem.errors:
        row["errors"] = problem.errors
    return row


def gemm_tflops(torch, seconds):
    """What the chip gives a bf16 product of 8192 x 8192 random normal values, sustained."""
    a, b = (torch.randn((8192, 8192), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    times = interleave(torch, {"gemm": lambda: torch.matmul(a, b, out=out)}, seconds)["gemm"]
    return round(2 * 8192 ** 3 / statistics.median(times) / 1e6, 1)


COLUMNS = ("lacuna", "mma", "dense", "ungated", "cudnn", "flex")
HEAD = f"{'point':40}" + "".join(f"{name:>9}" for name in COLUMNS) + "  of GEMM   MHz     W  rel. L1  ratio"


def print_row(row, gemm):
    def cell(value, width, digits):
        return f"{value:{width}.{digits}f}" if value is not None else "-".rjust(width)

    rates = row.get("tflops", {})
    text = f"{row['point']:40}" + "".join(cell(rates.get(name), 9, 1) for name in COLUMNS)
    own = rates.get("lacuna")
    text += cell(own / gemm if own else None, 9, 2) + cell(row.get("clock_mhz"), 6, 0) + cell(row.get("power_w"), 6, 0)
    text += f"{row['rel_l1']:9.1e}" if row.get("rel_l1") is not None else "-".rjust(9)
    text += "  " + ", ".join(f"{ratio:.3f} x {name}" for name, ratio in row.get("ratio", {}).items())
    if bar := row.get("bar"):
        text += f"  [{bar['at_least']} x {bar['against']}: {'reached' if bar['reached'] else 'missed'}]"
    for name, error in row.get("errors", {}).items():
        text += f"\n    {name}: {error.splitlines()[0]}"
    print(text, flush=True)


def is_right(row):
    """Wrong numbers fail the run; a bar that is missed does not."""
    return row.get("rel_l1") is not None and row["rel_l1"] < TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=str(CARRY / "bin/liblacuna.so"), help="liblacuna.so (.carry/bin/liblacuna.so)")
    parser.add_argument("--points", nargs="+", default=list(PRESETS), metavar="POINT", help="presets or points (all presets)")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long to measure each point (1.5)")
    parser.add_argument("--mma", action="store_true", help="beside it our portable family, where the planner took another")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was measured")
    options = parser.parse_args()
    points = parse_points(options.points)

    import torch

    torch._dynamo.config.recompile_limit = 64  # a shape of blocks each
    engine = lacuna_abi.Engine(os.path.abspath(options.library), "cuda:0")
    gemm = gemm_tflops(torch, options.seconds)
    document = {"gpu": engine.device_name, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                "seconds": options.seconds, "gemm_tflops": gemm, "points": []}
    print(f"{engine.device_name}, PyTorch {torch.__version__}, cuDNN {document['cudnn']}; bf16 GEMM 8192^3: {gemm} TFLOP/s")
    print(HEAD, flush=True)
    with Sensors() as sensors:
        for point in points:
            try:
                with limited(point):
                    row = measure(torch, engine, sensors, point, options)
            except (lacuna_abi.LacunaError, RuntimeError, KeyError) as error:
                row = {"point": str(point), "tflops": {}, "errors": {"point": f"{type(error).__name__}: {error}"[:600]}}
            document["points"].append(row)
            print_row(row, gemm)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump(document, file, indent=1)
    return 0 if all(map(is_right, document["points"])) else 1


if __name__ == "__main__":
    sys.exit(main())
