#!/usr/bin/env python3
"""Are the kernels of all shipped specs the same, instruction for instruction, before and after a change?

  tools/dev/same_sass.py snapshot build/same-sass/before          # of this checkout, before the change
  tools/dev/same_sass.py compare build/same-sass/before           # with this checkout, after it: two minutes, and what it compiles
  tools/dev/same_sass.py compare build/same-sass/before --specs bsfa,sparge --archs sm_90a
  tools/dev/same_sass.py compare ../other-checkout .              # two checkouts, both built
  tools/dev/same_sass.py compare before after --seconds 480       # two snapshots, where neither is built

A side is a checkout with a built command (build/release/bin/lacuna, or --build) or a snapshot of one: the generated
sources and the device headers. Kernels are compared by their place in the launch order; names of specs have to agree,
names of kernels, files, types and variables may differ.

Two kernels are the same without any compilation if the declarations that they reach agree token by token but for
comments, static_asserts, #line directives, the places of declarations, names of constants in place of numbers and a
consistent renaming of identifiers (sass/declarations.py). A sample of such pairs is compiled all the same, as a check of
that rule (--sample, drawn by --seed). All other pairs are compiled by NVRTC, each pair of texts once however many specs
have it, and the code sections of the cubins, their constants and their numbers of registers are compared. What a source
compiles to is remembered under build/same-sass/compiled, so that a baseline is compiled once. Where a change touches too
many kernels to compile them all, --most N takes so many of the pairs, drawn by --seed, and the last line says so. With
--seconds N no compilation begins after that time: the same call later goes on with the pairs that are left.

Exit 0: all the same. 1: some differ, or only one side has them. 2: none differs so far, but the time was over.
3: something that is needed is missing.
"""
import argparse
import json
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sass.declarations import canonical
from sass.machine_code import Compiler
from sass.sources import ROOT, Case, Kernel, kernels_of, read_side, write_snapshot

ARCHS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"]
BATCHES = ["uniform", "sequences", "pages"]
LARGE_STACK = 512 << 20  # NVRTC recurses deeply


@dataclass
class Pair:
    case: Case
    before: Kernel
    after: Kernel

    def key(self):
        """The same for pairs that are compiled to the same."""
        return self.case.arch, self.before.fingerprint, self.after.fingerprint


def pair_up(before, after):
    pairs, problems = [], []
    for case in sorted(before.sources.keys() | after.sources.keys()):
        sides = [side for side in (before, after) if side.sources.get(case)]
        if not sides:
            continue  # refused by both
        if len(sides) == 1:
            problems.append(f"{case.name()}: only in {sides[0].path}")
            continue
        old, new = kernels_of(before, case), kernels_of(after, case)
        if len(old) != len(new) or not old:
            problems.append(f"{case.name()}: {len(old)} kernels, then {len(new)}")
            continue
        pairs += [Pair(case, *kernels) for kernels in zip(old, new)]
    return pairs, problems


def unlike_pairs(pairs):
    """Pairs whose sources are not the same but for names and places, and those that are; by what they compile to."""
    known = {}

    def digest(kernel):
        if kernel.fingerprint not in known:
            known[kernel.fingerprint] = canonical(kernel.order)
        return known[kernel.fingerprint]

    unlike, alike = {}, {}
    for pair in pairs:
        is_alike = pair.before.fingerprint == pair.after.fingerprint or digest(pair.before) == digest(pair.after)
        (alike if is_alike else unlike).setdefault(pair.key(), []).append(pair)
    return unlike, alike


def drawn(groups, most, seed, is_wanted=lambda pair: True):
    """One pair of each group: of so many groups at the most."""
    keys = sorted(groups)
    random.Random(seed).shuffle(keys)
    found = []
    for key in keys:
        if most is not None and len(found) == most:
            break
        if is_wanted(groups[key][0]):
            found.append(groups[key][0])
    return found


def has_other_text(pair):
    return pair.before.flat_text() != pair.after.flat_text()


