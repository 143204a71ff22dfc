"""Which tests are asked, in which order: one table for each thing that somebody may want to change."""

import json
import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mutation.process import sh


@dataclass(frozen=True)
class Tier:
    environment: dict  # of its tests
    definitions: dict  # of its build
    entries: tuple = ()  # that it has alone, or with more tests than the tier before; none: all
    programs: tuple = ()  # of these entries its build makes others than that of the tier before; none: of all


# The second is asked where the first finds nothing.
# Kernels are compiled one by one (mutation/kernels.py).
TIERS = {
    "short": Tier({"LACUNA_TEST_TIER": "short"}, {"LACUNA_ALL_TESTS": "OFF", "LACUNA_KERNELS_PER_UNIT": "1"}),
    "long": Tier({"LACUNA_TEST_TIER": "all"}, {"LACUNA_ALL_TESTS": "ON", "LACUNA_KERNELS_PER_UNIT": "1"},
                 ("expr", "fuzz", "device", "sass", "compile", "group", "numerics_interpreter", "numerics", "races"), ("device", "races")),
}


def built_by(tier, name):
    """The tier whose build makes the programs of an entry: what two tiers have in common is built once."""
    return tier if not TIERS[tier].programs or name in TIERS[tier].programs else next(iter(TIERS))

# ctest entry, without the number of a shard -> target, where that is not test_ENTRY.
TARGETS = {"numerics_interpreter": "test_numerics"}

# The entry of a program that says nothing about the sources, but about the tests. Entries of scripts are not asked either.
NOT_ASKED = ("tier",)

# ctest entry -> what it runs or opens beside its own program.
LIBRARY, PLUGIN, COMMAND = "liblacuna.so", "liblacuna_host.so", "lacuna"
OPENS = {"runtime": (PLUGIN,), "host": (PLUGIN,), "numerics": (PLUGIN,),
         "tools": (COMMAND, PLUGIN), "install": (COMMAND, LIBRARY, PLUGIN)}

# Entries whose programs are put together kernel by kernel where a device header is changed -> the library of kernels.
KERNELS = {"device": "device_kernels", "races": "traced_kernels"}

# Beginning of a path -> entries that are asked first. The longest beginning counts.
FIRST = {
    "compiler/diag": ("diag", "diagnostics", "spec", "tools"),
    "compiler/spec": ("spec", "diagnostics", "golden", "fuzz", "tools"),
    "compiler/expr": ("expr", "golden", "passes", "diagnostics"),
    "compiler/ir": ("ir", "golden", "passes"),
    "compiler/passes": ("golden", "passes", "target", "diagnostics"),
    "compiler/target": ("target", "golden", "passes"),
    "compiler/lower": ("golden", "passes", "emit"),
    "compiler/emit": ("golden", "emit", "runtime"),
    "templates": ("emit", "device", "races"),
    "cache": ("cache", "tools", "runtime"),
    "runtime/launch/host_launch": ("host", "numerics"),
    "runtime/cpu/llvm": ("host", "numerics"),
    "runtime/cpu/ops": ("runtime", "numerics", "numerics_interpreter"),
    "runtime/group": ("group", "runtime"),
    "runtime/tune": ("runtime", "tools"),
    "runtime/cpu/interpreter": ("runtime", "numerics", "numerics_interpreter"),
    "runtime": ("runtime", "runtime_gpu", "host", "tools"),
    "tools": ("tools",),
}

# All, those that find most for their time first.
ORDER = ("diag", "expr", "spec", "ir", "target", "passes", "emit", "golden", "diagnostics", "oracle", "cache", "runtime", "runtime_gpu",
         "group", "host", "tools", "fuzz", "install", "device", "races", "sass", "compile", "numerics_interpreter", "numerics")


@dataclass(frozen=True)
class Suite:
    name: str  # of the ctest entry
    target: str
    command: tuple = ()
    folder: str = ""
    environment: dict = field(default_factory=dict, hash=False)

    @property
    def is_googletest(self):
        return self.target.startswith("test_")


def order_of(path, names):
    """The entries `names` in the order in which they are asked about a change of `path`."""
    fitting = [beginning for beginning in FIRST if path == beginning or path.startswith((beginning + "/", beginning + "_"))
               or path.startswith(beginning + ".")]
    first = FIRST[max(fitting, key=len)] if fitting else ()
    ranks = {name: rank for rank, name in enumerate((*first, *(name for name in ORDER if name not in first)))}
    return sorted(names, key=lambda name: (ranks.get(name, len(ranks)), name))


def tests_in(path):
    """GoogleTest suites that a file defines."""
    return sorted(set(re.findall(r"^TEST(?:_P|_F)?\((\w+),", path.read_text(), re.MULTILINE)))


def likely_tests(root, name, path):
    """A filter of those tests of an entry that are asked before the others, as their file has to do with `path`: it begins with
    the same word, lies in a folder of the same name, or includes the header. Empty: none, or all."""
    changed = PurePosixPath(path)
    words = (changed.stem.split("_")[0], *changed.parts[1:-1])
    header = f'#include "{changed.with_suffix(".hpp")}"'

    def is_likely(file):
        return file.name.startswith(words) or file.parent.name in words or header in file.read_text()

    files = sorted((root / "tests" / name).rglob("*_test.cpp"))
    likely = [file for file in files if is_likely(file)]
    return ":".join(f"*{suite}.*" for file in likely for suite in tests_in(file)) if len(likely) < len(files) else ""


def is_script(command):
    return bool(command) and PurePosixPath(command[0]).name.startswith("python")


def suites_of(build):
    """Name -> Suite of every ctest entry of a build folder, its shards together. The command is empty where its program is not
    built yet."""
    listed = json.loads(sh(["ctest", "--show-only=json-v1"], cwd=build).stdout)
    found = {}
    for test in listed["tests"]:
        name = re.sub(r"\.\d+$", "", test["name"])
        if name in NOT_ASKED or is_script(test.get("command")):
            continue
        properties = {entry["name"]: entry["value"] for entry in test["properties"]}
        environment = dict(text.split("=", 1) for text in properties.get("ENVIRONMENT", []) if "_SHARD" not in text)
        found[name] = Suite(name, TARGETS.get(name, f"test_{name}"), tuple(test.get("command", ())),
                            properties.get("WORKING_DIRECTORY", str(build)), environment)
    return found


# What a report says of the test that failed, or was running when its program ended.
_FAILED = (re.compile(r"^\[  FAILED  \] (\S+?)(?:,| \(|$)", re.MULTILINE),
           re.compile(r"^(?:FAIL|ERROR): (\S+)", re.MULTILINE))
_RUNNING = re.compile(r"^\[ RUN      \] (\S+)", re.MULTILINE)


def failed_test(report):
    for pattern in _FAILED:
        if match := pattern.search(report):
            return match[1]
    running = _RUNNING.findall(report)
    return running[-1] if running else "?"
