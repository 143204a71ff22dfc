#!/usr/bin/env python3
"""The picture of includes: folders in layers, from the top down.

  tools/dev/check_folders.py           exit 1 and a sentence for each include that closes a circle or leaves its part the wrong way,
                                       for each crowded folder and for each long function of device code
  tools/dev/check_folders.py --draw    the layers of each part: a folder includes folders below it, never one beside or above it

A unit is a header with the source file of its name. Folders and units include each other in one direction, and so do the
parts (MAY_INCLUDE). A folder holds at most twenty loose files of code, that of tests too.
clang-tidy measures the functions of the host (.clang-tidy), this those of the device.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("compiler", "cache", "runtime", "tools", "templates")
# What a part includes besides itself. Of templates/ the host includes nothing but shared/.
MAY_INCLUDE = {"compiler": {"templates/shared"}, "cache": set(), "runtime": {"compiler", "cache"},
               "tools": {"compiler", "cache", "runtime"}, "templates": set()}
MOST_FILES = 20
MOST_LINES = 120  # of a function
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def sources(*parts):
    names = subprocess.run(["git", "ls-files", "--", *parts], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {name for name in names if name.endswith((".cpp", ".hpp", ".cuh", ".h")) and "/include/" not in name and (ROOT / name).is_file()}


def includes(files):
    """(from, to) for each include of a file of ours."""
    for name in sorted(files):
        for target in INCLUDE.findall((ROOT / name).read_text()):
            for path in (target, "templates/" + target):
                if path in files:
                    yield name, path


def circles(edges):
    """The strongly connected groups of more than one node (Tarjan)."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
                on_stack.discard(group[-1])
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def graph(pairs, node_of):
    edges, witness = defaultdict(set), {}
    for a, b in pairs:
        x, y = node_of(a), node_of(b)
        edges[y]
        if x != y:
            edges[x].add(y)
            witness.setdefault((x, y), (a, b))
    return edges, witness


def complaints(files):
    pairs = list(includes(files))
    for what, node_of in (("folders", lambda name: str(PurePosixPath(name).parent)),
                          ("units", lambda name: str(PurePosixPath(name).with_suffix("")))):
        edges, witness = graph(pairs, node_of)
        for group in circles(edges):
            yield f"{what} that include each other: {', '.join(group)}"
            for a in group:
                for b in sorted(edges[a] & set(group)):
                    yield "  {} includes {}".format(*witness[a, b])
    for a, b in pairs:
        part, other = a.split("/")[0], b.split("/")[0]
        if part != other and not MAY_INCLUDE[part] & {other, str(PurePosixPath(b).parent)}:
            yield f"{a} includes {b}: {part}/ includes nothing of {other}/" + ("" if part != "compiler" else " but shared/")
    loose = defaultdict(int)
    for name in files | sources("tests"):
        loose[PurePosixPath(name).parent] += 1
    for folder, count in sorted(loose.items()):
        if count > MOST_FILES:
            yield f"{folder}: {count} loose files of code, at most {MOST_FILES}"


def long_functions(files):
    """Of device code, as clang-format leaves it: a body ends with a brace in the column in which its declaration begins."""
    for name in sorted(name for name in files if name.endswith(".cuh")):
        lines = (ROOT / name).read_text().split("\n")
        for begin, line in enumerate(lines):
            if "__device__" not in line and "__global__" not in line:
                continue
            opens = next(n for n in range(begin, len(lines)) if lines[n].endswith(("{", ";", "}")))
            if not lines[opens].endswith("{"):
                continue
            column = len(line) - len(line.lstrip())
            end = next(n for n in range(opens + 1, len(lines)) if lines[n].startswith(" " * column + "}"))
            if end - begin >= MOST_LINES:
                yield f"{name}:{begin + 1}: a function of {end - begin + 1} lines, at most {MOST_LINES}"


def draw(files):
    edges, _ = graph(includes(files), lambda name: str(PurePosixPath(name).parent))
    depth = {}

    def depth_of(folder):
        if folder not in depth:
            depth[folder] = 0  # a circle ends here; complaints() names it
            depth[folder] = max((1 + depth_of(other) for other in edges[folder]), default=0)
        return depth[folder]

    for part in PARTS:
        layers = defaultdict(list)
        for folder in edges:
            if folder == part or folder.startswith(part + "/"):
                layers[depth_of(folder)].append(folder)
        for number in sorted(layers, reverse=True):
            print("   ".join(sorted(layers[number])))
        print()


def main():
    files = sources(*PARTS)
    if "--draw" in sys.argv[1:]:
        draw(files)
    found = [*complaints(files), *long_functions(files)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
