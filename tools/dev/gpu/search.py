"""Steps that search: tune against an exhaustive search of the same space, calibrate on full samples."""

import shutil
import time

from gpu.machine import SPECS, keep, pick

TUNED = [(spec, tokens) for tokens in (8192, 32768) for spec in ("dense", "sparge", "fg-attn-cached")]
BUDGET_S = 90
CALIBRATED = {"sparge": [], "sale": [], "bsfa": ["--kept", "32,64,96"], "fg-attn-cached": []}
HELD_OUT = ["--tokens", "0:8192", "--held-out", "8192:16384"]


def tune(run, cache, spec, shape, *options, **limits):
    """One `lacuna tune` with a cache of its own: what it found, or the error; and what it took."""
    begin = time.monotonic()
    report = run.report("tune", SPECS / f"{spec}.json", "--shape", shape, *options,
                        more_env={"LACUNA_CACHE_DIR": str(run.out / cache)}, **limits)
    found = report["tunings"][0] if report.get("tunings") else report
    return {**found, "wall_s": round(time.monotonic() - begin, 1)}


def medians(found):
    """Configuration -> microseconds, of those that passed."""
    return {point["config"]: point["median_us"] for point in found.get("measured", []) if point["status"] == "ok"}


def tune_row(run, spec, tokens):
    """The winner of a budgeted search, from nothing, against the best of all, both as the exhaustive search timed them."""
    shape = f"h=8,n={tokens}"
    found = tune(run, "cache-tune", spec, shape, "--budget", f"{BUDGET_S}s", timeout_s=BUDGET_S + 45)
    again = tune(run, "cache-tune", spec, shape, "--budget", f"{BUDGET_S}s")
    everything = tune(run, "cache-exhaustive", spec, shape, "--exhaustive", timeout_s=240)
    row = {"spec": spec, "at": shape, **pick(found, "state", "best", "usual", "wall_s", "complete"),
           "measured": len(found.get("measured", [])), "again": pick(again, "state", "wall_s"),
           "exhaustive": {**pick(everything, "state", "best", "usual", "wall_s"),
                          "measured": len(everything.get("measured", []))}}
    all_us = medians(everything)
    if all_us and "best" in found:
        chosen = all_us.get(found["best"]["config"])
        row["of_best"] = round(chosen / min(all_us.values()), 4) if chosen else None
        row["of_untuned"] = round(chosen / everything["usual"]["median_us"], 4) if chosen and "usual" in everything else None
    row["failed"] = [point for point in everything.get("measured", []) if point["status"] != "ok"]
    return row, found.get("hardware")


def step_tune(run):
    """`lacuna tune` within 90 s against every configuration; twice; the records as cache/seed/ wants them."""
    rows, hardware = [], None
    for spec, tokens in TUNED:
        if run.wants(f"{spec} {tokens}"):
            row, found_on = tune_row(run, spec, tokens)
            hardware = found_on or hardware
            keep(rows, row)
    if hardware:
        run.program("lacuna", "tune", "--export", run.out / f"{hardware}.jsonl",
                    more_env={"LACUNA_CACHE_DIR": str(run.out / "cache-tune")})
    for cache in ("cache-tune", "cache-exhaustive"):
        shutil.rmtree(run.out / cache, ignore_errors=True)
    return rows


def calibrate_row(run, spec, sample, options):
    begin = time.monotonic()
    report = run.report("calibrate", SPECS / f"{spec}.json", "--samples", sample, *options, timeout_s=90)
    row = {"spec": spec, "sample": sample.name, "options": options, "wall_s": round(time.monotonic() - begin, 1),
           **pick(report, "target", "launches", "complete", "kept")}
    row["heads"] = [{name: head[name] for name in ("dense", "fitted", "held_out") if name in head}
                    for head in report.get("heads", [])]
    return row


def step_calibrate(run):
    """`lacuna calibrate` on each full sample: all of it, timed; its first half, with the second held out."""
    rows = []
    for sample in run.samples:
        for spec, options in CALIBRATED.items():
            for more in ([], HELD_OUT):
                if run.wants(f"{spec} {sample.stem} {' '.join(more)}"):
                    keep(rows, calibrate_row(run, spec, sample, [*options, *more]))
    return rows
