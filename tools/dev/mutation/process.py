"""Programs that a mutant may have made endless, greedy or careless: each with its limits, and none outlives its call."""

import os
import resource
import signal
import subprocess
import tempfile

TIMED_OUT = 124
MOST_MEMORY_BYTES = 16 << 30
MOST_FILE_BYTES = 16 << 30  # tests make vast files without contents
KEPT_CHARACTERS = 200_000


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a test that wants a larger file is told so, and is skipped


def spent_s():
    """Processor seconds of all that has been run and has ended: on a busy machine the same as on an idle one."""
    times = os.times()
    return times.children_user + times.children_system


def sh(command, cwd=None, env=None, timeout_s=None):
    """Runs a command; returns its status, and the last of what it wrote. Past its time, and where this process is
    interrupted, it is killed with all its children."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   cwd=cwd, env=env, start_new_session=True, preexec_fn=_limit)
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = TIMED_OUT
        finally:
            try:  # also what it left behind
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        end = output.seek(0, os.SEEK_END)
        output.seek(max(0, end - KEPT_CHARACTERS))
        text = output.read().decode(errors="replace")
    return subprocess.CompletedProcess(command, status, text)


def sh_lines(command):
    """Of a command that writes more than sh() keeps."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout.splitlines()
