#!/usr/bin/env python3
"""Attention of one problem on several GPUs, next to one GPU and to PyTorch's own ways.

  torchrun --standalone --nproc-per-node 2 runtime/examples/context_parallel.py
  torchrun --standalone --nproc-per-node 2 runtime/examples/context_parallel.py --spec sparge-topk --param ratio=0.25
  python runtime/examples/context_parallel.py --backend loopback --ranks 3 --tokens 1000    threads on the CPU, NumPy, no GPU

Each rank holds a part of q, k, v and o: contiguous shards of the tokens, or stripes, which balance causal attention. Prints what
each scheme would send and compute, the times, and whether the results are those of one GPU; if not, the exit status is 1. With
the spec "causal" PyTorch's ways are timed too: K and V gathered, then scaled_dot_product_attention, and its context parallel.
"""
import argparse
import concurrent.futures
import json
import sys
import time

import lacuna
import numpy

CAUSAL = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["nccl", "loopback"], default="nccl", help="GPUs of torchrun, or threads (default: nccl)")
    parser.add_argument("--ranks", type=int, default=2, help="of the loopback (default: 2)")
    parser.add_argument("--spec", default="causal", help="causal, a spec that comes along, or a file (default: causal)")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=NUMBER", help="of the spec")
    parser.add_argument("--tokens", type=int, default=32768, help="of the whole (default: 32768)")
    parser.add_argument("--heads", type=int, default=32, help="(default: 32)")
    parser.add_argument("--heads-kv", type=int, default=8, help="(default: 8)")
    parser.add_argument("--head-dim", type=int, default=128, help="(default: 128)")
    parser.add_argument("--layout", choices=["contiguous", "striped", "heads"], default="striped", help="(default: striped)")
    parser.add_argument("--stripe", type=int, default=0, help="tokens of a stripe (default: two stripes a rank)")
    parser.add_argument("--scheme", choices=["auto", "gather", "rows", "heads"], default="auto", help="(default: auto)")
    parser.add_argument("--repeats", type=int, default=20, help="calls that are timed (default: 20)")
    parser.add_argument("--peers", choices=["all", "gather", "none"], default="all", help="which of PyTorch's ways (default: all)")
    parser.add_argument("--timeout", type=float, default=60, help="how long a rank waits for others, in seconds (default: 60)")
    parser.add_argument("--json", action="store_true", help="also print what was measured as the last line")
    options = parser.parse_args()
    options.parameters = {name: float(value) for name, _, value in (word.partition("=") for word in options.param)}
    return options


