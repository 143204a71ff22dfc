"""What is known of the mutants: the state of a run, which goes on where it was, and the record in tests/."""

import json
import os
from collections import Counter

OUTCOME = ("result", "tier", "suite", "test", "error", "reason", "asked", "seconds", "commit", "word")
KEPT = ("id", "file", "line", "operator", "before", "after", *OUTCOME)
NOT_COUNTED = ("invalid", "equivalent")  # they do not compile, or to the same bytes


def write(path, content):
    """All of it or nothing."""
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    os.replace(new, path)


def read(path, otherwise):
    return json.loads(path.read_text()) if path.exists() else otherwise


def row_of(mutant, outcome):
    fields = {"id": mutant.id, "file": mutant.file, "line": mutant.line, "operator": mutant.operator, "before": mutant.before,
              "after": mutant.after, **outcome}
    if outcome["result"] in ("found", "invalid"):
        fields.pop("asked", None)
    return {name: fields[name] for name in KEPT if name in fields}


def outcomes(path, seed):
    """Id -> what the record says of a mutant, with the commit at which that was found."""
    drawn = next((draw for draw in read(path, {"draws": []})["draws"] if draw["seed"] == seed), {"mutants": []})
    return {row["id"]: {"commit": drawn["commit"], **{name: row[name] for name in OUTCOME if name in row}} for row in drawn["mutants"]}


def counts_of(rows):
    """drawn = found by each tier + survived + undecided; beside them those that are not counted."""
    results = Counter(row["result"] for row in rows)
    tiers = Counter(row["tier"] for row in rows if row["result"] == "found")
    counted = sum(results.values()) - sum(results[name] for name in NOT_COUNTED)
    return {"drawn": counted, "found": dict(sorted(tiers.items())), "survived": results["survived"],
            "undecided": results["undecided"], "not counted": {name: results[name] for name in NOT_COUNTED}}


def rows_of(path, seed):
    return next((draw["mutants"] for draw in read(path, {"draws": []})["draws"] if draw["seed"] == seed), [])


def update(path, seed, count, commit, rows, renamed=None):
    """Puts the rows of a draw in its place in the record. What somebody wrote about a survivor stays, and so do rows that are drawn
    no more, with their commit. `renamed`: id -> what it is now; None where its line is no more."""
    renamed = renamed or {}
    record = read(path, {"draws": []})
    old = next((draw for draw in record["draws"] if draw["seed"] == seed), {"mutants": []})
    words = {renamed.get(row["id"], row["id"]): row["word"] for row in old["mutants"] if "word" in row}
    rows = [row | ({"word": words[row["id"]]} if row["id"] in words else {}) for row in rows]
    left = {row["id"] for row in rows} | set(renamed)
    rows += [{"commit": old["commit"], **row} for row in old["mutants"] if row["id"] not in left]
    rows.sort(key=lambda row: (row["file"], row["line"], row["id"]))
    draw = {"seed": seed, "count": count, "commit": commit, "counts": counts_of(rows),
            "mutants": [row for row in rows if row["result"] not in NOT_COUNTED]}
    draws = [other for other in record["draws"] if other["seed"] != seed] + [draw]
    write(path, {"draws": sorted(draws, key=lambda draw: draw["seed"])})
    return draw
