#!/usr/bin/env python3
"""The picture of includes: rooms (folders) in layers, from the top down.

  tools/dev/check_rooms.py            exit 1 and a sentence for each include that closes a circle or runs up, and for each crowded folder
  tools/dev/check_rooms.py --draw     the layers of each part: a room includes rooms below it, never one beside or above it

A room is a folder of code; a unit is a header with the source file of its name. Rooms and units include each other in one
direction. A folder holds at most about twenty loose files of code.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("compiler", "cache", "runtime", "tools", "templates")
MOST_FILES = 22
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def sources():
    names = subprocess.run(["git", "ls-files", "--", *PARTS], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
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
    for what, node_of in (("rooms", lambda name: str(PurePosixPath(name).parent)),
                          ("units", lambda name: str(PurePosixPath(name).with_suffix("")))):
        edges, witness = graph(pairs, node_of)
        for group in circles(edges):
            yield f"{what} that include each other: {', '.join(group)}"
            for a in group:
                for b in sorted(edges[a] & set(group)):
                    yield "  {} includes {}".format(*witness[a, b])
    loose = defaultdict(int)
    for name in files:
        loose[PurePosixPath(name).parent] += 1
    for folder, count in sorted(loose.items()):
        if count > MOST_FILES:
            yield f"{folder}: {count} loose files of code, at most {MOST_FILES}"


def draw(files):
    edges, _ = graph(includes(files), lambda name: str(PurePosixPath(name).parent))
    depth = {}

    def depth_of(room):
        if room not in depth:
            depth[room] = 0  # a circle ends here; complaints() names it
            depth[room] = max((1 + depth_of(other) for other in edges[room]), default=0)
        return depth[room]

    for part in PARTS:
        layers = defaultdict(list)
        for room in edges:
            if room == part or room.startswith(part + "/"):
                layers[depth_of(room)].append(room)
        for number in sorted(layers, reverse=True):
            print("   ".join(sorted(layers[number])))
        print()


def main():
    files = sources()
    if "--draw" in sys.argv[1:]:
        draw(files)
    found = list(complaints(files))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