def compare(before, after, options):
    pairs, problems = pair_up(before, after)
    unlike, alike = unlike_pairs(pairs)
    compiled = drawn(unlike, options.most, options.seed)
    checked = drawn(alike, options.sample, options.seed, has_other_text)
    of_unlike = sum(map(len, unlike.values()))
    print(f"{len(pairs)} pairs of kernels, {of_unlike} of them with other sources: {len(unlike)} to compile, "
          f"{len(compiled)} of them drawn; and {len(checked)} that are the same by their sources", flush=True)
    compiler = Compiler()
    threading.stack_size(LARGE_STACK)

    def differs(pair):
        """The parts that do; nothing if the time is over."""
        if time.monotonic() > options.end:
            return None
        arch = pair.case.arch
        old, new = compiler.machine_code(pair.before, arch), compiler.machine_code(pair.after, arch)
        return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))

    work, late = compiled + checked, []
    with ThreadPoolExecutor(options.jobs) as pool:
        for pair, parts in zip(work, pool.map(differs, work)):
            if parts is None:
                late.append(f"{pair.case.name()}: {pair.before.name}")
            elif parts:
                problems.append(f"{pair.case.name()}: {pair.before.name}, then {pair.after.name}: {', '.join(parts)}")
                print("DIFFERS " + problems[-1], flush=True)
    for problem in problems:
        print("PROBLEM " + problem)
    left_out = len(unlike) - len(compiled)
    print(f"{len(pairs) - of_unlike} the same by their sources; of {len(checked)} of these and {len(compiled)} others, "
          f"{len(work) - len(late)} compared as machine code ({compiler.compiled} compilations), {len(problems)} problems" +
          (f"; {left_out} were not drawn (--most)" if left_out else "") +
          (f"; {len(late)} are left (--seconds)" if late else ""))
    if options.json:
        result = {"pairs": len(pairs), "pairs_with_other_sources": of_unlike, "to_compile": len(unlike), "drawn": len(compiled),
                  "checked": len(checked), "compilations": compiler.compiled, "problems": problems, "left": late}
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    return 1 if problems or not pairs else 2 if late else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["snapshot", "compare"])
    parser.add_argument("before", help="a snapshot, or a checkout; with `snapshot`: where to write it")
    parser.add_argument("after", nargs="?", default=str(ROOT), help="the same; this checkout if left out")
    parser.add_argument("--specs", help="only these, with commas between them")
    parser.add_argument("--archs", default=",".join(ARCHS))
    parser.add_argument("--head-dims", default="128")
    parser.add_argument("--dtypes", default="bf16")
    parser.add_argument("--batches", default=",".join(BATCHES), help="of uniform,sequences,pages")
    parser.add_argument("--most", type=int, help="of the pairs with other sources, compile so many (all)")
    parser.add_argument("--sample", type=int, default=12, help="of the pairs that are the same by their sources, compile so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no compilation after so many")
    parser.add_argument("--json", help="a file for the counts, the problems, and the pairs that are left")
    parser.add_argument("--seed", type=int, default=1, help="of both draws")
    parser.add_argument("--build", default="build/release", help="the folder of a checkout's build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.end = time.monotonic() + options.seconds
    wanted = set(options.specs.split(",")) if options.specs else None

    def cases_of(spec):
        if wanted and spec not in wanted:
            return []
        return [Case(spec, arch, int(head_dim), dtype, batch) for arch in options.archs.split(",")
                for head_dim in options.head_dims.split(",") for dtype in options.dtypes.split(",")
                for batch in options.batches.split(",")]

    after = read_side(options.after, options.build, cases_of)
    if options.action == "snapshot":
        write_snapshot(after, Path(options.before).resolve())
        print(f"{len(after.sources)} sources in {options.before}")
        return 0
    return compare(read_side(options.before, options.build, cases_of), after, options)


if __name__ == "__main__":
    sys.exit(main())
