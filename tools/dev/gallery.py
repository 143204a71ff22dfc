#!/usr/bin/env python3
"""Measures every spec on the real samples and draws its mask, for the gallery in specs/README.md:

    tools/dev/gallery.py --lacuna build/release/bin/lacuna \\
        --samples tests/data/lm-layer5-4k.safetensors tests/data/lm-layer2-4k.safetensors

Each spec runs at its defaults and at one looser and one tighter setting (SETTINGS). Writes the table
between the marks in specs/README.md. `--only NAME` measures one spec and prints its lines; `--json FILE`
keeps the figures. `--pictures` draws specs/pictures/<spec>.svg of the first sample instead."""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = "<!-- gallery: generated -->"
END = "<!-- end of gallery -->"

# Spec -> the parameter that is turned, its looser and its tighter value.
SETTINGS = {
    "sparge": ("tau", 0.99, 0.95),
    "sparge-topk": ("ratio", 0.7, 0.3),
    "sale": ("tau", 0.002, 0.032),
    "bsfa": ("threshold", "k=32", "k=8"),
    "fg-attn-cached": ("c", 0.1, 1),
    "fg-attn-pooled": ("c", 0.1, 1),
    "streaming": ("window", 4096, 1024),
    "topk-blocks": ("blocks", 64, 16),
    "xattention": ("tau", 0.95, 0.8),
    "minference-vertical-slash": ("vertical", 2000, 500),
    "minference-block": ("blocks", 150, 50),
    "flexprefill": ("gamma", 0.98, 0.9),
    "radial": ("reach", 1, -1),
    "moba-blocks": ("chunks", 16, 4),
    "skip-softmax": ("c", 100, 4096),
    "dilated-union": ("tau", 0.97, 0.8),
    "similar-mass": ("tau", 0.9, 0.6),
    "distance-gate": ("far", -8, -3),
    "relmax": ("alpha", 0.01, 0.05),
    "cascade": ("tau", 0.01, 0.05),
    "flashprefill": ("alpha", 0.02, 0.1),
    "prism": ("tau", 0.98, 0.9),
    "subblock": ("tau", 0.95, 0.8),
    "quest": ("pages", 256, 64),
    "twilight": ("tau", 0.95, 0.8),
    "bigbird": ("window", 9, 1),
    "nsa": ("blocks", 32, 8),
    "vsa": ("cubes", 64, 16),
}
# Specs whose tiles follow from places alone, or that have evidence of the caller's: drawn, not measured.
DRAWN = ["sliding-tile", "natten", "longformer", "prefix-lm", "sink", "sigmoid", "t5-bias"]
# Of specs with branches, the one that chooses: it is measured against its own dense attention, and drawn.
BRANCHES = {"nsa": "selected", "vsa": "fine"}


def spec_path(name):
    path = ROOT / "specs" / f"{name}.json"
    return path if path.exists() else ROOT / "specs" / "examples" / f"{name}.json"


def call(lacuna, *arguments):
    done = subprocess.run([lacuna, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, done.args))}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def assignment(name, sample, parameter, value):
    """`tau=0.9`; BSFA's thresholds come from the file made for this many kept tiles."""
    if isinstance(value, str) and value.startswith("k="):
        return f"{parameter}=@{sample.with_suffix('')}.{name}-k{value[2:]}.safetensors"
    return f"{parameter}={value}"


def measure(lacuna, name, sample):
    parameter, looser, tighter = SETTINGS[name]
    rows = []
    # Thresholds that a file holds have no default: the one for 16 kept tiles stands for it.
    default = "k=16" if isinstance(looser, str) else None
    for setting, value in (("looser", looser), ("default", default), ("tighter", tighter)):
        more = [] if value is None else ["--param", assignment(name, sample, parameter, value)]
        if more and "=@" in more[1] and not pathlib.Path(more[1].split("=@")[1]).exists():
            continue
        points = call(lacuna, "viz", "compare", spec_path(name), "--input", sample, *more)["points"]
        point = next(p for p in points if name not in BRANCHES or p["spec"] == f"{name}-{BRANCHES[name]}")
        rows.append({"spec": name, "sample": sample.stem, "setting": setting,
                     "value": f"`{parameter} = {value}`" if value is not None else "defaults",
                     "density": point["visited"] / max(point["visible"], 1),
                     "gated": point["gated"] / max(point["visited"], 1),
                     "rel_l1": point["rel_l1"]})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def table(rows, samples):
    columns = [sample.stem for sample in samples]
    head = ["spec", "setting"] + [f"{c}: density | gated | rel. L1" for c in columns]
    head = [cell for part in head for cell in part.split(" | ")]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    by_key = {(r["spec"], r["value"], r["sample"]): r for r in rows}
    keys = list(dict.fromkeys((r["spec"], r["value"]) for r in rows))
    for spec, value in keys:
        cells = [f"`{spec}`", value]
        for column in columns:
            row = by_key.get((spec, value, column))
            cells += ([f"{100 * row['density']:.1f} %", f"{100 * row['gated']:.1f} %",
                       f"{row['rel_l1']:.4f}"] if row else ["", "", ""])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_readme(text):
    path = ROOT / "specs" / "README.md"
    old = path.read_text()
    begin, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    path.write_text(old[:begin] + "\n" + text + "\n" + old[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacuna", required=True)
    parser.add_argument("--samples", nargs="+", type=pathlib.Path, required=True)
    parser.add_argument("--only")
    parser.add_argument("--pictures", action="store_true", help="draw the masks, measure nothing")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    names = [options.only] if options.only else list(SETTINGS)
    if options.pictures:
        for name in names if options.only else names + DRAWN:
            branch = ["--branch", BRANCHES[name]] if name in BRANCHES else []
            call(options.lacuna, "viz", "mask", spec_path(name), *branch, "--input", options.samples[0],
                 "-o", ROOT / "specs" / "pictures" / f"{name}.svg")
        return
    rows = [row for name in names for sample in options.samples
            for row in measure(options.lacuna, name, sample)]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if not options.only:
        pictures = "\n".join(f"![{name}](pictures/{name}.svg)" for name in names + DRAWN)
        write_readme(f"{table(rows, options.samples)}\n\n{pictures}")


if __name__ == "__main__":
    main()
