"""Points of tools/dev/peers.py: what is measured, at which sizes, and what it has to reach."""

import dataclasses

from gpu import values as value_sets

TOKENS = 16384
LONG = (8192, 16384, 32768)
FIELDS = {"dense": ("d", "n", "causal"), "lists": ("d", "n", "k", "density"), "gate": ("d", "n", "spec", "gated"),
          "quantised": ("d", "n", "k", "density"), "columns": ("d", "n", "density"), "topk": ("d", "n", "causal", "ratio"),
          "selection": ("d", "n"), "split": ("d", "n", "n_q"), "formula": ("d", "n", "name")}
COMMON_FIELDS = ("values", "dtype")  # of any point; printed where they are not the default
WORDS = ("name", "spec", *COMMON_FIELDS)
FORMULA_SHARE = {"alibi": 0.90, "softcap": 0.70, "factor": 0.97, "table": 0.60, "document": 0.85, "window": 0.85}
FRACTIONS = ("density", "gated", "ratio")
LISTS_SHARE = {128: {0.5: 0.95, 0.25: 0.92, 0.1: 0.85}, 64: {0.5: 0.90, 0.25: 0.88, 0.1: 0.80}}
QUANTISED_TFLOPS = {1.0: 950, 0.5: 900, 0.25: 870, 0.1: 800}
TOPK_MS = {0.5: 11.0, 0.25: 6.2, 0.1: 3.4}
UNGATED_SHARE = 0.92
GATED_SPEED = {("bsfa", 0.75): 1.35}
SELECTION_SHARE = 0.26  # of the time of dense attention
SPLITS = (1, 4, 8, 16)  # blocks that share a work tile, compared at each point of split


