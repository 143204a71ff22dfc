#!/usr/bin/env python3
"""The whole GPU check in one go.

  tools/dev/gpu_check.py pack                          here: build, strip and put everything into .carry/
  tools/dev/gpu_check.py run [STEP ...] [--only REGEX] there: test, sanitise and measure; writes gpu-record.json
  tools/dev/gpu_check.py run tune --only 'sparge 8192' one point of one step

The GPU machine needs the checkout, .carry/, a driver, NVRTC, for the sanitizer steps compute-sanitizer, for `peers`, `python` and
`group_faults` PyTorch and the Python module (`pack --python`); no compiler and no library of ours. Each step runs alone; no
program call may take longer than its limit, so that one that hangs costs about a minute. Results go to --out; copy the record to
tests/numerics/gpu-record.json.
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

from gpu import correctness, group, python, search, speed
from gpu.machine import CARRY, ROOT, Run, sh
from gpu.points import PRESETS

TREES = ("compiler", "templates", "runtime")
# Target of the build -> what is packed of it.
PACKED = {"lacuna_cli": "lacuna", "test_numerics": "test_numerics", "startup_bench": "startup_bench"}


def pack(args):
    build = Path(args.build)
    subprocess.run(["cmake", "--build", build, "--target", *args.targets], check=True)
    shutil.rmtree(CARRY / "bin", ignore_errors=True)
    (CARRY / "bin").mkdir(parents=True)
    (CARRY / "data").mkdir(exist_ok=True)
    for name in (PACKED[target] for target in args.targets):
        subprocess.run(["strip", "--strip-unneeded", "-o", CARRY / "bin" / name, build / "bin" / name], check=True)
    if args.python:
        pack_python(args.python, build)
    for sample in args.sample:
        shutil.copy(sample, CARRY / "data" / Path(sample).name)
    trees = {tree: sh(["git", "rev-parse", f"HEAD:{tree}"], cwd=ROOT).stdout.strip() for tree in TREES}
    dirty = sh(["git", "status", "--porcelain", "--", *TREES], cwd=ROOT).stdout.strip() != ""
    (CARRY / "trees.json").write_text(json.dumps({"trees": trees, "dirty": dirty}))
    total = sum(f.stat().st_size for f in CARRY.rglob("*") if f.is_file())
    print(f"packed {total / 2**20:.1f} MiB in {CARRY}; trees {'dirty' if dirty else 'clean'}")


def pack_python(interpreter, build):
    """The module and pytest, below .carry/python; for the version of `interpreter` and later ones."""
    place = CARRY / "python"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--no-compile", "--target", place, "--no-deps", "pytest", "iniconfig", "pluggy",
                    "packaging", "pygments", "-C", f"cmake.define.LACUNA_BUILD={Path(build).resolve()}",
                    ROOT / "runtime/python"], check=True)
    for library in [*place.rglob("*.so*"), place / "lacuna/bin/lacuna"]:
        subprocess.run(["strip", "--strip-unneeded", library], check=True)


def step_peers(run):
    """Every preset of tools/dev/peers.py, next to cuDNN and FlexAttention in one PyTorch process."""
    tables = {}
    for preset in PRESETS:
        if not run.wants(preset):
            continue
        table = run.out / f"peers-{preset}.json"
        result = sh([sys.executable, ROOT / "tools/dev/peers.py", "--points", preset, "--json", table], timeout_s=240,
                    env=run.env, cwd=ROOT)
        print(result.stdout, flush=True)
        tables[preset] = json.loads(table.read_text()) if table.exists() else {}
        table.unlink(missing_ok=True)
        if result.returncode:
            print(result.stderr[-3000:], flush=True)
            tables[preset] |= {"exit": result.returncode, "error": result.stderr.strip()[-500:]}
    return tables


STEPS = {name.removeprefix("step_"): step for module in (correctness, speed, search, python, group, sys.modules[__name__])
         for name, step in vars(module).items() if name.startswith("step_")}


def machine():
    if not shutil.which("nvidia-smi"):
        return {"gpu": None, "system": platform.platform()}
    query = sh(["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"])
    fields = [field.strip() for field in query.stdout.split("\n")[0].split(",")]
    return dict(zip(("gpu", "driver", "max_sm_clock", "power_limit"), fields), system=platform.platform())


def run(args):
    out = Path(args.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    record = {"date": time.strftime("%Y-%m-%d"), **machine(), **json.loads((CARRY / "trees.json").read_text()), "steps": {}}
    state = Run(out, args.only, args.device)
    for name in args.steps or STEPS:
        begin = time.monotonic()
        print(f"== {name}: {STEPS[name].__doc__}", flush=True)
        try:
            result = STEPS[name](state)
        except (OSError, ValueError, KeyError, IndexError) as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        seconds = round(time.monotonic() - begin, 1)
        record["steps"][name] = {"seconds": seconds, "result": result}
        (out / "gpu-record.json").write_text(json.dumps(record, indent=1) + "\n")
        if isinstance(result, dict):
            print(json.dumps(result)[:1500])
        print(f"== {name}: {seconds} s", flush=True)
    shutil.rmtree(out / "cache", ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    packing = verbs.add_parser("pack", help="fill .carry/")
    packing.add_argument("--build", default=str(ROOT / "build/bench"))
    packing.add_argument("--targets", nargs="+", choices=list(PACKED), default=list(PACKED), help="what to build and pack (all)")
    packing.add_argument("--sample", nargs="*", default=[], help="samples and their thresholds to take along")
    packing.add_argument("--python", metavar="INTERPRETER", help="take the Python module along, built for this interpreter (with headers)")
    packing.set_defaults(call=pack)
    running = verbs.add_parser("run", help="test and measure on this machine's GPU")
    running.add_argument("--out", default=os.environ.get("OUT", str(ROOT / "build/gpu-check")))
    running.add_argument("--only", metavar="REGEX", help="points of the measuring steps: \"sparge\", \"bsfa d=128\", ...")
    running.add_argument("--device", default="cuda:0", help="cuda:0; cpu shows the steps without a GPU")
    running.add_argument("steps", nargs="*", metavar="STEP", help=f"default: all of {', '.join(STEPS)}")
    running.set_defaults(call=run)
    args = parser.parse_args()
    if unknown := set(getattr(args, "steps", [])) - set(STEPS):
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    args.call(args)


if __name__ == "__main__":
    sys.exit(main())
