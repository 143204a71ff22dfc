#!/usr/bin/env python3
"""Batches of sequences as a server has them, next to cuDNN and FlashAttention in one PyTorch process.

  tools/dev/serving.py                        all points
  tools/dev/serving.py --points decode few --seconds 1 --json serving.json

Launches take turns one by one, sustained for --seconds, and their ratios count (tools/dev/peers.py says why). bf16, d 128, 32
query and 8 KV heads, random normal values.

  decode     one query of each of 64 sequences of 8192 keys, and one of 131072 keys; also as a share of a copy's bytes a second
  few        4, 16 and 64 queries of each of 16 sequences of 16384 keys
  prefill    32 sequences, lengths drawn log-uniform from 128 to 16384, causal: time over that of their work at the rate of one
             sequence of 16384 tokens in a kernel for one length; and such a sequence in pages against rows
  pages      pages of 16 and 64 tokens against rows one sequence behind the other, for both
  e4m3       keys and values in 8 bits, in rows and in pages, against 16 bits of the same numbers: one query of each of 64 sequences
             of 8192 keys and of one of 131072, 16 queries of 16384 keys, and the causal prefill of 16384 tokens
  invariant  what a fixed split costs, whose results do not depend on the rest of the batch
  formulas   sinks (64 heads of 64 elements), ALiBi, a prefix, a sigmoid, and head dim 96: the wgmma family against mma, for one query
             of each of 64 sequences of 8192 keys and for a prefill of 16384 tokens
  lists      the same of tiles of each head's own, decisions and attend together: streaming heads, the best blocks by their means,
             FlexPrefill, gates that skip some or nothing, NSA, gathered keys; also for 1024 queries of each of 4 sequences of
             8192 keys
  summaries  one query of many keys by methods that summarise them, if summaries are made anew and if they stay (k_summaries),
             next to dense attention
  integers   the same of integers: SpargeAttn by sums and by rank, SALE; and estimates of 4 bits, cascade and Twilight

Needs what tools/dev/peers.py needs.
"""
import argparse
import functools
import json
import math
import os
import random
import statistics
import sys
from typing import NamedTuple

from gpu.machine import SPECS, load_lacuna
from peers import interleave

HEADS, HEADS_KV, HEAD_DIM = 32, 8, 128
CAUSAL = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}%s}'
DENSE = '{"version": 1, "name": "dense"%s}'
TOLERANCE = 8e-3
INTEGER_TOLERANCE = 6e-2  # weights of e4m3 depend on the tiles before


class Heads(NamedTuple):
    q: int = HEADS
    kv: int = HEADS_KV
    dim: int = HEAD_DIM


class Launch:
    """A subject of `interleave`."""

    def __init__(self, torch, call):
        self.torch, self.call = torch, call

    def enqueue(self, torch):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        self.call()
        events[1].record()
        return events

    @staticmethod
    def time_us(events):
        return events[0].elapsed_time(events[1]) * 1e3


