"""The machine that measures: calls of the packed programs, none longer than its limit, and their JSON reports."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CARRY = ROOT / ".carry"
SPECS = ROOT / "specs"
TIMED_OUT = 124


def load_lacuna():
    """The Python module: the one that is installed or on the path, else the packed one."""
    sys.path.append(str(CARRY / "python"))
    try:
        import lacuna
    except ImportError as error:
        sys.exit(f"no Python module lacuna ({error}): pip install ./runtime/python, or pack it: tools/dev/gpu_check.py pack --python INTERPRETER")
    return lacuna


def sh(command, timeout_s=None, **options):
    """Runs a command with all its children; past its time they are killed and it returns TIMED_OUT."""
    process = subprocess.Popen([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True, **options)
    try:
        out, error = process.communicate(timeout=timeout_s)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, error = process.communicate()
        code, error = TIMED_OUT, f"{error}no end within {timeout_s} s"
    return subprocess.CompletedProcess(command, code, out, error)


def sh_lines(command, take, timeout_s, **options):
    """Runs a command with all its children and hands each line of its output to `take` as it comes. What it has said
    that was not taken for a row (`take` returns False) is in `stdout`; past its time it is killed as by `sh`."""
    process = subprocess.Popen([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, **options)
    timed_out = threading.Event()

    def end():
        timed_out.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer, said = threading.Timer(timeout_s, end), []
    timer.start()
    try:
        said = [line for line in process.stdout if not take(line)]
        code = process.wait()
    finally:
        timer.cancel()
    if timed_out.is_set():
        code = TIMED_OUT
        said.append(f"no end within {timeout_s} s")
    return subprocess.CompletedProcess(command, code, "".join(said), "")


class Run:
    """One run of the steps: where results go, and which points of a step are wanted."""

    def __init__(self, out, only=None, device="cuda:0"):
        self.out = out
        self.device = device
        self.only = re.compile(only) if only else None
        self.bin = CARRY / "bin"
        self.env = dict(os.environ, LACUNA_TEST_DEVICE=device, LACUNA_TEST_SOURCE_DIR=str(ROOT),
                        LACUNA_CACHE_DIR=str(out / "cache"))
        self.samples = sorted((CARRY / "data").glob("*k.safetensors"))
        if self.samples:
            self.env["LACUNA_SAMPLES"] = str(CARRY / "data")

    def wants(self, point):
        return self.only is None or self.only.search(point) is not None

    def program(self, name, *arguments, before=(), more_env=None, timeout_s=60):
        return sh([*before, self.bin / name, *arguments], timeout_s, env={**self.env, **(more_env or {})}, cwd=ROOT)

    def report(self, verb, *arguments, **options):
        """What `lacuna VERB ... --json` says; where it failed, {"error", "exit"}."""
        result = self.program("lacuna", verb, *arguments, "--device", self.device, "--json", **options)
        if result.returncode == 0:
            return json.loads(result.stdout)
        return {"exit": result.returncode, "error": error_text(result)[-500:]}


def error_text(result):
    """The messages of a failed call's JSON document, else what it wrote as text."""
    try:
        return "; ".join(diagnostic["message"] for diagnostic in json.loads(result.stdout)["diagnostics"])
    except (ValueError, KeyError):
        return (result.stderr or result.stdout).strip()


def keep(rows, row):
    """Adds a row and shows it, so that a run that is cut short has said what it knew."""
    rows.append(row)
    print(json.dumps(row)[:700], flush=True)


def pick(report, *names):
    """These fields of a report, or its error."""
    return {name: report[name] for name in (*names, "exit", "error") if name in report}
