"""The copy of the sources in which mutants live, and its builds. The checkout itself is never changed."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mutation.process import TIMED_OUT, sh, sh_lines


@dataclass(frozen=True)
class Built:
    is_good: bool
    has_run_products: bool  # what failed is not a translation unit or a link, but a program of ours that the build runs
    output: str
    has_end: bool = True  # within the time given


def failed_outputs(text):
    """Of what ninja wrote."""
    return re.findall(r"^FAILED: (\S+)", text, re.MULTILINE)


def is_of_build(failed):
    """Has CMake failed when it was run again, or ninja itself? That says nothing about a mutant."""
    return not failed or any(re.search(r"(?:^|/)(?:build\.ninja|cmake\.verify_globs)$", output) for output in failed)


def is_product(output):
    """Is it made by a program of ours, and no translation unit or link?"""
    return "_kernels.dir/" in output or not re.search(r"\.o$|^bin/|\.(?:a|so)[.\d]*$", output)


def listed_files(root):
    """Paths of the checkout as it is: what git tracks and what it does not ignore."""
    listing = sh(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root).stdout
    return [path for path in listing.split("\0") if path and (root / path).is_file()]


# Beginning of a path -> how what a mutant there changes is compiled. The copy itself is built as a release, so that a compiler cache
# has it; a mutant is compiled sooner with less optimisation. What the sanitized builds test has their checks of the standard
# library: so an empty optional that is read is found here, too.
FLAGS = {"tools": "", "runtime/cpu/ops": "-O2 -D_GLIBCXX_ASSERTIONS", "templates": "", "": "-O1 -D_GLIBCXX_ASSERTIONS"}


def flags_of(path):
    return FLAGS[max((beginning for beginning in FLAGS if path.startswith(beginning)), key=len)]


class Build:
    """One build of the copy."""

    def __init__(self, source, name, definitions, jobs=None):
        self.source, self.folder, self.definitions, self.jobs = source, source / "build" / name, definitions, jobs or os.cpu_count()
        self.flags = ""  # while a mutant is applied

    def configure(self):
        wanted = [f"-D{name}={value}" for name, value in self.definitions.items()]
        wanted += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={Path(__file__).with_name('compile.sh')}" for language in ("C", "CXX")]
        hook = Path(__file__).with_name("build.cmake")
        done = sh(["cmake", "--preset", "release", "-B", self.folder, f"-DCMAKE_PROJECT_lacuna_INCLUDE={hook}", *wanted], cwd=self.source)
        if done.returncode:
            raise SystemExit(f"the build of the mutants cannot be configured:\n{done.stdout[-3000:]}")

    def make(self, target, limit_s):
        return self._make([target], limit_s)

    def compiled(self, path, limit_s):
        """What comes of compiling what a source is part of, by itself; None of a header."""
        outputs = [] if path.endswith((".hpp", ".cuh")) else self.objects_of(path)
        return self._make(outputs, limit_s) if outputs else None

    def objects_of(self, path):
        """Those that were compiled of a file."""
        found, here, wanted = [], None, str(self.source / path)
        for line in sh_lines(["ninja", "-C", self.folder, "-t", "deps"]):
            if not line.startswith(" "):
                here = line.split(":")[0]
            elif os.path.normpath(self.folder / line.strip()) == wanted:
                found.append(here)
        return found

    def has_same_code(self, mutant):
        """Is the machine code of a release the same with a mutant? Only asked of a source, not of a header."""
        path = self.source / mutant.file
        if mutant.file.endswith((".hpp", ".cuh")):
            return False
        commands, outputs, text = self.compile_commands(), self.objects_of(mutant.file), path.read_text()
        codes = []
        for other in (mutant.applied(text), text):
            with rewritten(path, other):
                codes.append([_code_of(self.folder, output, commands[output]) for output in outputs])
        return bool(outputs) and codes[0] == codes[1] and None not in codes[0]

    def _make(self, targets, limit_s):
        environment = {**os.environ, "LACUNA_MUTANT_CACHE": shutil.which("ccache") or "", "LACUNA_MUTANT_FLAGS": self.flags}
        done = sh(["ninja", "-C", self.folder, "-j", self.jobs, *targets], env=environment, timeout_s=limit_s)
        has_run_products = False
        if done.returncode not in (0, TIMED_OUT):
            failed = failed_outputs(done.stdout)
            if is_of_build(failed):
                raise SystemExit(f"the build of the mutants fails, whatever the mutant:\n{done.stdout[-3000:]}")
            has_run_products = all(map(is_product, failed))
        return Built(done.returncode == 0, has_run_products, done.stdout, done.returncode != TIMED_OUT)

    def is_current(self, target):
        return "ninja: no work to do." in sh(["ninja", "-C", self.folder, "-n", target]).stdout

    def remove_outputs(self, since_ns):
        """Those that are as new: with the date of a source put back, ninja would take them for good ones."""
        log = self.folder / ".ninja_log"
        if not log.is_file():
            return
        for line in log.read_text().splitlines()[1:]:
            output = self.folder / line.split("\t")[3]
            if output.name.startswith("cmake.") or output.suffix == ".ninja":
                continue  # the build's own
            if output.is_file() and output.stat().st_mtime_ns >= since_ns:
                output.unlink()

    def compile_commands(self):
        """Output -> its compile command."""
        return {match[1]: entry["command"] for entry in json.loads((self.folder / "compile_commands.json").read_text())
                if (match := re.search(r" -o (\S+)", entry["command"]))}

    def fingerprint(self, names):
        """Of the programs and libraries of these names in bin/."""
        digest = hashlib.sha256()
        for name in names:
            path = self.folder / "bin" / name
            digest.update(path.read_bytes() if path.exists() else b"none")
        return digest.hexdigest()


@contextlib.contextmanager
def rewritten(path, text):
    """A file with another text, for a while."""
    old, status = path.read_text(), path.stat()
    try:
        path.write_text(text)
        yield
    finally:
        path.write_text(old)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _code_of(folder, output, command):
    """The object that a compile command makes; None where it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "code.o")
        environment = {**os.environ, "LACUNA_MUTANT_CACHE": shutil.which("ccache") or ""}
        done = sh(["sh", "-c", command.replace(f" -o {output} ", f" -o {target} ")], cwd=folder, env=environment)
        return target.read_bytes() if done.returncode == 0 else None


