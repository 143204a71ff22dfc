#!/usr/bin/env python3
"""Two ranks in processes of their own, on cuda:0 and cuda:1, of which rank 1 is killed. Needs PyTorch for memory.

  group_drill.py LIBLACUNA PLACE FOLDER     PLACE: created, compiled, planned, launched, or "35 ms" after the first launch

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
SPEC = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'
SHAPE = (1, 32, 8, 16384, 16384)
TIMEOUT_S, LIMIT_S, LAUNCHES = 5.0, 10.0, 400


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


def run_rank(library, rank, place, folder):
    import torch
    from lacuna_abi import Engine, Group, LaunchArgs, tensor, unique_id
    import ctypes

    def arrive(here):
        if rank == 1 and here == place:
            write_whole(folder / "killed", str(time.time()).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    torch.cuda.set_device(rank)
    device = f"cuda:{rank}"
    engine = Engine(library, device)
    if rank == 0:
        write_whole(folder / "id", unique_id(engine))
    group = Group(engine, rank, 2, await_file(folder / "id"), TIMEOUT_S)
    arrive("created")
    kernel = group.compile(SPEC, 128)
    arrive("compiled")
    plan, (batch, heads, heads_kv, n_q, n_k), workspace_bytes = group.plan(kernel, SHAPE)
    arrive("planned")
    make = lambda h, n: torch.randn(batch, h, n, 128, device=device, dtype=torch.bfloat16)
    tensors = {"q": make(heads, n_q), "k": make(heads_kv, n_k), "v": make(heads_kv, n_k), "o": make(heads, n_q)}
    workspace = torch.empty(workspace_bytes + 256, device=device, dtype=torch.uint8)
    stream = torch.cuda.Stream()
    args = LaunchArgs(workspace=(workspace.data_ptr() + 255) // 256 * 256, workspace_bytes=workspace_bytes,
                      stream=stream.cuda_stream)
    views = {name: tensor(t.data_ptr(), t.shape, t.stride(), "bf16", device) for name, t in tensors.items()}
    for name, view in views.items():
        setattr(args, name, ctypes.pointer(view))
    torch.cuda.synchronize()
    for n in range(LAUNCHES):
        group.launch(plan, args)
        arrive("launched")
        if n == 0:
            write_whole(folder / f"launched{rank}", b"")
        if n % 4 == 3:
            group.synchronize(stream.cuda_stream)
    group.synchronize(stream.cuda_stream)


def start(library, rank, place, folder):
    return subprocess.Popen([sys.executable, __file__, library, place, folder, str(rank)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def drill(library, place, folder):
    folder.mkdir(parents=True)
    ranks = [start(library, rank, place, folder) for rank in (0, 1)]
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
    library, place, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if len(sys.argv) == 4:
        drill(library, place, folder / f"drill-{place.replace(' ', '')}-{os.getpid()}")
        return 0
    from lacuna_abi import LacunaError
    try:
        run_rank(library, int(sys.argv[4]), place, folder)
    except LacunaError as error:
        print(error)
        os._exit(3)  # what the device still does is of no interest
    return 0


if __name__ == "__main__":
    sys.exit(main())
