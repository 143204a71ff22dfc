#!/usr/bin/env python3
"""A variant of one's own, from its text to its time: written, checked, looked at, calibrated and timed.

  python runtime/examples/variant.py                       on the first GPU, else on the CPU
  python runtime/examples/variant.py --tokens 512 --device cpu --picture tiles.svg

The parts between the marks (# %%) can be run one by one, as the cells of a notebook, where `report` shows its picture by itself.
Needs NumPy, and PyTorch for a GPU.
"""
import argparse
import pathlib
import tempfile
import time

import lacuna
import numpy

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--tokens", type=int, default=2048, help="(default: 2048)")
parser.add_argument("--heads", type=int, default=4, help="(default: 4)")
parser.add_argument("--device", default=None, help="cpu or cuda:N (default: the first GPU, else the CPU)")
parser.add_argument("--picture", default="variant.svg", metavar="FILE", help="where the tiles of each head are drawn (default: variant.svg)")
options = parser.parse_args()
engine = lacuna.Engine(options.device)

# %% Tensors: the keys of every 256 tokens have a direction of their own, and queries follow that of the first ones; head by head more.
random = numpy.random.default_rng(0)
shape = (1, options.heads, options.tokens, 64)
q, k, v = (random.standard_normal(shape, "float32") for _ in range(3))
topics = 0.6 * random.standard_normal((options.tokens // 256 + 1, 64), "float32")
k += topics[numpy.arange(options.tokens) // 256]
q += topics[0] * numpy.arange(options.heads, dtype="float32")[:, None, None]
if engine.device != "cpu":
    import torch

    q, k, v = (torch.from_numpy(array).to(engine.device, torch.bfloat16) for array in (q, k, v))

# %% The variant: causal attention that leaves out a tile whose largest logit trails the row's so far by much.
variant = {
    "version": 1,
    "name": "mine",
    "attention": {"mask": "k <= q + n_k - n_q"},
    "params": {"least": {"shape": "[heads]", "range": [-50, 0], "default": -50, "unit": "natural log", "calibrate": "bisect"}},
    "gate": {"scope": "tile", "skip": "gap < least", "exempt": "k1 >= q0 + n_k - n_q", "skips": ["v_load", "exp", "pv"]},
    "tile": {"q": 128, "k": 64},
}
try:
    lacuna.check(variant)
except lacuna.SpecError as error:
    print(error)  # what is wrong, where, and what would be right
    raise SystemExit(1) from None
print(lacuna.explain(variant, arch=engine.target, head_dim=64))

# %% What it does at a first guess, and its picture.
report = lacuna.run(q, k, v, spec=variant, least=-4.0)
print(report)
pathlib.Path(options.picture).write_text(report.picture(), encoding="utf-8")

# %% Parameters within an error bound, head by head; they are kept in a file.
params = lacuna.calibrate(variant, samples=[(q, k, v)], rel_l1=0.05)
with tempfile.TemporaryDirectory() as folder:
    params.save(pathlib.Path(folder) / "mine.safetensors")
    params = lacuna.Calibration.load(pathlib.Path(folder) / "mine.safetensors")
print("least", params["least"].tolist())
print(lacuna.run(q, k, v, spec=variant, **params.like(q)))

# %% Its time in a loop, next to attention that leaves out nothing.
kernels = {"mine": (engine.compile(variant, head_dim=64, dtype="f32" if engine.device == "cpu" else "bf16"), params.like(q)),
           "dense": (engine.compile("dense", head_dim=64, dtype="f32" if engine.device == "cpu" else "bf16"), {})}
for name, (kernel, given) in kernels.items():
    kernel(q, k, v, **given)
    begin = time.perf_counter()
    for _ in range(5):
        o = kernel(q, k, v, **given)
    numpy.asarray(o[0, 0, 0, :1].tolist())  # waits for a GPU
    print(f"{name}: {(time.perf_counter() - begin) / 5 * 1e3:.2f} ms a call")
