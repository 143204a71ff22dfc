"""Subjects of tools/dev/peers.py: what is launched at a point, by us and by others, and how its output is checked."""

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import os
from collections.abc import Callable

from gpu import formulas, values
from gpu.machine import SPECS
from gpu.points import SPLITS

CAUSAL = "k <= q + n_k - n_q"
ATTEND = frozenset(("attend",))
# What decides about tiles, without what prepares the tokens for it and for attention itself.
SELECTION = frozenset(("reference", "estimate", "select", "compact"))
# Columns that look drawn, of each work tile others, and that a test of the output can work out again.
COLUMN_STEP, ROW_STEP, PERIOD = 5081, 3571, 1024


@dataclasses.dataclass
class Subject:
    """Launches take the CUevents to record between their kernels; `kernels` and `timed` may be empty: the whole launch counts."""
    launch: Callable
    work: float  # FLOP
    kernels: tuple = ()
    timed: frozenset = frozenset()

    def enqueue(self, torch):
        """One launch, with events around it or around each of its kernels."""
        events = [torch.cuda.Event(enable_timing=True) for _ in range(len(self.kernels) + 1 if self.timed else 2)]
        if self.timed:
            for event in events:
                event.record()  # it has a handle from then on
            self.launch([event.cuda_event for event in events])
        else:
            events[0].record()
            self.launch()
            events[1].record()
        return events

    def time_us(self, events):
        times = [begin.elapsed_time(end) * 1e3 for begin, end in itertools.pairwise(events)]
        return sum(time for time, kernel in zip(times, self.kernels) if kernel in self.timed) if self.timed else times[0]


class Launch:
    """A kernel on its tensors: a call enqueues it and returns its output."""

    def __init__(self, kernel, q, k, v, out, **named):
        self.kernel, self.output = kernel, out
        self.enqueue = functools.partial(kernel, q, k, v, out=out, **named)

    def __call__(self, events=()):
        return self.enqueue(stage_events=events) if events else self.enqueue()

    @property
    def kernels(self):
        return tuple(self.kernel.info.get("stages", ()))


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
    """Tensors of a point, and the subjects on them by name. engines: name -> ours, the first one "lacuna"."""

    def __init__(self, torch, engines, point, with_mma):
        self.torch, self.engines, self.point, self.with_mma = torch, engines, point, with_mma
        self.q, self.k, self.v = values.make(torch, point)
        self.subjects, self.outputs, self.errors, self.fp64_errors = {}, {}, {}, {}

    def flop(self, causal=False):
        point = self.point
        return 4 * point.batch * point.heads * point.queries * point.n * point.d / (2 if causal else 1)

    def add(self, name, launch, work, timed=frozenset()):
        """Takes a subject in if its first launch succeeds, as ours must; keeps that launch's output."""
        try:
            self.outputs[name] = launch()
            self.torch.cuda.synchronize()
        except Exception as error:
            if isinstance(launch, Launch):
                raise
            # A peer that cannot do a point is a gap in the table, no more.
            self.errors[name] = f"{type(error).__name__}: {error}"[:600]
            return
        self.subjects[name] = Subject(launch, work, launch.kernels if timed else (), timed)

    def lacuna(self, spec, family=None, engine=None, **named):
        """A launch of a spec; `named`: its parameters and further tensors."""
        point = self.point
        with only_family(family):
            kernel = (engine or self.engines["lacuna"]).compile(spec, head_dim=point.d, dtype=point.dtype,
                                                                shape=(point.batch, point.heads, point.heads, point.queries, point.n))
        return Launch(kernel, self.q, self.k, self.v, self.torch.full_like(self.q, float("nan")), **named)

    def add_lacuna(self, work, spec, timed=frozenset(), **named):
        """The subject of the point, the same of other device headers, and that of the portable family."""
        for name, engine in self.engines.items():
            self.add(name, self.lacuna(spec, engine=engine, **named), work, timed)
        if self.with_mma:
            self.add("mma", self.lacuna(spec, family="mma", **named), work, timed)

    def add_on_noise(self, work, spec, timed=frozenset()):
        """The same kernel on random normal values, beside those of the point: its speed must not depend on them."""
        if self.point.values != "normal":
            self.noise = Problem(self.torch, self.engines, dataclasses.replace(self.point, values="normal"), False)
            self.add("noise", self.noise.lacuna(spec), work, timed)

    def add_dense(self, causal):
        self.add("dense", self.lacuna(dense_spec(causal)), self.flop(causal))

    def cudnn(self, causal):
        def launch():
            return self.torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=bool(causal))
        return launch

    def flash(self):
        """PyTorch's own kernel."""
        attention = self.torch.nn.attention

        def launch():
            with attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION):
                return self.torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v)
        return launch


