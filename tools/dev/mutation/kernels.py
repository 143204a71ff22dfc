"""Emulated kernels of a changed device header: compiled one by one, the cheapest first, and linked with the unchanged others.

Each kernel is in an unnamed namespace of its own together with the device headers (tests/device), so that a program may hold
changed and unchanged ones, and what a changed one does wrong is found as it would be among changed ones alone.
"""

import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutation.process import sh, sh_lines
from mutation.suites import tests_in

FIRST_BATCH, LARGEST_BATCH = 2, 16
LONGEST_COMPILE_S = 1200


@dataclass(frozen=True)
class Kernel:
    output: str   # the object, relative to the build
    filter: str   # of the tests that run it; empty: it is no kernel but a part of the test
    cost: int     # bytes of the object, in proportion to which it takes time


class KernelProgram:
    """One test program (test_device, test_races) and its kernels."""

    def __init__(self, build, suite, library):
        self.build, self.suite, self.library = build, suite, library
        self.commands = build.compile_commands()
        self.link = self._link_command()
        self.headers = self._dependencies()
        self.tests = _tests_of_single(build.source / "tests/device")

    def _link_command(self):
        listed = sh(["ninja", "-C", self.build.folder, "-t", "commands", self.suite.target]).stdout.rstrip().splitlines()[-1]
        return [word for word in shlex.split(listed) if word not in (":", "&&")]

    def _dependencies(self):
        """Object of the program -> device headers that it includes."""
        linked, found, here = set(self.link), {}, None
        for line in sh_lines(["ninja", "-C", self.build.folder, "-t", "deps"]):
            if not line.startswith(" "):
                output = line.split(":")[0]
                here = found.setdefault(output, set()) if output in linked else None
            elif here is not None and "/templates/" in line:
                here.add("templates/" + line.split("/templates/", 1)[1].strip())
        return found

    def filter_of(self, output):
        name = Path(output).name.removesuffix(".cpp.o")
        if f"{self.library}.dir/" not in output:
            return ""
        return ":".join(f"*{suite}.*" for suite in self.tests.get(name, ())) or f"*/{name}"

    def kernels_with(self, header):
        """In the order in which they are asked: the cheapest of each family in turns."""
        families = {}
        for output, headers in self.headers.items():
            path = self.build.folder / output
            if header in headers and path.exists():
                kernel = Kernel(output, self.filter_of(output), path.stat().st_size)
                family = "" if not kernel.filter else (re.search(r"sm_\w+|single", output) or [""])[0]
                families.setdefault(family, []).append(kernel)
        ordered = [sorted(family, key=lambda kernel: kernel.cost) for _, family in sorted(families.items())]
        return [family[turn] for turn in range(max(map(len, ordered), default=0)) for family in ordered if turn < len(family)]

    def compile(self, kernels, folder):
        """Object -> its mutant, for those that the change changes; and the first error of the compiler, if any."""
        def one(kernel):
            target = folder / kernel.output.replace("/", "_")
            command = self.commands[kernel.output].replace(f" -o {kernel.output} ", f" -o {shlex.quote(str(target))} ")
            done = sh(["sh", "-c", command], cwd=self.build.folder, timeout_s=LONGEST_COMPILE_S)
            return kernel, target, done
        changed = {}
        with ThreadPoolExecutor(self.build.jobs) as pool:
            for kernel, target, done in pool.map(one, kernels):
                if done.returncode:
                    return changed, done.stdout or "the compiler found no end"
                if target.read_bytes() != (self.build.folder / kernel.output).read_bytes():
                    changed[kernel.output] = target
        return changed, ""

    def linked(self, changed, program):
        """Links the program with changed objects in place of their originals; False where that fails."""
        words = [str(changed.get(word, word)) for word in self.link]
        words[words.index("-o") + 1] = str(program)
        return sh(words, cwd=self.build.folder).returncode == 0


def batches(kernels):
    """Few at first, as most mutants are found by any kernel, then twice as many each time."""
    size, at = FIRST_BATCH, 0
    while at < len(kernels):
        yield kernels[at:at + size]
        at += size
        size = min(2 * size, LARGEST_BATCH)


# Headers of single/ that say nothing about which kernel a test is of.
_COMMON = {"run_single", "predict_hooks", "predict_cases", "attend_config"}


def _single_headers(path, folder):
    """Of single/, which a file includes, by itself or by others of tests/device."""
    found, waiting = set(), [path]
    while waiting:
        for name in re.findall(r'"tests/device/([\w/]+)\.hpp"', waiting.pop().read_text()):
            if name not in found:
                found.add(name)
                waiting.append(folder / f"{name}.hpp")
    return {name.rsplit("/", 1)[-1] for name in found if name.startswith("single/")} - _COMMON


def _tests_of_single(folder):
    """Source of single/ -> suites of the tests that include a header of single/ which it includes."""
    suites = {}
    for test in sorted((folder / "single_tests").glob("*_test.cpp")):
        for header in _single_headers(test, folder):
            suites.setdefault(header, set()).update(tests_in(test))
    return {source.stem: sorted(set().union(*(suites.get(header, ()) for header in _single_headers(source, folder))))
            for source in sorted((folder / "single").glob("*/*.cpp"))}
