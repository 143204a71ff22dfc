"""The `lacuna` command that comes with the package: what check, explain, specs, run and calibrate are made of.

Reports are the command's own, read from its --json document: one implementation, the same words and figures as on a
terminal. It runs as a process of its own, with a GPU context of its own, so that a crash ends it alone.
"""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from .errors import kind_of

if TYPE_CHECKING:
    from .spec import Spec

PROGRAM = pathlib.Path(__file__).with_name("bin") / "lacuna"
INTERRUPTED = (130, 143)
_STDIN = "<stdin>"  # how the command names what it is given as "-"


def _run(words: Sequence[str], spec: "Spec | None", progress: bool = False,
         cache_directory: str | None = None) -> subprocess.CompletedProcess:
    """Ctrl-C reaches the command too, which then ends by itself and says what it has found."""
    variables = {**os.environ, "LACUNA_CACHE_DIR": cache_directory} if cache_directory else None
    with subprocess.Popen([PROGRAM, *words], env=variables, stdin=subprocess.PIPE if spec else subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=None if progress else subprocess.PIPE, encoding="utf-8", errors="replace") as process:
        try:
            out, said = process.communicate(spec.text if spec else None)
        except KeyboardInterrupt:
            out, said = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, said)


def _fail(words: Sequence[str], spec: "Spec | None", status: int, document: dict) -> NoReturn:
    """The same call once more, as a person would make it: those words have the carets."""
    text = _run(words, spec).stderr.strip() or f"lacuna {words[0]}: exit status {status}"
    diagnostics = document.get("diagnostics", [])
    if spec:
        text = text.replace(_STDIN, spec.path)
        for diagnostic in diagnostics:
            if diagnostic.get("path") == _STDIN:
                diagnostic["path"] = spec.path
    raise kind_of(status, diagnostics)(text, diagnostics)


def call(*words: str, spec: "Spec | None" = None, progress: bool = False, cache_directory: str | None = None) -> dict:
    """The document of `lacuna WORDS --json`. `spec` is what it reads where a file is named "-"; progress: it writes to
    our stderr meanwhile; cache_directory: in place of the usual one. The exit status is in the document as "exit": 0, or
    one of INTERRUPTED."""
    done = _run([*words, "--json"], spec, progress, cache_directory)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = {}
    if done.returncode in INTERRUPTED and not document:
        raise KeyboardInterrupt
    if done.returncode not in (0, *INTERRUPTED):
        _fail(words, spec, done.returncode, document)
    return {**document, "exit": done.returncode}


def text_of(*words: str, spec: "Spec | None" = None, cache_directory: str | None = None) -> str:
    """What `lacuna WORDS` prints."""
    done = _run(words, spec, cache_directory=cache_directory)
    if done.returncode != 0:
        _fail(words, spec, done.returncode, {})
    return done.stdout


def main() -> None:
    """The script `lacuna`."""
    os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
