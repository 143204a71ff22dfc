"""tools/dev/mutants.py: what is drawn. Each operator finds its places in code alone, and the same seed draws the same."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/dev"))

from mutation import draw, text  # noqa: E402
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


if __name__ == "__main__":
    unittest.main()
