#!/usr/bin/env python3
"""Two ranks in processes of their own, on cuda:0 and cuda:1, of which rank 1 is killed. Needs PyTorch and the Python module.

  group_drill.py PLACE FOLDER     PLACE: created, compiled, planned, launched, or "35 ms" after the first launch

Prints a JSON line: how rank 0 ended and how long after the kill. Good: with an error of the library, within 10 s.
"""
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpu.machine import load_lacuna  # noqa: E402

SPEC = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'
SHAPE, OTHER_SHAPE = (1, 32, 8, 16384, 16384), (1, 32, 8, 8192, 8192)
TIMEOUT_S, LIMIT_S, LAUNCHES, LINK_GB_S = 5.0, 10.0, 400, 200.0


def await_file(path, seconds=30):
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(path.name)
        time.sleep(0.005)
    return path.read_bytes()


def write_whole(path, data):
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.rename(path)


def run_rank(lacuna, rank, place, folder):
    import torch

    def arrive(here):
        if rank == 1 and here == place:
            write_whole(folder / "killed", str(time.time()).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    torch.cuda.set_device(rank)
    device = f"cuda:{rank}"
    if rank == 0:
        write_whole(folder / "id", lacuna.Group.unique_id(device))
    group = lacuna.Group.from_unique_id(await_file(folder / "id"), rank, 2, device=device, timeout_s=TIMEOUT_S, link_gb_s=LINK_GB_S)
    arrive("created")
    group.plan(SPEC, shape=OTHER_SHAPE)
    arrive("compiled")  # a plan of another shape is made of the same kernel
    plan = group.plan(SPEC, shape=SHAPE)
    arrive("planned")
    batch, heads, heads_kv, n_q, n_k = plan.shape
    make = lambda h, n: torch.randn(batch, h, n, 128, device=device, dtype=torch.bfloat16)
    q, k, v, o = make(heads, n_q), make(heads_kv, n_k), make(heads_kv, n_k), make(heads, n_q)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for n in range(LAUNCHES):
            plan(q, k, v, out=o)
            arrive("launched")
            if n == 0:
                write_whole(folder / f"launched{rank}", b"")
            if n % 4 == 3:
                group.synchronize()
        group.synchronize()


def start(rank, place, folder):
    return subprocess.Popen([sys.executable, __file__, place, folder, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def drill(place, folder):
    folder.mkdir(parents=True)
    ranks = [start(rank, place, folder) for rank in (0, 1)]
    try:
        if place.endswith(" ms"):
            await_file(folder / "launched1", 60)
            time.sleep(float(place.split()[0]) / 1000)
            ranks[1].kill()
            killed = time.time()
        else:
            killed = float(await_file(folder / "killed", 60))
        out, _ = ranks[0].communicate(timeout=LIMIT_S + 20)
        seconds = time.time() - killed
        good = ranks[0].returncode == 3 and seconds <= LIMIT_S
        print(json.dumps({"good": good, "seconds": round(seconds, 2), "exit": ranks[0].returncode, "said": out.strip()[-200:]}))
    finally:
        for process in ranks:
            process.kill()
            process.wait()


def main():
    place, folder = sys.argv[1], Path(sys.argv[2])
    if len(sys.argv) == 3:
        drill(place, folder / f"drill-{place.replace(' ', '')}-{os.getpid()}")
        return 0
    lacuna = load_lacuna()
    try:
        run_rank(lacuna, int(sys.argv[3]), place, folder)
    except lacuna.Error as error:
        print(error)
        sys.stdout.flush()
        os._exit(3)  # what the device still does is of no interest
    return 0


if __name__ == "__main__":
    sys.exit(main())