class Tree:
    """The copy, and a build of it for each tier."""

    def __init__(self, origin, folder, tiers, jobs=None):
        self.origin, self.root = Path(origin), Path(folder) / "tree"
        self.builds = {name: Build(self.root, name, tier.definitions, jobs) for name, tier in tiers.items()}

    def synchronise(self):
        """Makes the copy equal to the checkout, and leaves files alone that are: theirs is no new date."""
        wanted = set(listed_files(self.origin))
        for path in wanted:
            source, target = self.origin / path, self.root / path
            if target.is_file() and target.stat().st_size == source.stat().st_size and target.read_bytes() == source.read_bytes():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
        for folder, folders, files in os.walk(self.root):
            if Path(folder) == self.root and "build" in folders:
                folders.remove("build")
            for name in files:
                path = Path(folder, name)
                if str(path.relative_to(self.root)) not in wanted:
                    path.unlink()

    @contextlib.contextmanager
    def mutated(self, mutant):
        """The change is there inside `with`. Afterwards neither it nor anything that was built of it is."""
        path = self.root / mutant.file
        text, status = path.read_text(), path.stat()
        changed = mutant.applied(text)
        try:
            path.write_text(changed)
            applied_ns = path.stat().st_mtime_ns
            for build in self.builds.values():
                build.flags = flags_of(mutant.file)
            yield
        finally:
            path.write_text(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            for build in self.builds.values():
                build.flags = ""
                build.remove_outputs(applied_ns)
