"""What a side of a comparison consists of: the generated source of each case, and the device headers."""
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sass.declarations import DROPPED, INCLUDE, fingerprint, parse, reached

ROOT = Path(__file__).resolve().parents[3]
COMPILED = ROOT / "build" / "same-sass" / "compiled"


def stop(message):
    print(f"same_sass: {message}", file=sys.stderr)
    sys.exit(3)


@dataclass(frozen=True, order=True)
class Case:
    spec: str
    arch: str
    head_dim: int
    dtype: str
    batch: str = "uniform"

    def name(self):
        return f"{self.spec}.{self.arch}.d{self.head_dim}.{self.dtype}.{self.batch}"


@dataclass
class Side:
    path: Path
    templates: Path
    sources: dict = field(default_factory=dict)  # Case -> text; "" where the target refuses the spec
    headers: dict = field(default_factory=dict)  # path below templates -> its declarations, and the headers that it includes

    def header(self, name):
        if name not in self.headers:
            text = (self.templates / name).read_text()
            self.headers[name] = parse(text), INCLUDE.findall(text)
        return self.headers[name]


class Kernel:
    """One kernel of a generated source: a text that compiles by itself."""

    def __init__(self, side, text):
        self.side, self.text = side, text
        self.name = re.findall(r"^(\w+)\(const __grid_constant__", text, re.MULTILINE)[-1]
        self.order = reached(self.declarations())
        self.fingerprint = fingerprint(self.order)

    def declarations(self):
        found, seen = [], set()

        def include(name):
            if name in seen:
                return
            seen.add(name)
            declarations, includes = self.side.header(name)
            for other in includes:
                include(other)
            found.extend(declarations)

        for name in INCLUDE.findall(self.text):
            include(name)
        return found + parse(self.text)

    def flat_text(self):
        """With every header in place of its first #include."""
        seen = set()

        def flatten(text):
            for line in text.split("\n"):
                include = INCLUDE.match(line)
                if not include:
                    yield line if not DROPPED.match(line) else ""
                elif include.group(1) not in seen:
                    seen.add(include.group(1))
                    yield from flatten((self.side.templates / include.group(1)).read_text())

        return "\n".join(flatten(self.text))


def spec_files(checkout):
    files = [p for p in (checkout / "specs").glob("*.json") if p.stem != "schema"]
    return sorted(files + list((checkout / "specs" / "examples").glob("*.json")))


def emit(command, checkout, path, case):
    environment = dict(os.environ, LACUNA_CACHE_DIR=str(COMPILED.parent / "no-tuning"))
    # --form, by the name that older checkouts know, too.
    run = subprocess.run([command, "emit", "--stage", "cuda", path, "--arch", case.arch, "--head-dim", str(case.head_dim),
                          "--dtype", case.dtype, "--batch", case.batch],
                         cwd=checkout, env=environment, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        stop(f"{command} emit {path} --arch {case.arch}: exit {run.returncode}\n{run.stderr}")
    return run.stdout if run.returncode == 0 else ""


def read_checkout(checkout, build, cases_of):
    command = checkout / build / "bin" / "lacuna"
    if not command.exists():
        stop(f"{command} is not built")
    side = Side(checkout, checkout / "templates")
    work = [(path.relative_to(checkout), case) for path in spec_files(checkout) for case in cases_of(path.stem)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda item: emit(command, checkout, item[0], item[1]), work)
        side.sources = dict(zip([case for _, case in work], texts))
    return side


def read_snapshot(folder, cases_of):
    side = Side(folder, folder / "templates")
    for record in json.loads((folder / "same-sass.json").read_text()):
        case = Case(**record)
        if case in cases_of(case.spec):
            side.sources[case] = (folder / (case.name() + ".cu")).read_text()
    return side


def read_side(path, build, cases_of):
    path = Path(path).resolve()
    return read_snapshot(path, cases_of) if (path / "same-sass.json").exists() else read_checkout(path, build, cases_of)


def write_snapshot(side, folder):
    if folder.exists() and not (folder / "same-sass.json").exists():
        stop(f"{folder} is there and is no snapshot")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(side.templates, folder / "templates")
    for case, text in side.sources.items():
        (folder / (case.name() + ".cu")).write_text(text)
    (folder / "same-sass.json").write_text(json.dumps([vars(case) for case in side.sources], indent=0))


def split_branches(text):
    """A spec with branches is one file for each, one behind the other; each begins with this line."""
    return [part for part in re.split(r"^(?=// .* Generated by lacuna )", text, flags=re.MULTILINE) if part]


def split_kernels(text):
    """The shared head, then one text for each kernel: each begins with the includes of its templates."""
    hooks = text.find("struct Hooks {")
    begins, previous = [], None
    for found in re.finditer(r"^(#include .*)\n", text[hooks:], re.MULTILINE):
        at = hooks + found.start()
        if previous is None or text[previous:at].strip():
            begins.append(at)
        previous = hooks + found.end()
    ends = begins[1:] + [len(text)]
    return [text[:begins[0]] + text[begin:end] for begin, end in zip(begins, ends)] if begins else []


def kernels_of(side, case):
    return [Kernel(side, text) for branch in split_branches(side.sources[case]) for text in split_kernels(branch)]
