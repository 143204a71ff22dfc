#!/usr/bin/env python3
"""Ranks in processes of their own, each with a GPU, of which rank 1 is killed. Needs PyTorch and the Python module.

  group_drill.py FOLDER RANKS PLACE ...     PLACE: created, compiled, planned, launched, or "35 ms" after the first launch

Prints a JSON line for each place as soon as it is known: how the other ranks ended and how long after the kill. Good: each with
an error of the group, within 10 s. The ranks are forks of this process, which has loaded PyTorch and the module once and never asks for a
GPU. A place takes some seconds of starting and the time that the group is given; so several are tried side by side, each with
its own ranks.
"""
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpu.machine import load_lacuna  # noqa: E402

SPEC = '{"version": 1, "name": "causal", "attention": {"mask": "k <= q + n_k - n_q"}}'
SHAPE, OTHER_SHAPE = (1, 32, 8, 16384, 16384), (1, 32, 8, 8192, 8192)
TIMEOUT_S, LIMIT_S, START_S, LAUNCHES, LINK_GB_S = 3.0, 10.0, 30, 400, 200.0
AT_A_TIME = 4
CODES = ("E0712", "E0713")  # an error of NCCL, a rank that is lost
LOST = 3  # exit status


def await_file(path, seconds=START_S, is_over=lambda: False):
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end or (is_over() and not path.exists()):
            raise TimeoutError(f"no {path.name} within {seconds} s, or its rank has ended")
        time.sleep(0.002)
    return path.read_bytes()


def write_whole(path, data):
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.rename(path)


def run_rank(lacuna, rank, size, place, folder):
    import torch

    def arrive(here):
        if rank == 1 and here == place:
            write_whole(folder / "killed", str(time.time()).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    torch.cuda.set_device(rank)
    device = f"cuda:{rank}"
    if rank == 0:
        write_whole(folder / "id", lacuna.Group.unique_id(device))
    group = lacuna.Group.from_unique_id(await_file(folder / "id"), rank, size, device=device, timeout_s=TIMEOUT_S, link_gb_s=LINK_GB_S)
    arrive("created")
    group.plan(SPEC, shape=OTHER_SHAPE)
    arrive("compiled")  # a plan of another shape is made of the same kernel
    plan = group.plan(SPEC, shape=SHAPE)
    arrive("planned")
    batch, heads, heads_kv, n_q, n_k = plan.shape
    make = lambda h, n: torch.zeros(batch, h, n, 128, device=device, dtype=torch.bfloat16)
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


class Rank:
    """A fork that runs a rank; what it says goes to a file."""

    def __init__(self, lacuna, number, size, place, folder):
        self.said, self.status = folder / f"rank{number}.txt", None
        self.process = os.fork()
        if self.process:
            return
        with open(self.said, "wb") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        status = 0
        try:
            run_rank(lacuna, number, size, place, folder)
        except lacuna.Error as error:
            print(error)
            status = LOST
        except BaseException:  # noqa: BLE001: a fork must not go on as its parent
            traceback.print_exc(file=sys.stdout)
            status = 1
        sys.stdout.flush()
        os._exit(status)  # what the device still does is of no interest

    def is_over(self):
        if self.status is None:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if ended else None
        return self.status is not None

    def kill(self):
        if not self.is_over():
            os.kill(self.process, signal.SIGKILL)

    def text(self):
        return self.said.read_text(errors="replace").strip() if self.said.exists() else ""


def drill(lacuna, size, place, folder):
    folder.mkdir(parents=True)
    ranks = [Rank(lacuna, number, size, place, folder) for number in range(size)]
    others = [rank for number, rank in enumerate(ranks) if number != 1]
    try:
        if place.endswith(" ms"):
            await_file(folder / "launched1", is_over=ranks[1].is_over)
            time.sleep(float(place.split()[0]) / 1000)
            ranks[1].kill()
            killed = time.time()
        else:
            killed = float(await_file(folder / "killed", is_over=ranks[1].is_over))
        while not all(rank.is_over() for rank in others) and time.time() - killed <= LIMIT_S:
            time.sleep(0.002)
        seconds = time.time() - killed
        good = seconds <= LIMIT_S and all(
            rank.status == LOST and any(f"[{code}]" in rank.text() for code in CODES) for rank in others)
        return {"good": good, "seconds": round(seconds, 2), "exits": [rank.status for rank in others],
                "said": [rank.text()[-200:] for rank in others]}
    except TimeoutError as error:
        return {"good": False, "error": str(error), "said": [rank.text()[-200:] for rank in ranks]}
    finally:
        for rank in ranks:
            rank.kill()
        while not all(rank.is_over() for rank in ranks):
            time.sleep(0.002)


def report(lacuna, size, place, folder):
    begin = time.monotonic()
    row = drill(lacuna, size, place, folder / f"drill-{place.replace(' ', '')}-{os.getpid()}")
    line = json.dumps({"place": place, **row, "whole_s": round(time.monotonic() - begin, 1)})
    os.write(1, (line + "\n").encode())  # one call, so that lines of several places stay whole


def run_forks(bodies):
    """Each in a fork of its own, AT_A_TIME at once."""
    running = set()
    for body in bodies:
        if len(running) == AT_A_TIME:
            running.remove(os.wait()[0])
        process = os.fork()
        if process == 0:
            status = 0
            try:
                body()
            except BaseException:  # noqa: BLE001: a fork must not go on as its parent
                traceback.print_exc()
                status = 1
            os._exit(status)
        running.add(process)
    while running:
        running.remove(os.wait()[0])


def main():
    folder, size, places = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    lacuna = load_lacuna()
    import torch  # noqa: F401: for the forks

    run_forks([lambda place=place: report(lacuna, size, place, folder) for place in places])


if __name__ == "__main__":
    sys.exit(main())
