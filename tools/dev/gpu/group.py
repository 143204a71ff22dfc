"""Several GPUs: `lacuna bench --gpus` against one GPU, and what happens to a rank whose peer is killed."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

from .machine import ROOT, SPECS, keep, pick, sh

CAUSAL = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'
# Spec, tokens, what the ranks hold, further options. 32 query heads, 8 KV heads, head dim 128, bf16.
POINTS = [("causal", 32768, "striped", ()), ("causal", 32768, "contiguous", ()), ("causal", 131072, "striped", ()),
          ("causal", 131072, "contiguous", ()), ("causal", 131072, "heads", ()),
          ("sparge-topk", 32768, "striped", ("--param", "ratio=0.25")), ("sparge-topk", 131072, "striped", ("--param", "ratio=0.25")),
          ("cascade", 32768, "contiguous", ())]
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


def step_group(run):
    """Parallel efficiency, bytes and imbalance on all GPUs of this machine, from causal attention to predictors."""
    gpus = 2 if run.device == "cpu" else gpu_count()
    if gpus < 2:
        return {"skipped": "one GPU"}
    causal = run.out / "causal.json"
    causal.write_text(CAUSAL)
    rows = []
    for name, tokens, layout, options in POINTS:
        point = f"{name} {tokens} {layout}"
        if not run.wants(point):
            continue
        spec = causal if name == "causal" else SPECS / f"{name}.json"
        report = run.report("bench", spec, "--shape", f"h=32,h_kv=8,n={tokens}", "--gpus", gpus, "--layout", layout, *options,
                            more_env={"LACUNA_NCCL_PATH": nccl_path()}, timeout_s=150)
        group = report.get("group", {})
        keep(rows, {"point": point, **pick(report, "device"), **{key: value for key, value in group.items() if key != "plan"},
                    **({"link": group["plan"]["link"], "scheme": group["plan"]["scheme"]} if group else {})})
    return rows


def step_group_faults(run):
    """Kills rank 1 in 20 places; the other rank has to end with an error within 10 s."""
    if gpu_count() < 2:
        return {"skipped": "one GPU"}
    rows = []
    for place in PLACES:
        if not run.wants(place):
            continue
        result = sh([sys.executable, ROOT / "tools/dev/gpu/group_drill.py", place, run.out], timeout_s=60,
                    env={**run.env, "LACUNA_NCCL_PATH": nccl_path()}, cwd=ROOT)
        try:
            keep(rows, {"place": place, **json.loads(result.stdout.strip().splitlines()[-1])})
        except (ValueError, IndexError):
            keep(rows, {"place": place, "exit": result.returncode, "error": (result.stdout + result.stderr)[-500:]})
    return {"good": sum(row.get("good", False) for row in rows), "of": len(rows), "rows": rows}
