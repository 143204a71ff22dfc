"""Mutants of the record that are drawn no more, as their file has another name now: where their line stands today."""

from pathlib import PurePosixPath

from mutation.draw import mutants_of
from mutation.process import sh


def _line_of(root, row):
    """The line of a recorded mutant as it was when it was drawn: of the last version of its file that it can be drawn from."""
    for commit in sh(["git", "log", "--format=%h", "--", row["file"]], cwd=root).stdout.split():
        shown = sh(["git", "show", f"{commit}:{row['file']}"], cwd=root)
        if shown.returncode:
            continue  # the commit that moved it
        for mutant in mutants_of(row["file"], shown.stdout):
            if mutant.id == row["id"]:
                return shown.stdout.splitlines()[mutant.line - 1].strip()
    return None


def found_again(texts, row, line):
    """The same change of the same line; None where it is in no file, or in several of which none has the old name."""
    change = (row["operator"], row["before"], row["after"])
    found = {}
    for path, text in texts.items():
        if line not in text:
            continue
        for mutant in mutants_of(path, text):
            if (mutant.operator, mutant.before, mutant.after) == change and text.splitlines()[mutant.line - 1].strip() == line:
                found.setdefault(path, mutant)
    named = [path for path in found if PurePosixPath(path).name == PurePosixPath(row["file"]).name]
    paths = named or list(found)
    return found[paths[0]] if len(paths) == 1 else None


def moved(root, rows, texts, drawn):
    """Id -> the mutant of today, or None where its line is no more, of the rows that nobody has decided about and that are not in
    `drawn`."""
    found = {}
    for row in rows:
        if row["result"] == "undecided" and row["id"] not in drawn:
            line = _line_of(root, row)
            found[row["id"]] = found_again(texts, row, line) if line else None
    return found
