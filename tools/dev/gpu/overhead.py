#!/usr/bin/env python3
"""What a call from Python costs on the host, in us: a JSON line. The problem is that of tests/bench/startup_bench.cpp, whose
launch_us is the same launch from C++: bsfa on one head of 128 tokens, d 128, bf16. Needs PyTorch and the Python module.
"""
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpu.machine import load_lacuna  # noqa: E402

LAUNCHES, BURSTS = 500, 10  # as many as startup_bench: the queue of the driver never fills
SHAPE, KEEP = (1, 1, 128, 128), -1e30  # a threshold that leaves out nothing


def calls_of(lacuna, torch):
    import lacuna.torch

    q, k, v = (torch.zeros(SHAPE, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    kernel = lacuna.compile("bsfa", head_dim=SHAPE[-1], dtype="bf16", device="cuda:0")
    out, workspace = torch.empty_like(q), torch.empty(max(kernel.workspace(q, k), 1), device="cuda", dtype=torch.uint8)
    return {"kernel, all given": lambda: kernel(q, k, v, out=out, workspace=workspace, threshold=KEEP),
            "kernel, out given": lambda: kernel(q, k, v, out=out, threshold=KEEP),
            "kernel": lambda: kernel(q, k, v, threshold=KEEP),
            "attention": lambda: lacuna.attention(q, k, v, spec="bsfa", threshold=KEEP),
            "operator": lambda: lacuna.torch.attention(q, k, v, "bsfa", threshold=KEEP),
            "sdpa": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)}


def microseconds(torch, call):
    best = float("inf")
    for _ in range(BURSTS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            call()
        best = min(best, (time.perf_counter() - begin) / LAUNCHES * 1e6)
    return round(best, 2)


def main():
    lacuna = load_lacuna()
    import torch

    with torch.no_grad():
        print(json.dumps({name: microseconds(torch, call) for name, call in calls_of(lacuna, torch).items()}))


if __name__ == "__main__":
    main()
