#!/usr/bin/env python3
"""Mutants: small wrong changes of the sources, and whether the tests find them.

  tools/dev/mutants.py --seed 1 --list             what would be drawn, as diffs
  tools/dev/mutants.py --seed 1 --count 100        draw, apply one after the other, ask the tests; goes on where it was
  tools/dev/mutants.py --seed 1 --folder cache     those of one folder
  tools/dev/mutants.py --seed 1 --only 2689d51593  one of them again

A mutant lives in a copy of the checkout, build/mutants/tree, with a build of its own; the checkout is never changed. What the
tests said stands in tests/mutants.json (tests/README.md says how to read it). Exit 1: some mutant was not found.
"""
import argparse
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

from mutation import record
from mutation.draw import FOLDERS, draw, sources
from mutation.moved import moved
from mutation.process import sh
from mutation.suites import TIERS
from mutation.tree import listed_files
from mutation.trial import EQUIVALENT, INVALID, UNDECIDED, Lab, Trial

ROOT = Path(__file__).resolve().parents[2]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn (default: 1)")
    parser.add_argument("--count", type=int, default=100, help="how many, over all folders (default: 100)")
    parser.add_argument("--folder", action="append", choices=FOLDERS, help="only those of this folder; may be repeated")
    parser.add_argument("--only", action="append", metavar="ID", default=[], help="only this mutant, again; may be repeated")
    parser.add_argument("--undecided", action="store_true",
                        help="only those of the record that nobody has decided about, wherever their lines stand today")
    parser.add_argument("--tier", choices=TIERS, help="ask this tier alone now: what it does not find stays undecided")
    parser.add_argument("--without", action="append", metavar="SUITE", default=[],
                        help="do not ask this suite now: what no other finds stays undecided; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the diffs and do nothing")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant and no suite after that time")
    parser.add_argument("--patience", type=float, default=90, metavar="MINUTES",
                        help="the most processor time for one mutant (default: 90), asked between two suites; the next call goes on with the others")
    parser.add_argument("--jobs", type=int, metavar="N", help="compilers at a time (default: as many as processors)")
    parser.add_argument("--json", type=Path, default=ROOT / "tests/mutants.json", metavar="FILE", help="where the record is kept")
    parser.add_argument("--work", type=lambda text: Path(text).resolve(), default=ROOT / "build/mutants", metavar="FOLDER",
                        help="where the copy and its build are")
    return parser.parse_args()


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


