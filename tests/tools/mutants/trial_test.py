"""tools/dev/mutants.py: how a mutant is tried. It leaves nothing behind, and says which suites were asked."""

import contextlib
import os
import pathlib
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/dev"))

from mutation import draw, kernels, process, suites, tree, trial  # noqa: E402


class Copy(unittest.TestCase):
    """A tree whose build is one output of one source."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = tree.Tree(ROOT, folder.name, {"short": suites.Tier({}, {})})
        self.folder = self.tree.builds["short"].folder
        self.source = self.tree.root / "cache/x.cpp"
        self.source.parent.mkdir(parents=True)
        self.source.write_text("f(a < b);\n")
        os.utime(self.source, (1e9, 1e9))
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / ".ninja_log").write_text("# ninja log v5\n0\t1\t2\told.o\t3\n0\t1\t2\tbin/new\t3\n0\t1\t2\tgone.o\t3\n")
        (self.folder / "old.o").write_text("of the source")
        os.utime(self.folder / "old.o", (1e9 + 1, 1e9 + 1))
        self.mutant = draw.mutants_of("cache/x.cpp", self.source.read_text())[0]

    def expect_restored(self):
        self.assertEqual((self.source.read_text(), self.source.stat().st_mtime), ("f(a < b);\n", 1e9))
        self.assertTrue((self.folder / "old.o").exists())
        self.assertFalse((self.folder / "bin/new").exists())

    def test_neither_a_mutant_nor_what_was_built_of_it_stays(self):
        with self.tree.mutated(self.mutant):
            self.assertEqual(self.source.read_text(), self.mutant.applied("f(a < b);\n"))
            (self.folder / "bin/new").write_text("of the mutant")
        self.expect_restored()

    def test_nor_where_the_run_is_interrupted(self):
        with self.assertRaises(KeyboardInterrupt), self.tree.mutated(self.mutant):
            (self.folder / "bin/new").write_text("of the mutant")
            raise KeyboardInterrupt
        self.expect_restored()

    def test_the_copy_becomes_the_checkout_and_what_is_equal_keeps_its_date(self):
        self.tree.origin = pathlib.Path(tempfile.mkdtemp(dir=self.tree.root.parent))
        process.sh(["git", "init", "-q", self.tree.origin])
        (self.tree.origin / "cache").mkdir()
        (self.tree.origin / "cache/x.cpp").write_text("f(a < b);\n")
        (self.tree.origin / "cache/new.cpp").write_text("new\n")
        (self.tree.root / "cache/gone.cpp").write_text("gone\n")
        self.tree.synchronise()
        self.assertEqual(sorted(path.name for path in self.source.parent.iterdir()), ["new.cpp", "x.cpp"])
        self.expect_restored()


class Failures(unittest.TestCase):
    def test_what_failed_is_the_build_itself_a_unit_or_a_program_of_ours(self):
        again = "[0/1] Re-running CMake...\nFAILED: build.ninja \n/usr/bin/cmake --regenerate-during-build\n"
        self.assertEqual(tree.failed_outputs(again), ["build.ninja"])
        for failed in (["build.ninja"], ["/work/build/CMakeFiles/cmake.verify_globs"], []):
            self.assertTrue(tree.is_of_build(failed), failed)
        for output in ("a/CMakeFiles/b.dir/Unity/unity_0_cxx.cxx.o", "bin/lacuna", "cache/liblacuna_cache.a", "bin/liblacuna.so.0.1.0"):
            self.assertFalse(tree.is_of_build([output]), output)
            self.assertFalse(tree.is_product(output), output)
        for output in ("tests/device/dense_d64_bf16_sm_90a.cu", "tests/CMakeFiles/device_kernels.dir/device/device_kernels/dense.cpp.o"):
            self.assertFalse(tree.is_of_build([output]), output)
            self.assertTrue(tree.is_product(output), output)


class Process(unittest.TestCase):
    def test_one_without_an_end_is_ended_with_its_children(self):
        begin = time.monotonic()
        done = process.sh(["sh", "-c", "echo begun; sleep 60 & wait"], timeout_s=0.5)
        self.assertEqual((done.returncode, done.stdout), (process.TIMED_OUT, "begun\n"))
        self.assertLess(time.monotonic() - begin, 30)


class Suites(unittest.TestCase):
    def test_the_longest_beginning_of_a_path_says_who_is_asked_first(self):
        names = list(suites.ORDER)
        for path, first in (("runtime/cpu/llvm/jit/jit.cpp", "host"), ("runtime/launch/host_launch.cpp", "host"), ("runtime/engine/kernel.cpp", "runtime"),
                            ("compiler/expr/fold.cpp", "expr"), ("compiler/diag/codes.def", "diag")):
            self.assertEqual(suites.order_of(path, names)[0], first, path)
        self.assertEqual(sorted(suites.order_of("cache/x.cpp", names)), sorted(names))

    def test_the_beginnings_of_paths_are_those_of_sources(self):
        paths = tree.listed_files(ROOT)
        for beginning in (*suites.FIRST, *tree.FLAGS):
            self.assertTrue(any(path.startswith(beginning) for path in paths), beginning)

    def test_the_failed_test_is_named_or_the_one_that_ran(self):
        self.assertEqual(suites.failed_test("[ RUN      ] A.b\n[  FAILED  ] A.b, where GetParam() = 1 (3 ms)\n"), "A.b")
        self.assertEqual(suites.failed_test("[ RUN      ] A.b\n[       OK ] A.b (1 ms)\n[ RUN      ] A.c\nterminate called\n"), "A.c")
        self.assertEqual(suites.failed_test("FAIL: test_x (__main__.X.test_x)\n"), "test_x")

    def test_tests_named_like_a_source_are_asked_first(self):
        self.assertIn("*Calibrate.*", suites.likely_tests(ROOT, "tools", "tools/calibrate/report.cpp").split(":"))
        self.assertIn("*Npy.*", suites.likely_tests(ROOT, "tools", "tools/files/npy.cpp").split(":"))
        self.assertEqual(suites.likely_tests(ROOT, "tools", "tools/unheard_of.cpp"), "")
        self.assertEqual(suites.likely_tests(ROOT, "host", "runtime/cpu/llvm/jit/jit.cpp"), "")

    def test_tests_that_include_a_header_are_asked_first(self):
        self.assertIn("*RandomProblem.*", suites.likely_tests(ROOT, "tools", "tools/measure/random_problem.cpp").split(":"))

    def test_the_long_tier_has_more_where_tests_ask_for_their_tier(self):
        folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.cpp") if '"tests/tier.hpp"' in path.read_text()}
        alone = {"device", "races", "numerics_interpreter"}  # by what is built, or the same program
        self.assertEqual(set(suites.TIERS["long"].entries), folders - set(suites.NOT_ASKED) | alone)

    def test_programs_are_asked_and_scripts_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(
                f'add_test(dev_scripts "{sys.executable}" "x.py")\nadd_test(tier "/bin/true")\n'
                'add_test(cache "/bin/true" "a")\nadd_test(numerics.1 "/not/built/yet")\nadd_test(numerics.2 "/not/built/yet")\n')
            found = suites.suites_of(pathlib.Path(folder))
        self.assertEqual({name: suite.command for name, suite in found.items()}, {"cache": ("/bin/true", "a"), "numerics": ()})

    def test_single_kernels_are_run_by_the_tests_that_include_them(self):
        tests = kernels._tests_of_single(ROOT / "tests/device")
        self.assertEqual(tests["prepare"], ["Prepare"])
        self.assertIn("Attend", tests["attend_gathered"])
        self.assertEqual([name for name, found in tests.items() if not found], [])

    def test_batches_grow(self):
        self.assertEqual([len(batch) for batch in kernels.batches(list(range(40)))], [2, 4, 8, 16, 10])


class FakeTree:
    """Every suite depends on every file; `changes`: the mutant changes the bytes of their programs."""

    def __init__(self, changes):
        self.root, self.builds = ROOT, dict.fromkeys(suites.TIERS, self)
        self.changes, self.applied, self.made = changes, False, set()
        self.code_changes = True

    @contextlib.contextmanager
    def mutated(self, _mutant):
        self.applied = True
        yield
        self.applied = False
        self.made.clear()

    def is_current(self, target):
        return not self.applied or target in self.made

    def compiled(self, path, limit_s):
        return tree.Built(True, False, "")

    def has_same_code(self, mutant):
        return not self.code_changes

    def make(self, target, limit_s):
        if self.applied:
            self.made.add(target)
        return tree.Built(True, False, "")


class FakeLab(trial.Lab):
    """`failing`: "tier suite" of those that fail where a mutant is applied."""

    def __init__(self, failing, changes=True):
        self.tree, self.failing, self.calls, self.say = FakeTree(changes), failing, [], lambda text: None
        self.baselines, self.fingerprints, self.programs = {}, {}, {}
        self.seconds = {}  # filter -> what it takes with a mutant
        self.fails_always = set()
        self.suites = {tier: {name: suites.Suite(name, f"test_{name}") for name in ("cache", "numerics")} for tier in suites.TIERS}

    def prepare(self, tier, name, patience_s):
        self.fingerprints[tier, name] = self.fingerprint(tier, name)
        return True

    def fingerprint(self, tier, name):
        return "mutant" if self.tree.applied and self.tree.changes else "source"

    def ask(self, suite, tier, limit_s, program=None, chosen=""):
        self.calls.append((f"{tier} {suite.name}", self.tree.applied))
        if self.tree.applied and limit_s < self.seconds.get(chosen, 0):
            return trial.Answer(False, "A.slow", limit_s, has_end=False)
        label = f"{tier} {suite.name}"
        fails = label in self.fails_always or (self.tree.applied and label in self.failing)
        return trial.Answer(not fails, "A.b" if fails else "", 1.0)


class Trials(unittest.TestCase):
    MUTANT = SimpleNamespace(file="cache/x.cpp")

    def judged(self, lab, end=float("inf")):
        outcome = trial.Trial(lab, self.MUTANT, end).judge()
        self.assertFalse(lab.tree.applied)
        return outcome

    def test_the_first_suite_that_fails_finds_a_mutant(self):
        lab = FakeLab({"short cache", "short numerics"})
        outcome = self.judged(lab)
        self.assertEqual([outcome[name] for name in ("result", "tier", "suite", "test")], ["found", "short", "cache", "A.b"])
        self.assertEqual(lab.calls, [("short cache", False), ("short cache", True)])

    def test_the_long_tier_is_asked_where_the_short_one_finds_nothing(self):
        outcome = self.judged(FakeLab({"long numerics"}))
        self.assertEqual((outcome["tier"], outcome["asked"]), ("long", ["short cache", "short numerics"]))

    def test_one_that_no_suite_finds_survives_and_none_is_asked_twice(self):
        outcome = self.judged(FakeLab(set()))
        self.assertEqual((outcome["result"], outcome["asked"]), ("survived", ["short cache", "short numerics", "long numerics"]))

    def test_a_hang_is_a_finding_and_a_busy_machine_is_none(self):
        for takes_s, found in (({"": 100}, "survived"), ({"": 100, "A.slow": 100}, "found")):
            lab = FakeLab(set())
            lab.suites = {"short": lab.suites["short"]}
            lab.seconds = takes_s
            outcome = self.judged(lab)
            self.assertEqual(outcome["result"], found)
            self.assertEqual(outcome.get("test"), "A.slow (no end)" if found == "found" else None)

    def test_a_suite_may_be_left_out_and_then_nothing_survives(self):
        lab = FakeLab({"short numerics"})
        outcome = trial.Trial(lab, self.MUTANT, without=["numerics"]).judge()
        self.assertEqual((outcome["result"], outcome["asked"]), ("undecided", ["short cache"]))
        self.assertEqual(outcome["reason"], "not asked: short numerics, long numerics")

    def test_a_tier_alone_may_be_asked(self):
        outcome = trial.Trial(FakeLab({"long numerics"}), self.MUTANT, tier="short").judge()
        self.assertEqual((outcome["result"], outcome["reason"]), ("undecided", "not asked: long numerics"))

    def test_suites_of_one_program_are_all_asked(self):
        lab = FakeLab({"short numerics"})
        lab.suites["short"] = {name: suites.Suite(name, "test_numerics") for name in ("numerics_interpreter", "numerics")}
        self.judged(lab)
        self.assertEqual(self.judged(lab)["suite"], "numerics")

    def test_a_long_suite_is_asked_at_once_and_what_fails_without_a_mutant_finds_nothing(self):
        lab = FakeLab({"long numerics"})
        self.judged(lab)
        self.assertEqual([call for call in lab.calls if call[0] == "long numerics"], [("long numerics", True), ("long numerics", False)])
        lab = FakeLab({"long numerics"})
        lab.fails_always = {"long numerics"}
        outcome = self.judged(lab)
        self.assertEqual((outcome["result"], outcome["reason"]), ("undecided", "not asked: long numerics (fails without a mutant)"))

    def test_nobody_is_asked_about_the_same_bytes(self):
        lab = FakeLab({"short cache"}, changes=False)
        self.assertEqual(self.judged(lab)["result"], "equivalent")
        self.assertNotIn(True, [applied for _, applied in lab.calls])

    def test_nor_is_the_long_tier_where_a_release_has_the_same_code(self):
        lab = FakeLab({"long numerics"})
        lab.tree.code_changes = False
        self.assertEqual(self.judged(lab)["result"], "equivalent")
        self.assertNotIn("long numerics", dict(lab.calls))

    def test_past_its_time_nothing_is_said_and_later_the_others_are_asked(self):
        self.assertEqual(self.judged(FakeLab({"short cache"}), end=0)["result"], "undecided")
        lab = FakeLab({"short cache", "short numerics"})
        outcome = trial.Trial(lab, self.MUTANT, asked=["short cache"]).judge()
        self.assertEqual((outcome["suite"], lab.calls), ("numerics", [("short numerics", False), ("short numerics", True)]))

    def test_patience_is_of_processor_time_and_keeps_what_was_asked(self):
        lab, spent = FakeLab({"short numerics"}), 0
        ask = lab.ask

        def ask_and_spend(*arguments, **named):
            nonlocal spent
            spent += 10  # of a suite, without the mutant too
            return ask(*arguments, **named)

        lab.ask = ask_and_spend
        with mock.patch.object(trial, "spent_s", lambda: spent):
            outcome = trial.Trial(lab, self.MUTANT, patience_s=9).judge()
        self.assertEqual([outcome[name] for name in ("result", "reason", "asked")], ["undecided", "out of patience", ["short cache"]])


if __name__ == "__main__":
    unittest.main()
