"""Score formulas and masks of tools/dev/peers.py: each as a spec of ours, and as what FlexAttention takes. All are causal."""

import dataclasses
from collections.abc import Callable

CAUSAL = "k <= q + n_k - n_q"
DOCUMENTS = 4
WINDOW, SINK = 1024, 4
SLOPE, CAP, FACTOR = 0.0625, 50.0, 0.7


@dataclasses.dataclass(frozen=True)
class Formula:
    """`spec`: what is added to a spec. `params(torch, n)`: tensors by name. Of FlexAttention: score_mod(torch, tensors) and
    mask_mod(tensors), None where it has none beside the causal mask."""
    spec: dict
    params: Callable = lambda torch, n: {}
    score_mod: Callable | None = None
    mask_mod: Callable | None = None


def softcap(torch, _):
    return lambda s, b, h, q, k: CAP * torch.tanh(s / CAP)


def starts(torch, n):
    """First token of each token's document."""
    return {"start": (torch.arange(n, device="cuda") // (n // DOCUMENTS) * (n // DOCUMENTS)).to(torch.int32)}


def table(torch, n):
    return {"bias": torch.randn(n, device="cuda", dtype=torch.float32)}


FORMULAS = {
    "alibi": Formula({"attention": {"mask": CAUSAL, "score": f"s - {SLOPE} * (q - k)"}},
                     score_mod=lambda torch, _: lambda s, b, h, q, k: s - SLOPE * (q - k)),
    "softcap": Formula({"attention": {"mask": CAUSAL, "score": f"{CAP} * tanh(s / {CAP})"}}, score_mod=softcap),
    "factor": Formula({"attention": {"mask": CAUSAL, "score": f"{FACTOR} * s"}},
                      score_mod=lambda torch, _: lambda s, b, h, q, k: FACTOR * s),
    "table": Formula({"attention": {"mask": CAUSAL, "score": "s + bias[q - k]"}, "params": {"bias": {"shape": "[n_k]", "doc": "by distance"}}},
                     table, lambda torch, t: lambda s, b, h, q, k: s + t["bias"][(q - k).clamp(min=0)]),
    "document": Formula({"attention": {"mask": f"k >= start[q] and {CAUSAL}"},
                         "params": {"start": {"type": "i32", "shape": "[n_q]", "monotone": True, "doc": "of the document"}}},
                        starts, mask_mod=lambda t: lambda b, h, q, k: (k <= q) & (k >= t["start"][q])),
    "window": Formula({"attention": {"mask": f"{CAUSAL} and (k < {SINK} or q - k < {WINDOW})"}},
                      mask_mod=lambda t: lambda b, h, q, k: (k <= q) & ((k < SINK) | (q - k < WINDOW))),
}


def visible_share(torch, name, n):
    """Of the pairs that a causal mask lets through."""
    q, pairs = torch.arange(n, dtype=torch.float64), n * (n + 1) / 2
    if name == "document":
        return DOCUMENTS * (n // DOCUMENTS) * (n // DOCUMENTS + 1) / 2 / pairs
    if name == "window":
        return float((torch.clamp(q + 1, max=WINDOW) + torch.clamp(q + 1 - WINDOW, min=0, max=SINK)).sum()) / pairs
    return 1.0