class Run:
    def __init__(self, args, texts):
        self.args = args
        self.end = time.monotonic() + 60 * args.minutes
        self.drawing = draw(texts, args.seed, args.count)
        self.drawn = {folder: value for folder, value in self.drawing.items() if not args.folder or folder in args.folder}
        self.state_path = args.work / "state.json"
        args.work.mkdir(parents=True, exist_ok=True)
        self.state = record.read(self.state_path, {"baselines": {}, "results": {}})
        # What failed without a mutant may have been mended.
        self.state["baselines"] = {label: seconds for label, seconds in self.state["baselines"].items() if seconds is not None}
        self.results = self.state["results"]
        # What other copies have found; apart, as the record may know more by the time that this run writes into it.
        self.recorded = record.outcomes(args.json, args.seed)
        self.tried = set()  # in this run
        self.moved = moved(ROOT, record.rows_of(args.json, args.seed), texts, self.drawn_by_id()) if args.undecided else {}
        # Of what is copied now; the checkout may change while this run goes on.
        self.commit = sh(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT).stdout.strip()

    def drawn_by_id(self):
        return {mutant.id: mutant for _, mutants in self.drawing.values() for mutant in mutants}

    def undecided(self):
        """Those of the record, as they are today."""
        known = self.drawn_by_id() | self.moved
        mutants = [known.get(row["id"]) for row in record.rows_of(self.args.json, self.args.seed) if row["result"] == UNDECIDED]
        return [mutant for mutant in mutants if mutant and mutant.file.split("/")[0] in self.drawn]

    def outcome(self, mutant):
        return self.results.get(mutant.id, self.recorded.get(mutant.id))

    def chosen(self, folder):
        """Those of a folder that count as drawn so far, with their results, and the next to be tried, if there is one: those
        that nobody has decided about come after all others."""
        wanted, mutants = self.drawn[folder]
        known, counted, undecided = [], 0, None
        for mutant in mutants:
            if counted == wanted:
                break
            outcome = self.outcome(mutant)
            if outcome is None:
                return known, mutant
            if outcome["result"] == UNDECIDED and mutant.id not in self.tried:
                undecided = undecided or mutant
            known.append((mutant, outcome))
            counted += outcome["result"] not in (INVALID, EQUIVALENT)
        return known, undecided

    def waiting(self):
        """The mutants to be tried, the folders in turns; how many come depends on what is found invalid."""
        if self.args.only:
            every = self.drawn_by_id() | {mutant.id: mutant for mutant in self.moved.values() if mutant}
            if unknown := set(self.args.only) - set(every):
                raise SystemExit(f"no such mutant: {', '.join(sorted(unknown))}; --list prints those that there are")
            yield from (every[name] for name in self.args.only)
            return
        if self.args.undecided:
            yield from self.undecided()
            return
        while True:
            missing = [mutant for folder in self.drawn if (mutant := self.chosen(folder)[1])]
            if not missing:
                return
            new = [mutant for mutant in missing if self.outcome(mutant) is None]
            yield from new or missing

    def left(self):
        if self.args.undecided:
            return len([mutant for mutant in self.undecided() if mutant.id not in self.tried])
        return sum(wanted for wanted, _ in self.drawn.values()) - sum(
            outcome["result"] not in (INVALID, EQUIVALENT) for folder in self.drawn for _, outcome in self.chosen(folder)[0])

    def keep(self):
        record.write(self.state_path, self.state)
        folder = os.open(self.args.json.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # runs of other folders write into the same record
            return self.update()
        finally:
            os.close(folder)  # and with it the lock: the next mutant takes it again

    def update(self):
        outcomes = record.outcomes(self.args.json, self.args.seed) | self.results
        rows = []
        for wanted, mutants in self.drawing.values():
            passed_over = sum(outcomes.get(mutant.id, {}).get("result") in record.NOT_COUNTED for mutant in mutants)
            rows += [record.row_of(mutant, outcomes[mutant.id]) for mutant in mutants[:wanted + passed_over] if mutant.id in outcomes]
        known = {name: mutant for name, mutant in self.moved.items() if mutant is None or mutant.id in self.results}
        rows += [record.row_of(mutant, outcomes[mutant.id]) for mutant in known.values() if mutant]
        rows = list({row["id"]: row for row in rows}.values())  # one that has moved may be drawn as what it is now
        renamed = {name: mutant and mutant.id for name, mutant in known.items()}
        return record.update(self.args.json, self.args.seed, self.args.count, self.commit, rows, renamed)

    def go(self):
        lab = Lab(ROOT, self.args.work, self.state["baselines"], say, self.args.jobs)
        durations = []
        for mutant in self.waiting():
            if time.monotonic() > self.end:
                break
            say(f"{mutant.id} {mutant.operator} {mutant.file}:{mutant.line}: {mutant.before!r} -> {mutant.after!r}")
            known = self.outcome(mutant) or {}
            goes_on = known.get("result") == UNDECIDED and mutant.id not in self.args.only
            asked = known.get("asked", ()) if goes_on else ()
            outcome = Trial(lab, mutant, self.end, 60 * self.args.patience, asked, self.args.without, self.args.tier).judge()
            self.results[mutant.id] = {**outcome, "commit": self.commit}
            self.tried.add(mutant.id)
            self.keep()
            durations.append(outcome["seconds"])
            found = f" by {outcome['tier']} {outcome['suite']}: {outcome['test']}" if "test" in outcome else ""
            left_min = self.left() * sum(durations) / len(durations) / 60
            say(f"{mutant.id} {outcome['result']}{found} ({outcome['seconds']:.0f} s; {self.left()} left, about {left_min:.0f} min)")


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    args = arguments()
    texts = sources(ROOT, listed_files(ROOT))
    run = Run(args, texts)
    if args.list:
        for folder, (wanted, mutants) in run.drawn.items():
            for mutant in [mutant for mutant in mutants if mutant.id in args.only] if args.only else mutants[:wanted]:
                print(f"# {mutant.id} {mutant.operator}\n{mutant.difference(texts[mutant.file])}", end="")
        return 0
    lock = open(args.work / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(f"another run works in {args.work}; --work names another folder") from None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, interrupt)
    try:
        run.go()
    except KeyboardInterrupt:
        say("interrupted; the same call goes on")
    finally:
        kept = run.keep()
    print(json.dumps(kept["counts"]))
    return 1 if kept["counts"]["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
