#!/usr/bin/env python3
"""Lacuna next to cuDNN's attention and FlexAttention in one PyTorch process.

  tools/dev/peers.py
  tools/dev/peers.py --points dense:d=128,n=4096,causal=1 lists:n=16384,k=64,density=0.25 gate
  tools/dev/peers.py --points lists --seconds 3 --mma --json lists.json
  tools/dev/peers.py --points quantised topk --templates changed=templates --templates before=../other/templates

A GPU at its power limit slows down with time and with whatever ran before. So the launches of a point's subjects take
turns one by one, sustained for --seconds, and only their ratios count; clock and power are sampled meanwhile. A bar that is a
rate or a time of its own is held against ours alone ("alone"), sustained as long: beside dense attention, which takes ten times
as long as a tenth of its tiles, it would be the heat of the other that is measured. 32 heads (split: 8), bf16, random normal
values, 16384 tokens in all (n, where that is more). TFLOP/s count 4 * d for each pair of tokens (of the kept tiles, for lists),
half of it with a causal mask. --values takes other value sets, real tensors first; then the same kernel on random normal values takes
turns too ("noise"). Each point is checked once: against cuDNN's output, or against plain attention of some work
tiles, of those tiles that were kept.

Points:
  dense:d=,n=,causal=
  lists:n=,k=,density=       random tiles of 128 x k
  gate:n=,spec=,gated=       bsfa or skip-softmax, threshold chosen for that share; 0: one that leaves out next to nothing
  quantised:n=,k=,density=   the same tiles with int8 queries and keys and e4m3 values: attention alone
  columns:n=,density=        keys gathered one by one for 128 queries: attention alone
  topk:n=,ratio=,causal=     SpargeAttn's top-k, from the tensors to O
  selection:n=               what SALE takes to choose its tiles
  formula:n=,name=           a score formula or a mask of single tokens: alibi, softcap, factor, table, document, window
  split:n=,n_q=              n_q queries of n keys; 16, 8 or 4 blocks share a work tile, or one has it ("whole")
or one of these words alone: its preset. Needs the Python module (runtime/python, or what gpu_check.py packed), PyTorch, a Hopper GPU
for cuDNN's best, and NVRTC.
"""
import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import threading
import time

from gpu.machine import load_lacuna
from gpu.points import PRESETS, bar_text, is_absolute, is_reached, on_values, parse_points
from gpu.sensors import Sensors
from gpu.subjects import SET_UP, Problem, Subject, compare

LEAST_ROUNDS = 5
POINT_LIMIT_S = 75  # FlexAttention compiles for some of it


def interleave(torch, subjects, seconds):
    """Microseconds of every launch; never more than two rounds queued, never none. Each round is in an order of its own: what
    follows a hot kernel meets a lower clock, up to a seventh of its time, and in a fixed order that would always be the same."""
    rounds, order = [], random.Random(1)
    begin = time.monotonic()
    while len(rounds) < LEAST_ROUNDS or time.monotonic() - begin < seconds:
        names = order.sample(list(subjects), len(subjects))
        rounds.append({name: subjects[name].enqueue(torch) for name in names})
        if len(rounds) > 1:
            list(rounds[-2].values())[-1][-1].synchronize()
    torch.cuda.synchronize()
    return {name: [subject.time_us(events[name]) for events in rounds] for name, subject in subjects.items()}


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


def largest_error(problem, error):
    """That of our output, and how far those of other device headers are from it."""
    errors = [error, *(compare(problem, name, "lacuna") for name in problem.engines if name != "lacuna")]
    return None if None in errors else max(errors)


def sustain(torch, subjects, sensors, seconds):
    """What interleave returns, and clock and power meanwhile."""
    interleave(torch, subjects, seconds / 3)  # to the temperature and the clock of the work itself
    sensors.begin()
    return interleave(torch, subjects, seconds), sensors.end()


def measure_alone(torch, subject, sensors, seconds):
    times_us, state = sustain(torch, {"alone": subject}, sensors, seconds)
    median_us = statistics.median(times_us["alone"])
    return {"median_us": round(median_us, 2), "tflops": round(subject.work / median_us / 1e6, 1), **state}


def measure(torch, engines, sensors, point, options):
    problem, seconds = Problem(torch, engines, point, options.mma), options.seconds
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        error = largest_error(problem, SET_UP[point.kind](problem))
        problem.outputs.clear()
        times_us, state = sustain(torch, problem.subjects, sensors, seconds)
    work = {name: subject.work for name, subject in problem.subjects.items()}
    rates = {name: work[name] / statistics.median(times) / 1e6 for name, times in times_us.items()}
    row = {"point": str(point), "median_us": {name: round(statistics.median(times), 2) for name, times in times_us.items()},
           "rounds": len(times_us["lacuna"]), "tflops": {name: round(rate, 1) for name, rate in rates.items()},
           "rel_l1": error, "is_right": error is not None and error < point.tolerance, **state}
    own = times_us["lacuna"]
    row["ratio"] = {name: round(statistics.median(b / a for a, b in zip(own, times)) * work["lacuna"] / work[name], 4)
                    for name, times in times_us.items() if name != "lacuna"}
    if is_absolute(point.bar):
        row["alone"] = measure_alone(torch, problem.subjects["lacuna"], sensors, seconds)
    reached = is_reached(point.bar, row)
    if reached is not None:
        row["bar"] = {**point.bar, "reached": reached}
    if problem.fp64_errors:
        row["fp64_rel_l1"] = problem.fp64_errors
    if problem.errors:
        row["errors"] = problem.errors
    return row


