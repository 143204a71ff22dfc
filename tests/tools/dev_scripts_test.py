"""The scripts of tools/dev that stand on the shape of the reports, and that of the fuzzers. What they launch is tested by
dev_module_test.py."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/dev"))

import peers  # noqa: E402
import test_report  # noqa: E402
import same_sass  # noqa: E402
from gpu import correctness, machine, points, sensors, speed, subjects  # noqa: E402
from sass import declarations, machine_code  # noqa: E402


class Points(unittest.TestCase):
    def test_a_point_prints_as_it_is_written(self):
        for text in ("dense:d=64,n=8192,causal=1", "lists:d=128,n=32768,k=64,density=0.25", "gate:d=128,n=16384,spec=bsfa,gated=0.75",
                     "topk:d=128,n=32768,causal=1,ratio=0.1", "selection:d=128,n=65536", "split:d=128,n=131072,n_q=16"):
            self.assertEqual(str(points.parse_points([text])[0]), text)

    def test_presets_have_a_bar_at_every_point(self):
        every = points.parse_points(list(points.PRESETS))
        self.assertEqual([point for point in every if not point.bar], [])
        self.assertEqual(len(every), len(set(every)))
        self.assertEqual(set(points.PRESETS), set(subjects.SET_UP))

    def test_a_bar_is_a_ratio_a_rate_or_a_time(self):
        row = {"ratio": {"dense": 0.9}, "alone": {"tflops": 870.0, "median_us": 11e3}}
        for bar, reached, text in (({"against": "dense", "at_least": 0.9}, True, "0.9 x dense"),
                                   ({"against": "dense", "at_least": 0.91}, False, "0.91 x dense"),
                                   ({"against": "flex", "at_least": 1.0}, None, "1 x flex"),
                                   ({"tflops_at_least": 870}, True, "870 TFLOP/s"), ({"tflops_at_least": 871}, False, "871 TFLOP/s"),
                                   ({"ms_at_most": 11.0}, True, "11.0 ms"), ({"ms_at_most": 10.9}, False, "10.9 ms")):
            self.assertEqual((points.is_reached(bar, row), points.bar_text(bar)), (reached, text))
            self.assertEqual(points.is_absolute(bar), "against" not in bar)
        self.assertIsNone(points.is_reached({}, row))

    def test_what_is_no_point_is_refused_by_name(self):
        for text, message in (("densest", "expected one of dense, lists, gate, quantised, .*, got densest"),
                              ("gate:k=64", "gate takes d, n, spec, gated, values, dtype, got k"), ("dense:n=many", "invalid literal")):
            with self.assertRaisesRegex(SystemExit, message):
                points.parse_points([text])


class FakeTorch:
    """A device whose clock goes on by what is recorded, and by what a launch takes."""

    def __init__(self):
        self.now_ms, self.cuda, device = 0.0, self, self

        class Event:
            def __init__(self, enable_timing):
                self.enable_timing, self.cuda_event = enable_timing, None

            def record(self):
                self.cuda_event, self.at_ms = self, device.now_ms

            def elapsed_time(self, end):
                return end.at_ms - self.at_ms

            def synchronize(self):
                pass

        self.Event = Event

    def synchronize(self):
        pass


class Subjects(unittest.TestCase):
    def test_a_launch_is_timed_whole_or_by_its_kernels(self):
        torch, kernels_ms = FakeTorch(), {"prepare": 1.0, "estimate": 2.0, "compact": 4.0, "attend": 8.0}

        def launch(events=()):
            for n, time in enumerate(kernels_ms.values()):
                if events:
                    events[n].record()
                torch.now_ms += time
            if events:
                events[-1].record()

        whole, some = subjects.Subject(launch, 1.0), subjects.Subject(launch, 1.0, tuple(kernels_ms), subjects.SELECTION)
        times = peers.interleave(torch, {"whole": whole, "some": some}, 0.0)
        self.assertEqual(times, {"whole": [15e3] * peers.LEAST_ROUNDS, "some": [6e3] * peers.LEAST_ROUNDS})
        alone = peers.measure_alone(torch, subjects.Subject(launch, 3e10), sensors.Sensors(), 0.0)
        self.assertEqual((alone["median_us"], alone["tflops"]), (15e3, 2.0))

    def test_templates_are_given_by_name(self):
        self.assertEqual(peers.named_folder(f"mine={ROOT}/templates"), ("mine", f"{ROOT}/templates"))
        for text in ("mine", "=templates", "mine=/nowhere"):
            with self.assertRaisesRegex(Exception, "expected NAME=DIR"):
                peers.named_folder(text)


class FakeRun:
    """A machine that answers every `lacuna bench` with the same report."""

    def __init__(self, only):
        self.only, self.families = only, []

    def wants(self, point):
        return point in self.only

    def report(self, _verb, spec, *_options, more_env=None):
        self.families.append((more_env or {}).get("LACUNA_ATTEND_FAMILY"))
        launches = {spec.stem: 110.0, "attend": 90.0, "dense": 200.0}
        kernels = {"permute_q": 7.0, "prepare_q": 4.0, "estimate": 6.0, "attend": 90.0, "unpermute": 3.0}
        return {"launches": [{"name": name, "median_us": time, "of_gemm": 0.5} for name, time in launches.items()],
                "kernels": [{"name": name, "median_us": time} for name, time in kernels.items()], "gemm_tflops": 700.0}


class Check(unittest.TestCase):
    def test_a_decision_is_every_kernel_but_attend_and_the_order(self):
        run = FakeRun(["sparge", "sparge mma", "sparge 65536"])
        rows = speed.step_prediction(run)
        self.assertEqual(run.families, ["mma", None, None])
        self.assertEqual([row.get("family") for row in rows], run.families)
        self.assertEqual([row["at"] for row in rows], ["h=32,n=32768", "h=32,n=32768", "h=32,n=65536"])
        for row in rows:
            self.assertEqual((row["prediction_of_dense"], row["decision_of_dense"]), (0.1, 0.05))
            self.assertEqual((row["kernels_us"]["estimate"], row["of_gemm"]["dense"], row["gemm_tflops"]), (6.0, 0.5, 700.0))

    def test_a_call_past_its_time_ends_with_its_children(self):
        result = machine.sh(["sh", "-c", "echo begun; sleep 60 & wait"], timeout_s=0.5)
        self.assertEqual((result.returncode, result.stdout), (machine.TIMED_OUT, "begun\n"))
        self.assertIn("no end within 0.5 s", result.stderr)

    def test_reports_of_shards_add_up(self):
        report = '{"testsuites": [{"name": "S", "testsuite": [%s]}]}'
        case = '{"name": "%s", "status": "%s", "result": "%s"%s}'
        with tempfile.TemporaryDirectory() as folder:
            one, two = pathlib.Path(folder, "1"), pathlib.Path(folder, "2")
            passed, other = case % ("a", "RUN", "COMPLETED", ""), case % ("b", "NOTRUN", "SUPPRESSED", "")
            failed, skipped = case % ("b", "RUN", "COMPLETED", ', "failures": [1]'), case % ("c", "RUN", "SKIPPED", "")
            one.write_text(report % f"{passed}, {other}")
            two.write_text(report % f"{failed}, {skipped}")
            self.assertEqual(correctness.gtest_summary([one, two]), {"run": 2, "skipped": 1, "failed": ["S.b"]})


class TestReport(unittest.TestCase):
    def test_steps_side_by_side_count_once(self):
        steps, altogether = test_report.read_steps("wheels\t14\t18\nbuild asan\t14\t30\nbuild release\t10\t14\n")
        self.assertEqual(steps, [("build release", 4.0), ("wheels", 4.0), ("build asan", 16.0)])
        self.assertEqual(altogether, 20.0)

    def test_what_did_not_run_failed(self):
        end = "Test time =   1.50 sec\nTest Passed.\n"
        log = "".join(f"{n}/4 Testing: {name}\n{output}{end}" for n, name, output in (
            (1, "golden", "[  PASSED  ] 3 tests.\n[  SKIPPED ] 2 tests, listed below:\n"), (2, "fuzz.spec", "PASSED\n"), (3, "gone", "")))
        log += "4/4 Testing: killed\n[ RUN      ] A.b\nTest Failed.\n"
        suites = test_report.read_suites(log, {"gone", "killed"})
        self.assertEqual([(suite.name, suite.passed, suite.failed, suite.skipped) for suite in suites],
                         [("golden", 3, 0, 2), ("fuzz.spec", 1, 0, 0), ("gone", 0, 1, 0), ("killed", 0, 1, 0)])


class SameSass(unittest.TestCase):
    SOURCE = """
        #pragma once
        namespace lacuna {
        inline constexpr int kUnused = 3, kRows = 16;
        inline constexpr int kTiles = 512;  ///< of a row
        template <class T, int kN = 4>
        struct Block { static constexpr int kWidth = kTiles; T rows[kN + kRows]; };
        __device__ int unused(int x) { return x * kTiles; }
        __device__ int twice(int x) { return 2 * x; }
        }  // namespace lacuna
        extern "C" __global__ void entry(int* out) { lacuna::Block<int> block{}; out[0] = lacuna::twice(block.kWidth); }
        """

    def same(self, *changes, source=SOURCE):
        text = self.SOURCE
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return len({declarations.canonical(declarations.reached(declarations.parse(each))) for each in (source, text)}) == 1

    def test_each_declaration_is_known_by_its_names(self):
        names = [found.names for found in declarations.parse(self.SOURCE)]
        self.assertEqual(names, [("kUnused",), ("kRows",), ("kTiles",), ("Block",), ("unused",), ("twice",), ()])

    def test_a_call_of_a_macro_ends_without_a_semicolon(self):
        text = "OPTIONAL_FIELD(bool, has_rows, kHasRows, false)\ntemplate <class T>\nclass Rows { T of; };\n"
        self.assertEqual([found.names for found in declarations.parse(text)], [("has_rows", "kHasRows"), ("Rows",)])
        source = self.SOURCE.replace("template <class T,", "FIELD(int, width, kWidth, 0)\ntemplate <class T,")
        changed = source.replace("rows[kN + kRows]", "rows[kN]")
        self.assertFalse(self.same(("template <class T,", "FIELD(int, width, kWidth, 0)\ntemplate <class T,"), source=changed))

    def test_a_qualified_type_in_front_is_not_the_name(self):
        text = "template <class C>\ntypename C::Walk begin(int x) { return {x}; }\nvoid Rows::load() {}\n"
        self.assertEqual([found.names for found in declarations.parse(text)], [("begin",), ("Rows",)])

    def test_what_the_entry_does_not_reach_does_not_count(self):
        self.assertTrue(self.same(("return x * kTiles", "return x + 1")))
        self.assertTrue(self.same(("kUnused = 3", "kUnused = 4")))

    def test_places_and_names_do_not_count(self):
        moved = "__device__ int twice(int x) { return 2 * x; }"
        self.assertTrue(self.same((moved, ""), ("namespace lacuna {", "namespace lacuna {\n" + moved)))
        self.assertTrue(self.same(("Block", "Part"), ("twice", "doubled"), ("rows", "columns")))
        self.assertFalse(self.same(("rows[kN + kRows]", "rows[1]"), ("= kTiles", "= kN")))

    def test_a_constant_stands_for_its_number(self):
        self.assertTrue(self.same(("kWidth = kTiles", "kWidth = 512")))
        self.assertFalse(self.same(("kTiles = 512", "kTiles = 256")))
        self.assertFalse(self.same(("kRows = 16", "kRows = 32")))
        self.assertFalse(self.same(("return 2 * x", "return 3 * x")))

    def test_a_member_of_the_name_of_a_constant_is_no_constant(self):
        shadowed = self.SOURCE.replace("kWidth = kTiles", "kTiles = 7, kWidth = kTiles")
        self.assertFalse(self.same(("kWidth = kTiles", "kTiles = 7, kWidth = 512"), source=shadowed))

    def test_a_draw_is_the_same_for_the_same_seed(self):
        groups = {number: [str(number)] for number in range(40)}
        self.assertEqual(same_sass.drawn(groups, 5, 3), same_sass.drawn(groups, 5, 3))
        self.assertEqual(len(same_sass.drawn(groups, None, 3, lambda pair: len(pair) == 1)), 10)


class MachineCode(unittest.TestCase):
    def test_registers_are_those_of_every_function(self):
        without_value, stack = struct.pack("<BBH", 3, 0x2F, 5), struct.pack("<BBHII", 4, 0x11, 8, 7, 64)
        registers = struct.pack("<BBHII", 4, 0x2F, 8, 7, 168) + struct.pack("<BBHII", 4, 0x2F, 8, 9, 40)
        self.assertEqual(machine_code.registers_of(stack + without_value + registers + stack), [168, 40])
        self.assertEqual(machine_code.registers_of(stack), [])


class Snapshots(unittest.TestCase):
    KERNEL = """// made, head_dim 128, bf16, sm_80. Generated by lacuna 0; edit the spec, not this file.