def dense_spec(causal):
    return {"version": 1, "name": "dense", **({"attention": {"mask": CAUSAL}} if causal else {})}


def shipped_spec(name, **changes):
    return {**json.loads((SPECS / f"{name}.json").read_text()), **changes}


def quantised_spec(tile_k):
    return shipped_spec("external-mask", tile={"q": 128, "k": tile_k},
                        quantise={"qk": {"bits": 8, "group": "block"}, "v": {"bits": 8}})


def columns_spec():
    keep = f"(k0 * {COLUMN_STEP} + q0 * {ROW_STEP}) % {PERIOD} < density * {PERIOD}"
    return {"version": 1, "name": "columns", "params": {"density": {"range": [0, 1], "default": 0.5}},
            "predictor": {"tile": {"q": 128, "k": 1}, "keep": keep}, "loader": "gather"}


def is_kept_column(key, first_query, density):
    """What columns_spec says, of numbers or of tensors of them."""
    return (key * COLUMN_STEP + first_query * ROW_STEP) % PERIOD < density * PERIOD


def topk_spec(causal):
    return shipped_spec("sparge-topk", attention={"mask": CAUSAL} if causal else {})


def relative_l1(got, expected):
    return float((got.double() - expected.double()).abs().sum() / expected.double().abs().sum())


def compare(problem, name, reference):
    """Relative L1 error of one subject's output against another's; None if one of them has none."""
    outputs = problem.outputs
    return relative_l1(outputs[name], outputs[reference]) if name in outputs and reference in outputs else None