class Batch:
    """Sequences of lengths (n_q, n_k), keys and values as rows or in pages, and what launches on them."""

    def __init__(self, torch, engine, lengths, heads=Heads()):
        self.torch, self.engine, self.lengths, self.heads = torch, engine, lengths, heads
        self.n_q, self.n_k = [pair[0] for pair in lengths], [pair[1] for pair in lengths]
        draw = lambda count, tokens: torch.randn((1, count, tokens, heads.dim), device="cuda", dtype=torch.bfloat16)  # noqa: E731
        self.q, self.k, self.v = draw(heads.q, sum(self.n_q)), draw(heads.kv, sum(self.n_k)), draw(heads.kv, sum(self.n_k))
        begin = [0]
        for count in self.n_q:
            begin.append(begin[-1] + count)
        self.k_first = [sum(self.n_k[:i]) for i in range(len(lengths))]
        self.q_begin, self.k_begin = self.numbers(begin), self.numbers(self.k_first)
        self.key_counts = self.numbers(self.n_k)

    def numbers(self, values):
        return self.torch.tensor(values, device="cuda", dtype=self.torch.int32)

    def launch(self, spec, page_tokens=0, codes=False, parameters=None):
        """The call of a launch, and its output; `codes`: on keys and values of e4m3, after encode."""
        from lacuna import Sequences

        kernel = self.engine.compile(spec, head_dim=self.heads.dim, batch="pages" if page_tokens else "sequences",
                                     kv="e4m3" if codes else "same",
                                     shape=(len(self.lengths), self.heads.q, self.heads.kv, max(self.n_q), max(self.n_k)))
        (k, v), keys = self.codes if codes else (self.k, self.v), {"k_begin": self.k_begin}
        if page_tokens:
            k, v, pages = self.in_pages(k, v, page_tokens)
            keys = {"pages": pages}
        sequences = Sequences(self.q_begin, self.key_counts, **keys, max_n_q=max(self.n_q), max_n_k=max(self.n_k))
        o = self.torch.full_like(self.q, float("nan"))
        scales = {"k_scale": self.scale, "v_scale": self.scale} if codes else {}
        call = functools.partial(kernel, self.q, k, v, out=o, sequences=sequences, **scales, **(parameters or {}))
        return Launch(self.torch, call), o

    def keep_summaries(self, launch):
        """The same launch, all of whose summaries but those of the last 100 keys stay from one launch to the next."""
        kernel = launch.call.func
        kept = kernel.new_summaries(self.k, len(self.lengths), max(self.n_k))
        named = {"k_summaries": kept, "summarised": self.numbers([0] * len(self.lengths))}
        functools.partial(launch.call, **named)()
        named["summarised"] = self.numbers([n - 100 for n in self.n_k])
        o = self.torch.full_like(self.q, float("nan"))
        return Launch(self.torch, functools.partial(launch.call, out=o, **named)), o

    def encode(self, scale):
        """Keys and values become numbers that codes of e4m3 stand for."""
        torch = self.torch
        self.codes = [(x.float() / scale).to(torch.float8_e4m3fn) for x in (self.k, self.v)]
        self.k, self.v = ((x.float() * scale).to(torch.bfloat16) for x in self.codes)
        self.scale = torch.full((1, 1), scale, device="cuda", dtype=torch.float32)

    def in_pages(self, k, v, page_tokens):
        """Keys and values in pages in any order, [pages, tokens, heads, d] in memory, and the table."""
        torch = self.torch
        counts = [-(-n // page_tokens) for n in self.n_k]
        order = torch.randperm(sum(counts), device="cuda")
        table = torch.zeros((len(counts), max(counts)), device="cuda", dtype=torch.int32)
        row = (self.heads.kv, self.heads.dim)
        stores = [torch.zeros((sum(counts), page_tokens, *row), device="cuda", dtype=x.dtype) for x in (k, v)]
        bits, first = torch.uint8 if k.element_size() == 1 else torch.int16, 0  # integers, which all indexing takes
        for b, count in enumerate(counts):
            own = order[first:first + count]
            table[b, :count] = own.int()
            for store, rows in zip(stores, (k, v)):
                padded = torch.zeros((count * page_tokens, *row), device="cuda", dtype=bits)
                padded[:self.n_k[b]] = rows.view(bits)[0, :, self.k_first[b]:self.k_first[b] + self.n_k[b]].transpose(0, 1)
                store.view(bits)[own] = padded.view(count, page_tokens, *row)
            first += count
        return stores[0].transpose(1, 2), stores[1].transpose(1, 2), table

    def peer(self, backend):
        """PyTorch's attention on sequences of one length, without a mask."""
        torch, count = self.torch, len(self.lengths)

        def entries(x, heads):
            return x.view(heads, count, -1, HEAD_DIM).transpose(0, 1)

        q, k, v = entries(self.q, HEADS), entries(self.k, HEADS_KV).contiguous(), entries(self.v, HEADS_KV).contiguous()
        q = q.contiguous()

        def call():
            with torch.nn.attention.sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

        return Launch(torch, call), call().transpose(0, 1).reshape(1, HEADS, -1, HEAD_DIM)


def error_of(got, expected):
    return ((got.float() - expected.float()).abs().sum() / expected.float().abs().sum()).item()


def medians(torch, subjects, seconds):
    interleave(torch, subjects, seconds / 3)
    return {name: statistics.median(times) for name, times in interleave(torch, subjects, seconds).items()}


def checked_medians(torch, subjects, outputs, reference, seconds):
    """Runs each subject once; errors of outputs against the reference's, and then times in turns."""
    for subject in subjects.values():
        subject.call()
    torch.cuda.synchronize()
    errors = {key: error_of(o, outputs[reference]) for key, o in outputs.items()}
    return errors, medians(torch, subjects, seconds)


def against_peers(torch, engine, options, lengths, name, page_tokens=(), splits=()):
    """Ours, with pages and with splits, next to both of PyTorch's kernels."""
    batch = Batch(torch, engine, lengths)
    subjects, outputs = {}, {}
    subjects["lacuna"], outputs["lacuna"] = batch.launch(DENSE % "")
    for tokens in page_tokens:
        subjects[f"pages{tokens}"], outputs[f"pages{tokens}"] = batch.launch(DENSE % "", tokens)
    for split in splits:
        subjects[f"split{split}"], outputs[f"split{split}"] = batch.launch(DENSE % (', "tile": {"split_kv": %d}' % split))
    for peer in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
        try:
            subjects[peer], outputs[peer] = batch.peer(getattr(torch.nn.attention.SDPBackend, peer))
        except RuntimeError as error:
            print(f"  {peer}: {str(error).splitlines()[0]}")
    reference = "CUDNN_ATTENTION" if "CUDNN_ATTENTION" in outputs else "FLASH_ATTENTION"
    errors, times = checked_medians(torch, subjects, outputs, reference, options.seconds)
    read = sum(n_k for _, n_k in lengths) * HEADS_KV * HEAD_DIM * 2 * 2
    row = {"point": name, "time_us": times, "ratio": {key: round(t / times["lacuna"], 3) for key, t in times.items()},
           "rel_l1": errors, "tb_per_s": round(read / times["lacuna"] / 1e6, 3)}
    row["is_right"] = all(error < TOLERANCE for error in errors.values())
    print(f"{name}: " + ", ".join(f"{key} {t:.1f} us ({row['ratio'][key]:.3f})" for key, t in times.items()) +
          f"; {row['tb_per_s']} TB/s; rel L1 {max(errors.values()):.1e}", flush=True)
    return row


def copy_rate(torch):
    """TB/s of bytes read and written by a large copy."""
    a = torch.empty(1 << 30, device="cuda", dtype=torch.uint8).random_()
    b = torch.empty_like(a)
    time_us = medians(torch, {"copy": Launch(torch, lambda: b.copy_(a))}, 0.5)["copy"]
    return 2 * a.numel() / time_us / 1e6


def point_decode(torch, engine, options):
    return [against_peers(torch, engine, options, [(1, 8192)] * 64, "1 query of 8192 keys x 64", (16, 64)),
            against_peers(torch, engine, options, [(1, 131072)], "1 query of 131072 keys", (16, 64))]


def point_few(torch, engine, options):
    return [against_peers(torch, engine, options, [(n_q, 16384)] * 16, f"{n_q} queries of 16384 keys x 16", (64,)) for n_q in (4, 16, 64)]


def point_invariant(torch, engine, options):
    return [against_peers(torch, engine, options, [(1, 8192)] * 64, "the same with fixed splits", (), (1, 4)),
            against_peers(torch, engine, options, [(1, 131072)], "one with fixed splits", (), (8, 16))]


def against_16_bits(torch, engine, options, lengths, name, spec):
    """Keys and values in 8 bits, in rows and in pages, against 16 bits of the same numbers."""
    batch = Batch(torch, engine, lengths)
    batch.encode(0.02)
    subjects, outputs = {}, {}
    subjects["16 bits"], outputs["16 bits"] = batch.launch(spec)
    subjects["e4m3"], outputs["e4m3"] = batch.launch(spec, codes=True)
    for tokens in (16, 64):
        subjects[f"e4m3, pages{tokens}"], outputs[f"e4m3, pages{tokens}"] = batch.launch(spec, tokens, codes=True)
    errors, times = checked_medians(torch, subjects, outputs, "16 bits", options.seconds)
    speed = {key: round(times["16 bits"] / t, 3) for key, t in times.items()}
    print(f"e4m3, {name}: " + ", ".join(f"{key} {t:.1f} us ({speed[key]:.3f} x)" for key, t in times.items()) +
          f"; rel L1 {max(errors.values()):.1e}", flush=True)
    return {"point": f"e4m3, {name}", "time_us": times, "speed": speed, "rel_l1": errors,
            "is_right": all(error < TOLERANCE for error in errors.values())}


def point_e4m3(torch, engine, options):
    cases = [([(1, 8192)] * 64, "1 query of 8192 keys x 64", DENSE), ([(1, 131072)], "1 query of 131072 keys", DENSE),
             ([(16, 16384)] * 16, "16 queries of 16384 keys x 16", DENSE), ([(16384, 16384)], "causal, 16384 tokens", CAUSAL)]
    return [against_16_bits(torch, engine, options, lengths, name, spec % "") for lengths, name, spec in cases]


def reference_attention(torch, q, k, v):
    """Causal, aligned at the last tokens, of one sequence; q [32, n, d]."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=True)[0]


def point_prefill(torch, engine, options):
    draw = random.Random(3)
    lengths = [int(round(math.exp(draw.uniform(math.log(128), math.log(16384))))) for _ in range(32)]
    batch = Batch(torch, engine, [(n, n) for n in lengths])
    subjects, outputs = {}, {}
    subjects["lacuna"], outputs["lacuna"] = batch.launch(CAUSAL % "")
    for tokens in (16, 64):
        subjects[f"pages{tokens}"], outputs[f"pages{tokens}"] = batch.launch(CAUSAL % "", tokens)
    one = Batch(torch, engine, [(16384, 16384)])
    subjects["one of 16384"], _ = one.launch(CAUSAL % "")
    for tokens in (16, 64):
        subjects[f"one of 16384 in pages{tokens}"], _ = one.launch(CAUSAL % "", tokens)
    kernel = engine.compile(CAUSAL % "", head_dim=HEAD_DIM, shape=(1, HEADS, HEADS_KV, 16384, 16384))
    subjects["uniform 16384"] = Launch(torch, functools.partial(kernel, one.q, one.k, one.v, out=torch.empty_like(one.q)))
    for subject in subjects.values():
        subject.call()
    torch.cuda.synchronize()
    errors, first = [], 0
    for n in lengths:
        rows = slice(first, first + n)
        expected = reference_attention(torch, batch.q[0, :, rows], batch.k[0, :, rows], batch.v[0, :, rows])
        errors += [error_of(o[0, :, rows], expected) for o in outputs.values()]
        first += n
    times = medians(torch, subjects, options.seconds)
    work = sum(n * (n + 1) / 2 for n in lengths) / (16384 * 16385 / 2)
    over = {name: round(times[name] / (work * times["uniform 16384"]), 4) for name in outputs}
    tflops = 4 * HEAD_DIM * HEADS * 16384 * 16385 / 2 / times["uniform 16384"] / 1e6
    print(f"ragged prefill, {sum(lengths)} tokens: " + ", ".join(f"{name} {t:.1f} us" for name, t in times.items()) +
          f"; time over work at the uniform rate ({tflops:.0f} TFLOP/s): {over}; rel L1 {max(errors):.1e}", flush=True)
    in_pages = {tokens: round(times["one of 16384"] / times[f"one of 16384 in pages{tokens}"], 4) for tokens in (16, 64)}
    print(f"  one sequence of 16384 tokens, rate in pages over that in rows: {in_pages}", flush=True)
    return [{"point": "ragged prefill", "time_us": times, "over_uniform_rate": over, "rate_in_pages": in_pages, "rel_l1": max(errors),
             "is_right": max(errors) < TOLERANCE}]


USUAL_LENGTHS = (([(1, 8192)] * 64, "1 query of 8192 keys x 64"), ([(16384, 16384)], "16384 tokens"))


def by_family(torch, engine, options, name, spec, heads, parameters, batches=USUAL_LENGTHS, tolerance=TOLERANCE):
    """The planner's choice, in rows and in pages, against the mma family."""
    rows = []
    for lengths, what in batches:
        batch = Batch(torch, engine, lengths, heads)
        tensors = {key: make(len(lengths)) for key, make in parameters.items()}
        subjects, outputs = {}, {}
        for key, family, page_tokens in (("lacuna", "", 0), ("pages64", "", 64), ("mma", "mma", 0)):
            os.environ["LACUNA_ATTEND_FAMILY"] = family
            subjects[key], outputs[key] = batch.launch(spec, page_tokens, parameters=tensors)
        errors, times = checked_medians(torch, subjects, outputs, "mma", options.seconds)
        ratio = {key: round(t / times["mma"], 3) for key, t in times.items()}
        print(f"{name}, {what}: " + ", ".join(f"{key} {t:.1f} us ({ratio[key]:.3f})" for key, t in times.items()) +
              f"; rel L1 {max(errors.values()):.1e}", flush=True)
        rows.append({"point": f"{name}, {what}", "time_us": times, "of_mma": ratio, "rel_l1": errors,
                     "is_right": all(error < tolerance for error in errors.values())})
    os.environ.pop("LACUNA_ATTEND_FAMILY")
    return rows


def point_formulas(torch, engine, options):
    small = lambda heads: {"device": "cuda", "size": (heads,)}  # noqa: E731
    cases = [("sink", Heads(64, 8, 64), {"sink": lambda _: torch.rand(**small(64))}),
             ("alibi", Heads(), {"slope": lambda _: torch.rand(**small(HEADS)) / 8}),
             ("prefix-lm", Heads(), {"prefix": lambda count: torch.full((count,), 512, device="cuda", dtype=torch.int32)}),
             ("sigmoid", Heads(32, 8, 64), {})]
    rows = [row for name, heads, parameters in cases
            for row in by_family(torch, engine, options, name, (SPECS / f"{name}.json").read_text(), heads, parameters)]
    return rows + by_family(torch, engine, options, "causal, head dim 96", CAUSAL % "", Heads(32, 32, 96), {})


FEW_LONG = USUAL_LENGTHS + (([(1024, 8192)] * 4, "1024 queries of 8192 keys x 4"),)


def point_lists(torch, engine, options):
    cases = [("streaming", {}), ("topk-blocks", {}), ("flexprefill", {}), ("skip-softmax", {"c": lambda _: 60.0}), ("bsfa", {}),
             ("nsa", {}), ("minference-vertical-slash", {}), ("quest", {})]
    return [row for name, parameters in cases
            for row in by_family(torch, engine, options, name, (SPECS / f"{name}.json").read_text(), Heads(), parameters, FEW_LONG)]


def point_summaries(torch, engine, options):
    rows = []
    for name in ("quest", "topk-blocks", "moba-blocks"):
        for lengths, what in (([(1, 8192)] * 64, "1 query of 8192 keys x 64"), ([(1, 131072)], "1 query of 131072 keys")):
            batch = Batch(torch, engine, lengths)
            subjects, outputs = {}, {}
            subjects["dense"], _ = batch.launch(DENSE % "")
            subjects["anew"], outputs["anew"] = batch.launch((SPECS / f"{name}.json").read_text(), 64)
            subjects["stay"], outputs["stay"] = batch.keep_summaries(subjects["anew"])
            errors, times = checked_medians(torch, subjects, outputs, "anew", options.seconds)
            ratio = {key: round(t / times["dense"], 3) for key, t in times.items()}
            print(f"{name}, {what}: " + ", ".join(f"{key} {t:.1f} us ({ratio[key]:.3f})" for key, t in times.items()) +
                  f"; rel L1 {max(errors.values()):.1e}", flush=True)
            rows.append({"point": f"{name}, {what}", "time_us": times, "of_dense": ratio, "rel_l1": errors,
                         "is_right": all(error < TOLERANCE for error in errors.values())})
    return rows


def point_integers(torch, engine, options):
    return [row for name in ("sparge", "sparge-topk", "sale", "cascade", "twilight")
            for row in by_family(torch, engine, options, name, (SPECS / f"{name}.json").read_text(), Heads(), {}, FEW_LONG, INTEGER_TOLERANCE)]


POINTS = {name.removeprefix("point_"): call for name, call in vars(sys.modules[__name__]).items() if name.startswith("point_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", nargs="+", default=list(POINTS), choices=POINTS, metavar="POINT", help="all, or some of them")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to measure each point (1)")
    parser.add_argument("--templates", metavar="DIR", help="device headers in place of the embedded ones")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was measured")
    options = parser.parse_args()

    lacuna = load_lacuna()
    import torch

    engine = lacuna.Engine("cuda:0", template_path=options.templates)
    rate = copy_rate(torch)
    print(f"{engine.device_name}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}; a copy: {rate:.2f} TB/s", flush=True)
    rows = []
    for name in options.points:
        rows += POINTS[name](torch, engine, options)
        torch.cuda.empty_cache()
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"gpu": engine.device_name, "copy_tb_per_s": rate, "points": rows}, file, indent=1)
    return 0 if all(row["is_right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