def gemm_tflops(torch, seconds):
    """What the chip gives a bf16 product of 8192 x 8192 random normal values, sustained."""
    a, b = (torch.randn((8192, 8192), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    gemm = Subject(lambda: torch.matmul(a, b, out=out), 2 * 8192 ** 3)
    times = interleave(torch, {"gemm": gemm}, seconds)["gemm"]
    return round(gemm.work / statistics.median(times) / 1e6, 1)


def columns_of(engines):
    return (*engines, "mma", "noise", "dense", "ungated", "cudnn", "flex")


def print_head(columns):
    print(f"{'point':44}" + "".join(f"{name:>9}" for name in columns) + "  of GEMM   MHz     W  rel. L1  ratio", flush=True)


def print_row(row, columns, gemm):
    def cell(value, width, digits):
        return f"{value:{width}.{digits}f}" if value is not None else "-".rjust(width)

    rates = row.get("tflops", {})
    text = f"{row['point']:44}" + "".join(cell(rates.get(name), 9, 1) for name in columns)
    own = rates.get("lacuna")
    text += cell(own / gemm if own else None, 9, 2) + cell(row.get("clock_mhz"), 6, 0) + cell(row.get("power_w"), 6, 0)
    text += f"{row['rel_l1']:9.1e}" if row.get("rel_l1") is not None else "-".rjust(9)
    text += "  " + ", ".join(f"{ratio:.3f} x {name}" for name, ratio in row.get("ratio", {}).items())
    if alone := row.get("alone"):
        text += f", alone {alone['tflops']:.1f} TFLOP/s, {alone['median_us'] / 1e3:.2f} ms"
        text += f" ({alone['clock_mhz']} MHz, {alone['power_w']} W)" if "clock_mhz" in alone else ""
    if bar := row.get("bar"):
        text += f"  [{bar_text(bar)}: {'reached' if bar['reached'] else 'missed'}]"
    if errors := row.get("fp64_rel_l1"):
        text += "\n    against fp64: " + ", ".join(f"{name} {error:.2e}" for name, error in errors.items())
    for name, error in row.get("errors", {}).items():
        text += f"\n    {name}: {error.splitlines()[0]}"
    print(text, flush=True)


def named_folder(text):
    """NAME=DIR"""
    name, _, folder = text.partition("=")
    if not name or not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"expected NAME=DIR with a folder of device headers, got {text}")
    return name, folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", nargs="+", default=list(PRESETS), metavar="POINT", help="presets or points (all presets)")
    parser.add_argument("--values", nargs="+", default=["normal"], metavar="SET",
                        help="normal, normal*S, sink, rising, falling or FILE.safetensors (normal); gpu/values.py says what they are")
    parser.add_argument("--dtype", nargs="+", default=["bf16"], metavar="TYPE", help="bf16, f16 (bf16)")
    parser.add_argument("--templates", action="append", type=named_folder, default=[], metavar="NAME=DIR",
                        help="beside ours the same specs on device headers of a folder; may be repeated")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long to measure each point (1.5)")
    parser.add_argument("--mma", action="store_true", help="beside it our portable family, where the planner took another")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was measured")
    options = parser.parse_args()
    points = on_values(parse_points(options.points), options.values, options.dtype)

    lacuna = load_lacuna()
    import torch

    torch._dynamo.config.recompile_limit = 64  # a shape of blocks each
    engines = {"lacuna": lacuna.Engine("cuda:0"),
               **{name: lacuna.Engine("cuda:0", template_path=folder) for name, folder in options.templates}}
    engine, columns = engines["lacuna"], columns_of(engines)
    gemm = gemm_tflops(torch, options.seconds)
    document = {"gpu": engine.device_name, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                "seconds": options.seconds, "gemm_tflops": gemm, "points": []}
    print(f"{engine.device_name}, PyTorch {torch.__version__}, cuDNN {document['cudnn']}; bf16 GEMM 8192^3: {gemm} TFLOP/s")
    print_head(columns)
    with Sensors() as sensors:
        for point in points:
            try:
                with limited(point):
                    row = measure(torch, engines, sensors, point, options)
            except (lacuna.Error, RuntimeError, KeyError) as error:
                row = {"point": str(point), "tflops": {}, "is_right": False,
                       "errors": {"point": f"{type(error).__name__}: {error}"[:600]}}
            document["points"].append(row)
            print_row(row, columns, gemm)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump(document, file, indent=1)
    # Wrong numbers fail the run; a bar that is missed does not.
    return 0 if all(row["is_right"] for row in document["points"]) else 1


if __name__ == "__main__":
    sys.exit(main())