struct Hooks {
};

#include "times.cuh"
extern "C" __global__ void __launch_bounds__(32, 1)
lacuna_attend_made(const __grid_constant__ Args args) {
  times(args);
}
"""

    def write(self, folder, body):
        (folder / "templates").mkdir(parents=True)
        (folder / "templates/times.cuh").write_text(f"__device__ int times(int x) {{ return {body}; }}\n")
        (folder / "made.sm_80.d128.bf16.uniform.cu").write_text(self.KERNEL)
        (folder / "same-sass.json").write_text('[{"spec": "made", "arch": "sm_80", "head_dim": 128, "dtype": "bf16", "batch": "uniform"}]')

    def compare(self, before, after):
        """Exit status and result of a comparison that has no time to compile anything."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.write(folder / "before", before)
            self.write(folder / "after", after)
            run = subprocess.run([ROOT / "tools/dev/same_sass.py", "compare", folder / "before", folder / "after", "--seconds", "0",
                                  "--json", folder / "result.json"], capture_output=True, text=True, check=False)
            return run.returncode, json.loads((folder / "result.json").read_text())

    def test_two_are_compared_by_their_sources_without_a_build(self):
        status, result = self.compare("2 * x", "2 * x")
        self.assertEqual((status, result["pairs"], result["to_compile"], result["left"]), (0, 1, 0, []))

    def test_what_there_was_no_time_for_is_named(self):
        status, result = self.compare("2 * x", "3 * x")
        self.assertEqual((status, result["to_compile"], result["problems"]), (2, 1, []))
        self.assertEqual(result["left"], ["made.sm_80.d128.bf16.uniform: lacuna_attend_made"])


class FuzzRun(unittest.TestCase):
    def test_a_run_that_is_stopped_has_found_nothing(self):
        for ends, status, says in ((0, 0, "PASSED"), (72, 130, "was interrupted"), (130, 130, "was interrupted"),
                                   (77, 1, "broke"), (1, 1, "broke")):
            with self.subTest(ends), tempfile.TemporaryDirectory() as folder:
                program = pathlib.Path(folder, "bin/fuzz_spec")
                program.parent.mkdir()
                program.write_text(f"#!/bin/sh\nexit {ends}\n")
                program.chmod(0o755)
                run = subprocess.run([ROOT / "tests/fuzz/run.sh", program, "1"], capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, status)
                self.assertIn(says, run.stdout)


if __name__ == "__main__":
    unittest.main()