class Problem:
    """What all ranks agree on."""

    def __init__(self, options, ranks):
        n, self.options = options.tokens, options
        self.spec = lacuna.Spec(CAUSAL, "causal") if options.spec == "causal" else options.spec
        self.shape = (1, options.heads, options.heads_kv, n, n)
        self.layout = {"layout": options.layout, "stripe": options.stripe or max(1, -(-n // (2 * ranks)))}

    def part(self, group, array):
        """This rank's rows and heads of a tensor of the whole, q or o, or k or v."""
        of_keys = array.shape[1] == self.options.heads_kv
        heads = group.heads(self.options.heads, self.options.heads_kv, self.options.layout)[1 if of_keys else 0]
        return array[:, heads][:, :, group.tokens(self.options.tokens, **self.layout)]

    def call(self, group, q, k, v):
        return lambda: group.attention(q, k, v, spec=self.spec, shape=self.shape, scheme=self.options.scheme, **self.layout,
                                       **self.options.parameters)

    def table(self, group, dtype):
        return group.plan(self.spec, shape=self.shape, head_dim=self.options.head_dim, dtype=dtype, scheme=self.options.scheme,
                          **self.layout).table


def relative_l1(found, expected):
    return float(abs(found - expected).sum() / abs(expected).sum())


def print_table(table):
    print(f"{table['ranks']} ranks, {table['layout']}: {table['scheme']}, {table['because']}")
    for scheme in table["schemes"]:
        if scheme["possible"]:
            print(f"  {scheme['scheme']:7} sends {scheme['sent_bytes_total'] / 2**20:8.1f} MiB, imbalance {scheme['imbalance']:.3f}, "
                  f"about {scheme['total_us'] / 1e3:.2f} ms")
        else:
            print(f"  {scheme['scheme']:7} not possible: {scheme['reason']}")


def print_result(times_ms, errors, bound, facts, options):
    """Returns the exit status."""
    ranks, worst = len(errors), max(errors)
    print(f"group {times_ms['group']:.3f} ms, one {times_ms['one']:.3f} ms: efficiency {times_ms['one'] / times_ms['group'] / ranks:.3f}")
    for name, time_ms in times_ms.items():
        if name not in ("group", "one"):
            print(f"{name} {time_ms:.3f} ms: {time_ms / times_ms['group']:.3f} times as long as the group")
    is_right = worst <= bound
    print(f"each rank has {'the results of one GPU' if is_right else 'WRONG RESULTS'}: " +
          ("bit for bit" if worst == 0 else f"relative L1 error {worst:.1e}"))
    if options.json:
        print(json.dumps({"ranks": ranks, "tokens": options.tokens, "spec": options.spec, "time_ms": times_ms, "rel_l1": worst, **facts}))
    return 0 if is_right else 1


def run_loopback(options):
    groups = lacuna.Group.loopback(options.ranks, timeout_s=options.timeout)
    problem = Problem(options, options.ranks)
    draw = numpy.random.default_rng(0).standard_normal
    q, k, v = (draw((1, heads, options.tokens, options.head_dim), "float32") for heads in (options.heads, options.heads_kv, options.heads_kv))

    def seconds(call):
        begin = time.perf_counter()
        result = call()
        return time.perf_counter() - begin, result

    def rank(group):
        call = problem.call(group, *(numpy.ascontiguousarray(problem.part(group, array)) for array in (q, k, v)))
        call()  # compiles and plans
        return min((seconds(call) for _ in range(options.repeats)), key=lambda timed: timed[0])

    with concurrent.futures.ThreadPoolExecutor(options.ranks) as pool:
        parts = list(pool.map(rank, groups))
        print_table(list(pool.map(lambda group: problem.table(group, "f32"), groups))[0])
    alone = lambda: lacuna.attention(q, k, v, spec=problem.spec, **options.parameters)  # noqa: E731
    one_s, expected = min((seconds(alone) for _ in range(options.repeats + 1)), key=lambda timed: timed[0])
    errors = [relative_l1(o, problem.part(group, expected)) for group, (_, o) in zip(groups, parts)]
    return print_result({"group": 1e3 * max(time_s for time_s, _ in parts), "one": 1e3 * one_s}, errors, 1e-5, {}, options)


def time_of(torch, call, repeats):
    """ms of a call, of the slowest rank."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    torch.distributed.barrier()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize()
    time_ms = torch.tensor(begin.elapsed_time(end) / repeats, device="cuda")
    torch.distributed.all_reduce(time_ms, torch.distributed.ReduceOp.MAX)
    return time_ms.item()


def gather_then_sdpa(torch, rank, ranks, q, k, v):
    """Causal attention as PyTorch has it in parts: each rank holds chunks `rank` and `2 ranks - 1 - rank` of the tokens, which
    balances it, gathers K and V, and attends with each of its chunks to the keys up to its end. Returns the call of it."""
    from torch.nn.attention.bias import causal_lower_right
    from torch.nn.functional import scaled_dot_product_attention

    length = q.shape[2] // (2 * ranks)
    chunks = (rank, 2 * ranks - 1 - rank)
    mine = [[x[:, :, length * chunk:length * (chunk + 1)].contiguous() for chunk in chunks] for x in (q, k, v)]
    sent = torch.stack([torch.stack(mine[1]), torch.stack(mine[2])])  # [k or v, chunk, b, h, n, d]
    held = torch.empty((ranks, *sent.shape), dtype=q.dtype, device=q.device)
    order = [(chunk, 0) if chunk < ranks else (2 * ranks - 1 - chunk, 1) for chunk in range(2 * ranks)]

    def call():
        torch.distributed.all_gather_into_tensor(held.view(-1), sent.view(-1))
        whole_k, whole_v = (torch.cat([held[holder, which, place] for holder, place in order], dim=2) for which in (0, 1))
        outputs = []
        for x, chunk in zip(mine[0], chunks):
            seen = length * (chunk + 1)
            outputs.append(scaled_dot_product_attention(x, whole_k[:, :, :seen], whole_v[:, :, :seen],
                                                        attn_mask=causal_lower_right(length, seen), enable_gqa=True))
        return torch.cat(outputs, dim=2)

    return call, torch.cat([torch.arange(length * chunk, length * (chunk + 1), device=q.device) for chunk in chunks])


def time_context_parallel(torch, ranks, q, k, v, repeats):
    """ms of PyTorch's own context parallel, which replaces scaled_dot_product_attention meanwhile: the last that is measured."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mesh = init_device_mesh("cuda", (ranks,))
    buffers = [x.clone() for x in (q, k, v)]
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]), context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2]):
        return time_of(torch, lambda: torch.nn.functional.scaled_dot_product_attention(*buffers, is_causal=True, enable_gqa=True), repeats)


