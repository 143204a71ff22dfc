"""tools/dev/mutants.py: what is recorded, and where the next call goes on."""

import json
import pathlib
import sys
import tempfile
import unittest
from types import SimpleNamespace

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/dev"))

import mutants  # noqa: E402
from mutation import draw, moved, record  # noqa: E402


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
