"""What a misspelt word may have meant."""

import difflib
from collections.abc import Iterable


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(candidates), n=1)), None)
