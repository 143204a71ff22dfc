#!/usr/bin/env python3
"""What `tools/start test` prints last: where the time went, and how many tests passed, failed and were skipped.

Reads build/steps.txt (a line for each step: name, begin, end) and the log of the ctest run. A suite that ends without its
closing line (a crash, a timeout, no program) counts as one failure, and one that is no suite of tests (a fuzzer) as one test.
Exit 1: a test failed.
"""
import re
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Suite:
    name: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def counted(output, pattern):
    found = re.findall(pattern, output, re.MULTILINE)
    return int(found[-1]) if found else 0


def read_suite(name, output, seconds, is_passed):
    suite = Suite(name, seconds)
    suite.passed = counted(output, r"^\[  PASSED  \] (\d+) tests?\.")
    suite.failed = counted(output, r"^\[  FAILED  \] (\d+) tests?, listed below")
    suite.skipped = counted(output, r"^\[  SKIPPED \] (\d+) tests?, listed below")
    unittest = re.search(r"^Ran (\d+) tests? in", output, re.MULTILINE)
    if unittest:
        suite.skipped = counted(output, r"skipped=(\d+)")
        suite.failed = counted(output, r"failures=(\d+)") + counted(output, r"errors=(\d+)")
        suite.passed = int(unittest.group(1)) - suite.skipped - suite.failed
    pytest = re.search(r"^=+ (.*) in [0-9.]+s.* =+$", output, re.MULTILINE)
    if pytest:
        count = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", pytest.group(1))}
        suite.passed, suite.skipped = count.get("passed", 0), count.get("skipped", 0)
        suite.failed = count.get("failed", 0) + count.get("error", 0) + count.get("errors", 0)
    if not is_passed and suite.failed == 0:
        suite.failed = 1
    if is_passed and suite.passed + suite.failed + suite.skipped == 0:
        suite.passed = 1
    return suite


def read_suites(log, failed_names):
    """`failed_names`: what ctest itself says; its log calls also a test passed whose program is not there."""
    suites = []
    for part in re.split(r"^\d+/\d+ Testing: ", log, flags=re.MULTILINE)[1:]:
        name = part.splitlines()[0].strip()
        time = re.search(r"^Test time = +([0-9.]+) sec", part, re.MULTILINE)
        is_passed = re.search(r"^Test Passed\.", part, re.MULTILINE) is not None and name not in failed_names
        suites.append(read_suite(name, part, float(time.group(1)) if time else 0, is_passed))
    return suites


def read_steps(text):
    """Each step's name and seconds, as they began, and the seconds from the first to the last: some run side by side."""
    lines = [line.split("\t") for line in text.splitlines()]
    steps = sorted((float(begin), float(end), name) for name, begin, end in lines)
    altogether = max(end for _, end, _ in steps) - steps[0][0]
    return [(name, end - begin) for begin, end, name in steps], altogether


def main():
    build = Path(sys.argv[1])
    steps, altogether = read_steps((build / "steps.txt").read_text())
    folder = build / "Testing" / "Temporary"
    log, failures = folder / "LastTest.log", folder / "LastTestsFailed.log"
    failed_names = {line.partition(":")[2] for line in failures.read_text().splitlines()} if failures.exists() else set()
    suites = read_suites(log.read_text(errors="replace"), failed_names) if log.exists() else []
    print(f"\n{'step':<24}{'seconds':>9}")
    for name, seconds in steps:
        print(f"{name:<24}{seconds:>9.1f}")
    print(f"{'altogether':<24}{altogether:>9.1f}")
    print(f"\n{'suite':<24}{'seconds':>9}{'passed':>9}{'failed':>8}{'skipped':>9}")
    for suite in sorted(suites, key=lambda suite: -suite.seconds):
        print(f"{suite.name:<24}{suite.seconds:>9.1f}{suite.passed:>9}{suite.failed:>8}{suite.skipped:>9}")
    passed, failed, skipped = (sum(getattr(suite, field) for suite in suites) for field in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
