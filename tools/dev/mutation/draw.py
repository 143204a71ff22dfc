"""Draws mutants: the same sources and the same seed give the same ones, in the same order."""

import difflib
import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from mutation.operators import OPERATORS
from mutation.text import EXCLUDED_FILES, code_of

FOLDERS = ("compiler", "templates", "cache", "runtime", "tools")
# Python and shell of tools/ stand outside: half of them need a GPU, and tests/tools sees little of the others.
ENDINGS = (".cpp", ".hpp", ".cuh")


@dataclass(frozen=True)
class Mutant:
    id: str  # of the change, wherever its line has moved to
    file: str
    line: int
    operator: str
    begin: int
    end: int
    before: str  # what stands from begin to end
    after: str

    def applied(self, text):
        if text[self.begin:self.end] != self.before:
            raise ValueError(f"{self.file}: expected {self.before!r} in line {self.line}")
        return text[:self.begin] + self.after + text[self.end:]

    def difference(self, text):
        """A unified diff without context but for the changed lines themselves."""
        lines = difflib.unified_diff(text.splitlines(True), self.applied(text).splitlines(True), self.file, self.file, n=0)
        return "".join(lines)


def _number(*words):
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8], "big")


def mutants_of(path, text):
    """Every change that an operator knows in a file, in order; of equal changes the first operator's."""
    code, seen, met, found = code_of(text), set(), Counter(), []
    for operator in OPERATORS:
        if not re.search(operator.where, path):
            continue
        for begin, end, after in operator.find(code):
            if (begin, end, after) in seen:
                continue
            seen.add((begin, end, after))
            # Literals are blank in `code`: what was one in the place changed has to come back.
            before = text[begin:end]
            after = after.replace(code[begin:end], before)
            line_begin, line_end = text.rfind("\n", 0, begin) + 1, (text.find("\n", begin) + 1 or len(text) + 1) - 1
            line = text[line_begin:line_end].strip()
            words = (path, line, operator.name, before, after)
            met[words] += 1
            name = f"{_number(*words, str(met[words])):016x}"[:10]
            found.append(Mutant(name, path, text.count("\n", 0, begin) + 1, operator.name, begin, end, before, after))
    return found


def sources(root, paths):
    """Path -> text of the files that mutants are drawn from."""
    chosen = [path for path in sorted(paths) if PurePosixPath(path).suffix in ENDINGS and path.split("/")[0] in FOLDERS
              and not path.startswith(tuple(EXCLUDED_FILES))]
    return {path: (root / path).read_text() for path in chosen}


def shares(lines, count):
    """How many of `count` mutants each folder has: by its lines, and at least one."""
    total = sum(lines.values())
    exact = {folder: max(1.0, count * n / total) for folder, n in lines.items()}
    whole = {folder: int(x) for folder, x in exact.items()}
    by_rest = sorted(exact, key=lambda folder: (whole[folder] - exact[folder], folder))
    for folder in by_rest[:max(0, count - sum(whole.values()))]:
        whole[folder] += 1
    return whole


def ranking(texts, seed):
    """Folder -> its mutants in the order of the draw, at most one a line.

    A place is drawn with its operator's weight over the square root of the operator's places in the folder, so that those
    that have many do not crowd out the others. Each place draws for itself, so that a change elsewhere leaves it where it is.
    """
    weights = {operator.name: operator.weight for operator in OPERATORS}
    folders = {}
    for path, text in texts.items():
        folders.setdefault(path.split("/")[0], []).extend(mutants_of(path, text))
    ranked = {}
    for folder, found in folders.items():
        places = Counter(mutant.operator for mutant in found)

        def turn(mutant):
            uniform = (_number(str(seed), mutant.id) + 0.5) / 2**64
            return -math.log(uniform) * math.sqrt(places[mutant.operator]) / weights[mutant.operator]

        lines, kept = set(), []
        for mutant in sorted(found, key=lambda mutant: (turn(mutant), mutant.id)):
            if (mutant.file, mutant.line) not in lines:
                lines.add((mutant.file, mutant.line))
                kept.append(mutant)
        ranked[folder] = kept
    return ranked


def draw(texts, seed, count):
    """Folder -> (how many it is to have, its mutants in order). More than wanted: some do not compile."""
    lines = Counter()
    for path, text in texts.items():
        lines[path.split("/")[0]] += text.count("\n")
    wanted = shares(lines, count)
    return {folder: (wanted[folder], mutants) for folder, mutants in ranking(texts, seed).items()}