def time_peers(torch, rank, ranks, q, k, v, expected, options):
    times = {}
    if options.spec != "causal" or options.peers == "none" or options.tokens % (2 * ranks):
        return times
    call, rows = gather_then_sdpa(torch, rank, ranks, q, k, v)
    error = relative_l1(call().float(), expected[:, :, rows].float())
    if error > 2e-2:
        raise SystemExit(f"PyTorch's attention over gathered keys: relative L1 error {error:.1e}")
    times["PyTorch, gathered keys"] = time_of(torch, call, options.repeats)
    if options.peers == "all":
        try:
            times["PyTorch's context parallel"] = time_context_parallel(torch, ranks, q, k, v, options.repeats)
        except Exception as error:  # noqa: BLE001: a prototype of PyTorch's, which refuses what it does not know
            if rank == 0:
                print(f"PyTorch's context parallel: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    return times


def run_nccl(options):
    import os

    import torch
    import torch.distributed

    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    group = lacuna.Group.from_torch(timeout_s=options.timeout)
    problem = Problem(options, group.size)
    torch.manual_seed(0)  # the same values on all ranks
    q, k, v = (torch.randn((1, heads, options.tokens, options.head_dim), device="cuda", dtype=torch.bfloat16)
               for heads in (options.heads, options.heads_kv, options.heads_kv))
    rows = [torch.as_tensor(group.tokens(options.tokens, **problem.layout), device="cuda")]
    heads = group.heads(options.heads, options.heads_kv, options.layout)

    def part(x, of_keys):
        return x[:, heads[of_keys]].index_select(2, rows[0]).contiguous()

    call = problem.call(group, part(q, 0), part(k, 1), part(v, 1))
    found = call()
    group.synchronize()
    table = problem.table(group, "bf16")
    if group.rank == 0:
        print_table(table)
    alone = lambda: lacuna.attention(q, k, v, spec=problem.spec, **options.parameters)  # noqa: E731
    expected = alone()
    errors = torch.tensor([0.0] * group.size, device="cuda")
    errors[group.rank] = relative_l1(found.float(), part(expected, 0).float())
    torch.distributed.all_reduce(errors)
    times = {"group": time_of(torch, call, options.repeats), "one": time_of(torch, alone, options.repeats)}
    times.update(time_peers(torch, group.rank, group.size, q, k, v, expected, options))
    status = 0
    if group.rank == 0:
        facts = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "table": table}
        status = print_result(times, errors.tolist(), 1e-2, facts, options)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    return status


if __name__ == "__main__":
    options = arguments()
    sys.exit(run_loopback(options) if options.backend == "loopback" else run_nccl(options))