def some_rows_errors(problem, names, mask, tile_q, tile_k, causal=False):
    """Relative L1 errors of outputs against attention in fp64 under `mask` [batch, heads, rows, tiles], over the first, a
    middle and the last work tile of two heads."""
    torch, point = problem.torch, problem.point
    rows = mask.shape[2]
    keys = torch.arange(point.n, device="cuda")
    got, expected = {name: [] for name in names}, []
    for head in (0, point.heads - 1):
        for row in sorted({0, rows // 2, rows - 1}):
            tokens = slice(row * tile_q, (row + 1) * tile_q)
            scores = problem.q[0, head, tokens].double() @ problem.k[0, head].double().T * point.d ** -0.5
            kept = mask[0, head, row].repeat_interleave(tile_k)[:point.n].expand(scores.shape)
            if causal:
                kept = kept & (keys <= keys[tokens, None])
            weights = torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1)
            weights = weights.masked_fill(~kept.any(-1, keepdim=True), 0.0)  # a query that sees nothing
            expected.append(weights @ problem.v[0, head].double())
            for name in names:
                got[name].append(problem.outputs[name][0, head, tokens])
    return {name: relative_l1(torch.cat(rows), torch.cat(expected)) for name, rows in got.items()}


def some_rows_error(problem, mask, tile_q, tile_k, causal=False):
    """The same of our output alone."""
    return some_rows_errors(problem, ("lacuna",), mask, tile_q, tile_k, causal)["lacuna"]


def visited_tiles(problem, spec, tile_q, tile_k, **params):
    """The map of tiles that a launch reports: [batch, heads, rows, tiles] bool."""
    torch, point = problem.torch, problem.point
    size = (point.batch, point.heads, -(-point.n // tile_q), -(-point.n // tile_k))
    tiles = torch.zeros(size, dtype=torch.uint8, device="cuda")
    problem.lacuna(spec, tile_mask=tiles, **params)()
    torch.cuda.synchronize()
    return tiles != 0


def set_up_dense(problem):
    point = problem.point
    work = problem.flop(point.causal)
    problem.add_lacuna(work, dense_spec(point.causal))
    problem.add_on_noise(work, dense_spec(point.causal))
    problem.add("cudnn", problem.cudnn(point.causal), work)
    every_tile = problem.torch.ones((1, 1, 1, 1), dtype=problem.torch.bool, device="cuda")
    every_tile = every_tile.expand(1, point.heads, -(-point.n // 128), -(-point.n // 128))
    problem.fp64_errors = some_rows_errors(problem, [name for name in problem.outputs if name != "noise"], every_tile, 128, 128, point.causal)
    return compare(problem, "lacuna", "cudnn")


# Of a gate: its parameter, the value that leaves out least, and between which x its values(x, tokens) are searched.
GATE_PARAMS = {"bsfa": ("threshold", -1e30, -20.0, 40.0, lambda x, n: x),
               "skip-softmax": ("c", 1.0, -12.0, 6.0, lambda x, n: n * math.exp(x))}


def set_up_gate(problem):
    """Causal attention whose tiles fall out by their largest logit; rates count all causal work: their ratios are of time."""
    torch, point = problem.torch, problem.point
    spec, work = shipped_spec(point.spec), problem.flop(causal=True)
    name, loosest, low, high, value_of = GATE_PARAMS[point.spec]
    counts = torch.empty((point.batch, point.heads, -(-point.n // 128), 3), dtype=torch.int32, device="cuda")

    def gated_share(at):
        problem.lacuna(spec, counts=counts, **{name: value_of(at, point.n)})()
        _, visited, gated = counts.sum((0, 1, 2)).tolist()
        return gated / visited

    problem.add_dense(causal=True)
    problem.add("cudnn", problem.cudnn(True), work)
    if point.gated == 0:
        problem.add_lacuna(work, spec, **{name: loosest})
        return compare(problem, "lacuna", "cudnn")
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if gated_share(middle) < point.gated else (low, middle)
    problem.add_lacuna(work, spec, **{name: value_of(high, point.n)})
    problem.add("ungated", problem.lacuna(spec, **{name: loosest}), work)
    return compare(problem, "ungated", "cudnn")


def draw_lists(problem):
    """Random tiles of 128 queries by point.k keys, in each row at least one: the mask, and as lists and their lengths."""
    torch, point = problem.torch, problem.point
    rows, columns = point.n // 128, point.n // point.k
    mask = torch.rand((point.batch, point.heads, rows, columns), device="cuda") < point.density
    mask[..., 0] |= ~mask.any(-1)
    indices = torch.argsort(mask.logical_not().to(torch.uint8), dim=-1, stable=True).to(torch.int32)
    return mask, indices, mask.sum(-1, dtype=torch.int32)


def set_up_lists(problem):
    point = problem.point
    spec = shipped_spec("external-mask", tile={"q": 128, "k": point.k})
    mask, indices, counts = draw_lists(problem)
    work = problem.flop() * float(counts.sum()) / mask.numel()
    problem.add_lacuna(work, spec, list_indices=indices, list_counts=counts)
    problem.add_dense(causal=False)
    problem.add("flex", flex_attention(problem, indices, counts, (128, point.k)), work)
    return max(some_rows_error(problem, mask, 128, point.k), compare(problem, "lacuna", "flex") or 0)


def set_up_quantised(problem):
    """int8 queries and keys, e4m3 values, on random tiles: the kernel alone, without what quantises."""
    point = problem.point
    mask, indices, counts = draw_lists(problem)
    work = problem.flop() * float(counts.sum()) / mask.numel()
    problem.add_lacuna(work, quantised_spec(point.k), timed=ATTEND, list_indices=indices, list_counts=counts)
    problem.add_dense(causal=False)
    return some_rows_error(problem, mask, 128, point.k)


def set_up_columns(problem):
    """Keys gathered one by one, as many for each work tile: the kernel alone."""
    torch, point = problem.torch, problem.point
    keys, rows = torch.arange(point.n, device="cuda"), torch.arange(0, point.n, 128, device="cuda")
    mask = is_kept_column(keys, rows[:, None], point.density)
    work = problem.flop() * float(mask.float().mean())
    problem.add_lacuna(work, columns_spec(), timed=ATTEND, density=point.density)
    problem.add_dense(causal=False)
    return some_rows_error(problem, mask.expand(1, point.heads, *mask.shape), 128, 1)


def set_up_topk(problem):
    """SpargeAttn's top-k from the tensors to O; rates count all work: their ratios are of time."""
    point = problem.point
    spec = topk_spec(point.causal)
    problem.add_lacuna(problem.flop(point.causal), spec, ratio=point.ratio)
    problem.add_dense(point.causal)
    tile = spec["predictor"]["tile"]
    mask = visited_tiles(problem, spec, tile["q"], tile["k"], ratio=point.ratio)
    return some_rows_error(problem, mask, tile["q"], tile["k"], point.causal)


def set_up_selection(problem):
    """What SALE takes to choose its tiles; rates are of causal attention's work: their ratios are of time."""
    spec = shipped_spec("sale")
    problem.add_lacuna(problem.flop(causal=True), spec, timed=SELECTION)
    problem.add_dense(causal=True)
    tile = spec["predictor"]["tile"]
    return some_rows_error(problem, visited_tiles(problem, spec, tile["q"], tile["k"]), tile["q"], tile["k"], causal=True)


def split_spec(split_kv):
    return {"version": 1, "name": "split", "tile": {"split_kv": split_kv}}


def set_up_split(problem):
    """A few queries of many keys, whose loads take the time. "whole": a work tile is one block's; "split4": it is four
    blocks', and so on; "lacuna" has the most. The error is the largest of them all."""
    work, names = problem.flop(), []
    for split_kv in SPLITS[:-1]:
        names.append("whole" if split_kv == 1 else f"split{split_kv}")
        problem.add(names[-1], problem.lacuna(split_spec(split_kv)), work)
    problem.add_lacuna(work, split_spec(SPLITS[-1]))
    problem.add("flash", problem.flash(), work)
    problem.add("cudnn", problem.cudnn(False), work)
    reference = "cudnn" if "cudnn" in problem.outputs else "flash"
    errors = [compare(problem, name, reference) for name in ("lacuna", *names)]
    return None if None in errors else max(errors)


def set_up_formula(problem):
    """A score formula or a mask of single tokens; rates count what is visible."""
    torch, point = problem.torch, problem.point
    formula = formulas.FORMULAS[point.name]
    tensors = formula.params(torch, point.n)
    work = problem.flop(causal=True) * formulas.visible_share(torch, point.name, point.n)
    problem.add_lacuna(work, {"version": 1, "name": point.name, **formula.spec}, **tensors)
    problem.add_dense(causal=True)
    problem.add("flex", flex_formula(problem, formula, tensors), work)
    return compare(problem, "lacuna", "flex")


def flex_formula(problem, formula, tensors):
    """FlexAttention with the same formula and mask."""
    torch, n = problem.torch, problem.point.n
    from torch.nn.attention import flex_attention as flex

    mask_mod = formula.mask_mod(tensors) if formula.mask_mod else lambda b, h, q, k: k <= q
    blocks = flex.create_block_mask(mask_mod, None, None, n, n, device="cuda")
    score_mod = formula.score_mod(torch, tensors) if formula.score_mod else None
    compiled = torch.compile(flex.flex_attention, dynamic=False)

    def launch():
        return compiled(problem.q, problem.k, problem.v, score_mod=score_mod, block_mask=blocks)

    return launch


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


SET_UP = {"dense": set_up_dense, "lists": set_up_lists, "gate": set_up_gate, "quantised": set_up_quantised,
          "columns": set_up_columns, "topk": set_up_topk, "selection": set_up_selection, "split": set_up_split,
          "formula": set_up_formula}
