"""tools/dev/mutants.py: what is drawn, that a mutant leaves nothing behind, and what is recorded."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
from types import SimpleNamespace
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/dev"))

import mutants  # noqa: E402
from mutation import draw, kernels, moved, process, record, suites, text, tree, trial  # noqa: E402
from mutation.operators import OPERATORS  # noqa: E402

# Operator -> (code, what it makes of it), in a device header where it knows such alone.
SNIPPETS = {
    "barrier_dropped": ("  __syncthreads();\n", ["  ;\n"]),
    "arrival_dropped": ("  smem.barrier(x[at.slot()]).arrive_expecting(4);\n", ["  ;\n"]),
    "wait_dropped": ("  wgmma_wait<0>();\n", ["  ;\n"]),
    "fence_dropped": ("  fence_proxy_async();\n", ["  ;\n"]),
    "wait_too_short": ("cp_async_wait<Config::kStages - 2>()", ["cp_async_wait<Config::kStages - 2 + 1>()"]),
    "phase_flipped": ("a.wait(at.phase()), b.wait(at.phase() ^ 1)", ["a.wait(at.phase() ^ 1), b.wait(at.phase() ^ 1)",
                                                                     "a.wait(at.phase()), b.wait(at.phase())"]),
    "slot_reused_early": ("  keys_.advance();\n", ["  ;\n"]),
    "other_slot": ("f(keys_.slot())", ["f(keys_.before().slot())"]),
    "ring_shortened": ("n < Config::kStages - 1", ["n < Config::kStages"]),
    "full_for_empty": ("k_empty[slot]", ["k_full[slot]"]),
    "mask_bit_lost": ("x & 0x80000001u", ["x & 0x00000001u"]),
    "vote_lost": ("= __ballot_sync(kAllLanes, f(x));", ["= (__ballot_sync(kAllLanes, f(x)) & ~1u);"]),
    "flag_not_set": ("open(path, kRead | kClose)", ["open(path, kRead)"]),
    "flag_ignored": ("if (!row.is_last()) f();", ["if (true) f();", "if (false) f();"]),
    "condition_ignored": ("if (a < b && !is_last) f();", ["if (a < b) f();"]),
    "bound_off_by_one": ("f(n - 1)", ["f(n)"]),
    "rounded_down": ("ceil_div(f(a, b), 32)", ["((f(a, b)) / (32))"]),
    "order_exchanged": ("f(a, b.c, 1)", ["f(b.c, a, 1)"]),
    "direction_exchanged": ("plan.descending, Config::kDescending", ["plan.ascending, Config::kDescending",
                                                                     "plan.descending, !Config::kDescending"]),
    "twin_exchanged": ("x * view.stride_b", ["x * view.stride_h"]),
    "relation": ("a < b", ["a <= b", "a >= b"]),
    "arithmetic": ("a * b", ["a / b"]),
    "bitwise": ("a >> b", ["a << b"]),
    "logical": ("f(a) && f(b)", ["f(a) || f(b)"]),
    "assignment": ("a += f(b)", ["a -= f(b)"]),
    "increment": ("f(++x)", ["f(--x)"]),
    "complement": ("f(!x)", ["f(x)"]),
    "constant": ("x[4u]", ["x[5u]", "x[3u]"]),
    "float_constant": ("f(0.5f, 0.0f)", ["f((2 * 0.5f), 0.0f)", "f(0.5f, 1.0f)"]),
    "boolean": ("f(true)", ["f(false)"]),
    "condition_negated": ("if (f(x) > 1 && y) {", ["if (!(f(x) > 1 && y)) {"]),
    "choice_exchanged": ("x = is_a ? a : b;", ["x = is_a ? b : a;"]),
    "loop_bound": ("for (int n = first; n < end; ++n) f(n);", ["for (int n = first; n + 1 < end; ++n) f(n);",
                                                               "for (int n = first + 1; n < end; ++n) f(n);"]),
    "statement_deleted": ("  int x = 1;  // why\n  list[x] = f(x, 1);\n  return x;\n", ["  int x = 1;  // why\n  ;\n  return x;\n"]),
    "return_value": ("return f(x, y);", ["return {};"]),
    "jump": ("if (x) break;", ["if (x) continue;"]),
    "extremum": ("std::min(a, b)", ["std::max(a, b)"]),
}


def changed(operator, code, path="templates/attend/x.cuh"):
    return [mutant.applied(code) for mutant in draw.mutants_of(path, code) if mutant.operator == operator]


class Operators(unittest.TestCase):
    def test_each_makes_of_its_snippet_what_is_expected(self):
        self.assertEqual(set(SNIPPETS), {operator.name for operator in OPERATORS})
        for name, (code, expected) in SNIPPETS.items():
            with self.subTest(name):
                self.assertEqual(changed(name, code), expected)

    def test_each_has_places_in_the_sources(self):
        missing = list(OPERATORS)
        for path in sorted((ROOT / "templates").rglob("*.cuh")) + sorted((ROOT / "cache").glob("*.cpp")):
            code = text.code_of(path.read_text())
            missing = [operator for operator in missing if next(iter(operator.find(code)), None) is None]
        self.assertEqual([operator.name for operator in missing], [])

    def test_barriers_are_dropped_in_device_code_alone(self):
        self.assertEqual(changed("wait_dropped", "  await_slot();\n", "runtime/x.cpp"), [])

    def test_what_would_not_compile_is_not_tried(self):
        self.assertEqual(changed("wait_dropped", "  for (int step = this->wait(at); step > 0;) {\n"), [])
        self.assertEqual(changed("condition_ignored", "if (a && std::ranges::count(b, c)) f();"), [])

    def test_a_literal_inside_a_changed_place_stays(self):
        self.assertEqual(changed("condition_negated", 'if (name == "a") f();'), ['if (!(name == "a")) f();'])


class Code(unittest.TestCase):
    def test_what_is_no_code_has_no_mutant(self):
        for source in ('// a < b\n', '/* a < b\n x - 1 */\n', 'f("a < b && 1");\n', 'f(R"(x < 1 "quoted" < 2)");\n', "f('1');\n",
                       "#if A < 1\n", "#define F(x) \\\n  x < 1\n", "static_assert(sizeof(X) < 16 && f(1), \"why\");\n",
                       "list.reserve(n - 1);\n", "template <int kA = 1, class B>\n"):
            with self.subTest(source):
                self.assertEqual([mutant.applied(source) for mutant in draw.mutants_of("templates/x.cuh", source)], [])

    def test_every_character_keeps_its_place(self):
        for path in ("compiler/expr/text/tokens.cpp", "templates/arch/multiply/wgmma.cuh", "tools/inputs/inputs.cpp"):
            source = (ROOT / path).read_text()
            code = text.code_of(source)
            self.assertEqual([len(line) for line in code.split("\n")], [len(line) for line in source.split("\n")])
            self.assertTrue(all(kept in (" ", '"', there) for kept, there in zip(code, source)))

    def test_a_hint_has_none_and_its_condition_has(self):
        source = "if (__builtin_expect(a < b, false)) f();"
        self.assertEqual(changed("boolean", source), [])
        self.assertEqual(changed("relation", source)[0], "if (__builtin_expect(a <= b, false)) f();")

    def test_separators_of_digits_begin_no_literal(self):
        self.assertEqual(changed("relation", "x < 1'000'000;  // isn't\n")[0], "x <= 1'000'000;  // isn't\n")


class Draw(unittest.TestCase):
    TEXTS = {f"{folder}/{name}.cpp": "\n".join(f"  f(x{n} < {n}, y - 1);" for n in range(lines)) + "\n"
             for folder, name, lines in (("cache", "a", 3), ("compiler", "b", 40), ("compiler", "c", 40), ("runtime", "d", 17))}

    def test_the_same_seed_draws_the_same(self):
        self.assertEqual(draw.draw(self.TEXTS, 1, 20), draw.draw(dict(reversed(self.TEXTS.items())), 1, 20))
        self.assertNotEqual(draw.draw(self.TEXTS, 1, 20), draw.draw(self.TEXTS, 2, 20))

    def test_folders_have_their_share_and_lines_one_mutant(self):
        drawn = draw.draw(self.TEXTS, 1, 20)
        self.assertEqual({folder: wanted for folder, (wanted, _) in drawn.items()}, {"cache": 1, "compiler": 16, "runtime": 3})
        for _, mutants in drawn.values():
            lines = [(mutant.file, mutant.line) for mutant in mutants]
            self.assertEqual(len(lines), len(set(lines)))

    def test_a_mutant_keeps_its_name_where_its_line_moves(self):
        source = "\n" + self.TEXTS["cache/a.cpp"]
        names = {mutant.id for mutant in draw.mutants_of("cache/a.cpp", source)}
        self.assertEqual(names, {mutant.id for mutant in draw.mutants_of("cache/a.cpp", "\n// moved\n" + source)})

    def test_one_that_fits_no_longer_is_refused(self):
        mutant = draw.mutants_of("cache/a.cpp", "f(a < b);\n")[0]
        with self.assertRaisesRegex(ValueError, "cache/a.cpp: expected"):
            mutant.applied("f(b, a);\n")


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


class Record(unittest.TestCase):
    ROWS = [{"id": "1", "file": "a", "line": 1, "result": "found", "tier": "short"}, {"id": "2", "file": "a", "line": 2, "result": "survived"},
            {"id": "3", "file": "b", "line": 1, "result": "invalid"}]

    def test_counts_words_and_other_draws_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mutants.json")
            record.update(path, 2, 10, "commit", self.ROWS[:1])
            draw_1 = record.update(path, 1, 10, "commit", self.ROWS)
            self.assertEqual(draw_1["counts"], {"drawn": 2, "found": {"short": 1}, "survived": 1, "undecided": 0,
                                                "not counted": {"invalid": 1, "equivalent": 0}})
            content = json.loads(path.read_text())
            content["draws"][0]["mutants"][1]["word"] = "dead code"
            record.write(path, content)
            record.update(path, 1, 10, "later", self.ROWS)
            draws = json.loads(path.read_text())["draws"]
            self.assertEqual([draw["seed"] for draw in draws], [1, 2])
            self.assertEqual([row.get("word") for row in draws[0]["mutants"]], [None, "dead code"])
            self.assertEqual(record.outcomes(path, 1)["2"], {"commit": "later", "result": "survived", "word": "dead code"})

    def test_what_was_found_at_another_commit_keeps_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mutants.json")
            record.update(path, 1, 10, "earlier", self.ROWS[:1])
            record.update(path, 1, 10, "later", [{"id": "1", "file": "a", "line": 7, **record.outcomes(path, 1)["1"]}])
            self.assertEqual(json.loads(path.read_text())["draws"][0]["commit"], "later")
            self.assertEqual(record.outcomes(path, 1)["1"]["commit"], "earlier")
            record.update(path, 1, 10, "last", [])  # drawn no more
            self.assertEqual(record.outcomes(path, 1)["1"]["commit"], "earlier")

    def test_one_whose_file_has_moved_is_found_again_by_its_line(self):
        row = {"operator": "relation", "before": "<", "after": "<=", "file": "cache/a.cpp"}
        texts = {"cache/files/a.cpp": "int x;\n  if (a < b) f();\n", "cache/b.cpp": "if (a < b) f();\n", "cache/c.cpp": "if (c < b) f();\n"}
        found = moved.found_again(texts, row, "if (a < b) f();")
        self.assertEqual((found.file, found.line, found.after), ("cache/files/a.cpp", 2, "<="))
        self.assertIsNone(moved.found_again(texts, row | {"file": "cache/other.cpp"}, "if (a < b) f();"), "of two files neither has the name")
        self.assertIsNone(moved.found_again(texts, row, "if (d < b) f();"))

    def test_what_has_moved_takes_the_place_of_what_it_was_and_keeps_its_word(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mutants.json")
            rows = [{"id": "1", "file": "a", "line": 1, "result": "undecided", "word": "why"}, {"id": "2", "file": "a", "line": 2, "result": "undecided"},
                    {"id": "3", "file": "a", "line": 3, "result": "undecided"}]
            record.update(path, 1, 10, "earlier", rows)
            record.update(path, 1, 10, "later", [{"id": "9", "file": "b", "line": 1, "result": "survived"}], {"1": "9", "2": None})
            self.assertEqual([(row["id"], row["result"], row.get("word")) for row in record.rows_of(path, 1)],
                             [("3", "undecided", None), ("9", "survived", "why")])

    def test_a_new_copy_goes_on_where_the_record_is(self):
        texts = {"cache/a.cpp": "int f(int a, int b) {\n  if (a < b) return 1;\n  return a * b;\n}\n"}
        first = draw.draw(texts, 1, 1)["cache"][1][0]
        for result, following in (("found", None), ("undecided", first)):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "mutants.json")
                record.update(path, 1, 1, "earlier", [record.row_of(first, {"result": result, "tier": "short", "asked": ["short cache"]})])
                args = SimpleNamespace(seed=1, count=1, folder=None, only=[], undecided=False, minutes=1, json=path, work=pathlib.Path(folder))
                run = mutants.Run(args, texts)
                self.assertEqual(next(run.waiting(), None), following)
                self.assertEqual(run.results, {}, "what another copy finds meanwhile is not written over")
                run.keep()
                self.assertEqual(run.keep()["counts"]["drawn"], 1, "kept behind each mutant")


if __name__ == "__main__":
    unittest.main()
