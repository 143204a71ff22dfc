"""Steps that test: numerics against the oracle and the sanitizers."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SHARDS = 12
# Small cases for the sanitizers, which slow a kernel down a hundredfold.
SANITIZED = "Shapes/Attend.*n65_65*:Shapes/Attend.*n257_129*:Layouts/Attend.*:Layouts/Predicted.*:"\
            "Gpu.ListsAndTokensMayEndWithTheirAllocation"
TEST_LIMIT_S = 200
SANITIZER_LIMIT_S = 260
FAMILIES = {"portable": {"LACUNA_ATTEND_FAMILY": "mma"}, "chosen": {}}  # what the planner takes by itself


def gtest_summary(paths):
    """One summary of the reports that the shards of a test program wrote."""
    suites = [suite for path in paths for suite in json.loads(Path(path).read_text())["testsuites"]]
    tests = [(suite["name"], test) for suite in suites for test in suite["testsuite"] if test["status"] == "RUN"]
    skipped = sum(test["result"] == "SKIPPED" for _, test in tests)
    return {"run": len(tests) - skipped, "skipped": skipped,
            "failed": [f"{suite}.{test['name']}" for suite, test in tests if test.get("failures")]}


def step_numerics(run):
    """Every spec, dtype, head dim, shape and value against the fp64 oracle; graphs, streams, large offsets."""
    def shard(index):
        report = run.out / f"numerics-{index}.json"
        env = {"GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(index)}
        result = run.program("test_numerics", f"--gtest_output=json:{report}", "--gtest_brief=1", more_env=env,
                             timeout_s=TEST_LIMIT_S)
        return result, report

    with ThreadPoolExecutor(SHARDS) as pool:  # the kernels are small: most of the time goes to NVRTC and to the oracle
        results = list(pool.map(shard, range(SHARDS)))
    log = "".join(result.stdout + result.stderr for result, _ in results)
    (run.out / "numerics.log").write_text(log)
    ended = [report for result, report in results if result.returncode in (0, 1)]
    summary = gtest_summary(ended)
    if len(ended) < SHARDS:
        summary["crashed"] = [result.returncode for result, _ in results if result.returncode not in (0, 1)]
    if summary["failed"] or "crashed" in summary:
        print(log[-6000:])
    for _, report in results:
        report.unlink(missing_ok=True)
    return summary


def sanitize(run, tool, family):
    """The tool's verdict on one family of attend; what it has to say lies in a log beside the record."""
    log = run.out / f"{tool}-{family}.log"
    result = run.program("test_numerics", f"--gtest_filter={SANITIZED}", "--gtest_brief=1", timeout_s=SANITIZER_LIMIT_S,
                         more_env=FAMILIES[family],
                         before=["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--log-file", log])
    summary = [line for line in log.read_text().splitlines() if "SUMMARY" in line or "Error" in line] if log.exists() else []
    return {"family": family, "exit": result.returncode, "summary": summary[-3:], "tests": result.stdout.strip()[-200:]}


def sanitize_families(run, tool):
    """Side by side: the tools run on the CPU as much as on the GPU."""
    with ThreadPoolExecutor(len(FAMILIES)) as pool:
        return {"filter": SANITIZED, "families": list(pool.map(lambda family: sanitize(run, tool, family), FAMILIES))}


def step_memcheck(run):
    """compute-sanitizer memcheck over the small cases."""
    return sanitize_families(run, "memcheck")


def step_racecheck(run):
    """compute-sanitizer racecheck over the small cases. It pairs accesses with arrivals of the very lane: on wgmma, where
    one lane arrives for its warp behind a __syncwarp, it reports what those orders (tests/numerics/README.md)."""
    return sanitize_families(run, "racecheck")