@dataclasses.dataclass(frozen=True)
class Point:
    kind: str  # one of FIELDS
    d: int = 128
    n: int = TOKENS
    causal: int = 0
    k: int = 128  # keys of a listed tile
    density: float = 0.5
    gated: float = 0.75  # of the tiles; 0: with a threshold that leaves out next to nothing
    spec: str = "bsfa"  # of gate: or skip-softmax
    ratio: float = 0.5  # of each row's tiles
    n_q: int = 1  # the last queries of n tokens
    name: str = "alibi"  # of formula: gpu/formulas.py
    values: str = "normal"  # gpu/values.py
    dtype: str = "bf16"  # or f16

    def __str__(self):
        unusual = [name for name in COMMON_FIELDS if getattr(self, name) != getattr(Point(self.kind), name)]
        return f"{self.kind}:" + ",".join(f"{name}={getattr(self, name)}" for name in (*FIELDS[self.kind], *unusual))

    @property
    def batch(self):
        return max(1, TOKENS // self.n)

    @property
    def heads(self):
        return 8 if self.kind == "split" else 32

    @property
    def queries(self):
        return self.n_q if self.kind == "split" else self.n

    @property
    def tolerance(self):
        """sum |difference| / sum |reference|, both in bf16."""
        return {"quantised": 8e-2, "topk": 8e-2, "selection": 2e-2}.get(self.kind, 1e-2)

    @property
    def bar(self):
        """What has to be reached: a multiple of a subject's rate, TFLOP/s or a time; empty where nothing was set."""
        if self.kind == "dense":
            return {"against": "cudnn", "at_least": (1.18 if self.causal else 1.08) if self.d == 128 else 1.0}
        if self.kind == "lists":
            share = LISTS_SHARE.get(self.k, {}).get(self.density)
            return {"against": "dense", "at_least": share} if share else {}
        if self.kind == "quantised":
            rate = QUANTISED_TFLOPS.get(self.density)
            return {"tflops_at_least": rate} if rate and (self.n, self.k, self.d) == (32768, 64, 128) else {}
        if self.kind == "topk":
            time = TOPK_MS.get(self.ratio)
            return {"ms_at_most": time} if time and (self.n, self.d) == (32768, 128) else {}
        if self.kind == "formula":
            return {"against": "dense", "at_least": FORMULA_SHARE[self.name]} if self.n == 16384 else {}
        if self.kind == "split":
            return {"against": "whole", "at_least": 1.0}
        if self.kind == "gate":
            share = UNGATED_SHARE if self.gated == 0 else GATED_SPEED.get((self.spec, self.gated))
            return {"against": "dense", "at_least": share} if share else {}
        return {"against": "dense", "at_least": {"columns": 0.88, "selection": 1 / SELECTION_SHARE}[self.kind]}


def is_absolute(bar):
    """Is it a figure of ours, whatever others have?"""
    return "tflops_at_least" in bar or "ms_at_most" in bar


def is_reached(bar, row):
    """Of a row with ratio and, for a bar of its own, alone; None where it has no such figure."""
    if "against" in bar:
        ratio = row["ratio"].get(bar["against"])
        return None if ratio is None else ratio >= bar["at_least"]
    if "tflops_at_least" in bar:
        return row["alone"]["tflops"] >= bar["tflops_at_least"]
    return row["alone"]["median_us"] <= bar["ms_at_most"] * 1e3 if bar else None


def bar_text(bar):
    if "against" in bar:
        return f"{bar['at_least']:.3g} x {bar['against']}"
    return f"{bar['tflops_at_least']} TFLOP/s" if "tflops_at_least" in bar else f"{bar['ms_at_most']} ms"


PRESETS = {
    "dense": [Point("dense", d, n, causal) for d, lengths in ((128, (4096, *LONG)), (64, LONG), (256, LONG))
              for n in lengths for causal in (0, 1)],
    "lists": [Point("lists", n=n, k=k, density=density) for k in (128, 64) for n in (16384, 32768)
              for density in (0.5, 0.25, 0.1)],
    "gate": [Point("gate"), Point("gate", gated=0.0), Point("gate", spec="skip-softmax", gated=0.0)],
    "quantised": [Point("quantised", n=32768, k=64, density=density) for density in QUANTISED_TFLOPS],
    "columns": [Point("columns", n=n, density=density) for n in (16384, 32768) for density in (0.5, 0.25)],
    "topk": [Point("topk", n=32768, ratio=ratio) for ratio in TOPK_MS],
    "selection": [Point("selection", n=65536)],
    "formula": [Point("formula", name=name) for name in FORMULA_SHARE],
    "split": [Point("split", n=131072, n_q=n_q) for n_q in (1, 16, 64, 128)],
}


def field_type(name):
    if name in WORDS:
        return str
    return float if name in FRACTIONS else int


def on_values(points, names, dtypes):
    """Each point on each of the value sets and of each type; those that have a set or a type of their own keep it."""
    spread = []
    for point in points:
        for name in names if point.values == "normal" else (point.values,):
            for dtype in dtypes if point.dtype == "bf16" else (point.dtype,):
                try:
                    value_sets.check(name)
                except ValueError as error:
                    raise SystemExit(f"--values: {error}") from None
                if dtype not in value_sets.TORCH_TYPES:
                    raise SystemExit(f"--dtype: expected {', '.join(value_sets.TORCH_TYPES)}, got {dtype}")
                spread.append(dataclasses.replace(point, values=name, dtype=dtype, n=value_sets.tokens_of(name, point.n)))
    return list(dict.fromkeys(spread))


def parse_points(words):
    """Presets by name, and single points as they print; ends the process at what is neither."""
    points = []
    for word in words:
        kind, _, fields = word.partition(":")
        if kind not in FIELDS:
            raise SystemExit(f"--points: expected one of {', '.join(FIELDS)}, got {word}")
        given = dict(field.partition("=")[::2] for field in fields.split(",") if field)
        if unknown := set(given) - set(FIELDS[kind]) - set(COMMON_FIELDS):
            taken = (*FIELDS[kind], *COMMON_FIELDS)
            raise SystemExit(f"--points {word}: {kind} takes {', '.join(taken)}, got {', '.join(sorted(unknown))}")
        try:
            values = {name: field_type(name)(value) for name, value in given.items()}
        except ValueError as error:
            raise SystemExit(f"--points {word}: {error}") from None
        points += [Point(kind, **values)] if given else PRESETS[kind]
    return points
