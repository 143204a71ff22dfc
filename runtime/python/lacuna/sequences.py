"""A batch of sequences of different lengths, one behind the other or with keys and values in pages."""

import dataclasses
from typing import Any

from .errors import ArgumentError


@dataclasses.dataclass(frozen=True)
class Sequences:
    """lacuna_sequences of lacuna.h. Arrays of i32, of q's library, on q's device:

    q_begin [count + 1]: first row of each sequence in q, o and lse, ascending; sequence i has q_begin[i + 1] - q_begin[i]
        queries. q, o [1, heads, tokens, d]; rows of o and lse that belong to no sequence are not written.
    n_k [count]: keys of each.
    k_begin [count]: first row of each in k and v [1, heads_kv, tokens, d]; or
    pages [count, max_pages]: where the keys of each lie, page after page; k, v [pages, heads_kv, page_tokens, d], with
        layout="bnhd" [pages, page_tokens, heads_kv, d]; page_tokens 16, 32, 64 or 128.
    max_n_q, max_n_k: the most queries and keys that one of them may have. Where the arrays are in host memory they may be
        left out, and are then read from the lengths at each launch; on a GPU nothing is read by the host.

    Nothing is copied: what the arrays hold when the work runs counts, so a captured graph follows them."""

    q_begin: Any
    n_k: Any
    _: dataclasses.KW_ONLY
    k_begin: Any = None
    pages: Any = None
    max_n_q: int | None = None
    max_n_k: int | None = None

    def __post_init__(self) -> None:
        for name in ("q_begin", "n_k"):
            if getattr(self, name) is None:
                raise ArgumentError(f"sequences.{name}: expected an array, got None")
        if (self.k_begin is None) == (self.pages is None):
            raise ArgumentError(f"sequences: expected one of k_begin and pages, got {'none' if self.pages is None else 'both'}: k_begin for keys "
                                "one sequence behind the other, pages for keys in pages")

    @property
    def batch(self) -> str:
        """What a kernel for them is compiled with: `lacuna.compile(..., batch=sequences.batch)`."""
        return "sequences" if self.pages is None else "pages"
