"""A primitive of the predictor that only this test has, added by the path of compiler/README.md ("Adding things").

  primitive_test.py                the patch still applies, touches few files, and all of them are in the README's list
  primitive_test.py --build DIR    besides, in a copy of the checkout below DIR: builds it and asks the new primitive (minutes)

`spread(n)` compares n query tokens of each tile, evenly apart. spread.patch adds it with its oracle and a variant of the
numerics; what nobody has to touch (reader, schema, messages, rules of tiles, verifier, plan, kernels, the CPU's estimate)
follows from its row in the table. After a change of the lines around it: apply the patch by hand and write it anew with
`git diff -U2`.
"""
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATCH = Path(__file__).with_name("spread.patch")
MOST_FILES = 10
SPEC = """{"version": 1, "name": "spread-rows", "attention": {},
  "predictor": {"tile": {"q": 128, "k": 64}, "estimate": {"q": "spread(COUNT)", "k": "tokens"}, "keep": "p > 0.5"}}"""
build = None


def call(*words, folder=ROOT):
    # A copy below build/ is not the repository that build/ lies in.
    environment = dict(os.environ) if folder == ROOT else dict(os.environ, GIT_CEILING_DIRECTORIES=str(folder.parent))
    return subprocess.run([str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True)


def touched():
    return re.findall(r"^\+\+\+ b/(.*)$", PATCH.read_text(), re.MULTILINE)


class ThePath(unittest.TestCase):
    def test_the_patch_applies(self):
        run = call("git", "apply", "--check", "-C1", PATCH)
        self.assertEqual(run.returncode, 0, run.stderr + "see the head of primitive_test.py")

    def test_it_touches_few_files_and_only_those_of_the_path(self):
        readme = (ROOT / "compiler/README.md").read_text()
        path = readme[readme.index("A *summary*"):readme.index("A *variable of `keep`*")]
        listed = re.findall(r"`([\w/.*]+)`", path)
        self.assertLessEqual(len(touched()), MOST_FILES)
        self.assertEqual([file for file in touched() if not any(Path(file).match(name) for name in listed)], [])


class Primitive(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if build is None:
            raise unittest.SkipTest("without --build")
        cls.tree = build / "tree"
        for file in call("git", "ls-files").stdout.split("\n"):
            if (ROOT / file).is_file():
                copy_if_changed(ROOT / file, cls.tree / file)
        cls.must("git", "apply", "-C1", PATCH)
        cls.must("cmake", "--preset", "release", "-DLACUNA_TESTS=ON", "-DLACUNA_LLVM=OFF")
        cls.must("ninja", "-C", "build/release", "test_numerics", "lacuna_cli")
        cls.lacuna = cls.tree / "build/release/bin/lacuna"

    @classmethod
    def must(cls, *words):
        run = call(*words, folder=cls.tree)
        if run.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}\n{run.stdout[-4000:]}{run.stderr[-4000:]}")
        return run.stdout

    def emit(self, count, *options):
        spec = build / "spread.json"
        spec.write_text(SPEC.replace("COUNT", str(count)))
        return call(self.lacuna, "emit", "--form", "cuda", spec, *options)

    def test_its_decisions_and_results_are_those_of_the_oracle(self):
        out = self.must("build/release/bin/test_numerics", "--gtest_filter=*spread_rows*")
        self.assertRegex(out, r"\[  PASSED  \] [1-9][0-9]+ tests")

    def test_its_kernel_takes_every_so_many_rows(self):
        run = self.emit(4, "--arch", "sm_80")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("kRowStride = 32", run.stdout)

    def test_a_count_that_is_not_legal_is_an_error_that_names_the_legal_ones(self):
        run = self.emit(5)
        self.assertEqual(run.returncode, 1)
        self.assertIn("spread(n)", run.stderr)


def copy_if_changed(source, target):
    """What stays as it is keeps its time, so that a second call builds little."""
    if target.exists() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


if __name__ == "__main__":
    if "--build" in sys.argv:
        at = sys.argv.index("--build")
        build = Path(sys.argv[at + 1]).resolve()
        del sys.argv[at:at + 2]
    unittest.main()
