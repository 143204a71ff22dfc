"""The copy of the sources in which mutants live, and its builds. The checkout itself is never changed."""

import contextlib
import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from mutation.process import TIMED_OUT, sh


@dataclass(frozen=True)
class Built:
    is_good: bool
    has_run_products: bool  # what failed is not a translation unit or a link, but a program of ours that the build runs
    output: str
    has_end: bool = True  # within the time given


def listed_files(root):
    """Paths of the checkout as it is: what git tracks and what it does not ignore."""
    listing = sh(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root).stdout
    return [path for path in listing.split("\0") if path and (root / path).is_file()]


class Build:
    """One build of the copy."""

    def __init__(self, source, name, definitions, jobs=None):
        self.source, self.folder, self.definitions, self.jobs = source, source / "build" / name, definitions, jobs or os.cpu_count()

    def configure(self):
        wanted = [f"-D{name}={value}" for name, value in self.definitions.items()]
        if shutil.which("ccache"):
            wanted += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
        hook = Path(__file__).with_name("build.cmake")
        done = sh(["cmake", "--preset", "release", "-B", self.folder, f"-DCMAKE_PROJECT_lacuna_INCLUDE={hook}", *wanted], cwd=self.source)
        if done.returncode:
            raise SystemExit(f"the build of the mutants cannot be configured:\n{done.stdout[-3000:]}")

    def make(self, target, limit_s):
        return self._make([target], limit_s)

    def compiled(self, path, limit_s):
        """What comes of compiling a source by itself, and the bytes of its objects; none of a header."""
        outputs = self._outputs_of(path)
        if not outputs:
            return None, []
        built = self._make(outputs, limit_s)
        return built, [(self.folder / output).read_bytes() for output in outputs] if built.is_good else []

    def _outputs_of(self, path):
        listed = json.loads((self.folder / "compile_commands.json").read_text())
        return [match[1] for entry in listed
                if entry["file"] == str(self.source / path) and (match := re.search(r" -o (\S+)", entry["command"]))]

    def _make(self, targets, limit_s):
        done = sh(["ninja", "-C", self.folder, "-j", self.jobs, *targets], timeout_s=limit_s)
        failed = re.findall(r"^FAILED: (\S+)", done.stdout, re.MULTILINE)
        has_run_products = done.returncode != 0 and not any(
            re.search(r"\.o$|^bin/|\.(?:a|so)[.\d]*$", output) and "_kernels.dir/" not in output for output in failed)
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
            yield
        finally:
            path.write_text(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            for build in self.builds.values():
                build.remove_outputs(applied_ns)
