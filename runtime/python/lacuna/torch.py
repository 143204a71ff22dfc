"""torch.ops.lacuna.attention: attention as an operator of PyTorch, for torch.compile and CUDA graphs.

    import lacuna.torch
    o = lacuna.torch.attention(q, k, v, "bsfa", threshold=t)      the same arguments as lacuna.attention, by the operator
    o, lse = torch.ops.lacuna.attention(q, k, v, "bsfa", True)    the operator itself

It runs on the current stream, takes results and workspace from PyTorch's allocator, has a fake implementation (so a
graph is never broken at it) and no gradients, which its backward says. A spec is compiled at its first call for a
device, dtype and head dim: let that call come before the capture of a graph.

Of sequences the operator takes the tensors of lacuna.Sequences. What they hold is read on the device when the work runs,
so a captured graph follows other lengths; max_n_q and max_n_k are those of the capture.
"""

import functools
from typing import Any

import torch

from .kernel import attention as launch
from .sequences import Sequences
from .spec import Spec, SpecLike, spec_of

_library = torch.library.Library("lacuna", "DEF")
_library.define("attention(Tensor q, Tensor k, Tensor v, str spec, bool lse=False, str layout='bhnd', str[]? names=None, "
                "Tensor[]? tensors=None, str[]? number_names=None, float[]? numbers=None, Tensor? q_begin=None, Tensor? n_k=None, "
                "Tensor? k_begin=None, Tensor? pages=None, SymInt? max_n_q=None, SymInt? max_n_k=None) -> (Tensor, Tensor)",
                tags=(torch.Tag.pt2_compliant_tag,))
"""`spec` is a name, JSON text or a path; names and tensors, number_names and numbers are its parameters; q_begin and
what follows are those of lacuna.Sequences. The second result is f32 [b, h, n_q], or empty without lse."""


@functools.lru_cache(maxsize=256)
def _spec(text: str) -> Spec:
    return spec_of(text)


def _lse_shape(q: torch.Tensor, layout: str) -> tuple[int, ...]:
    return (q.shape[0], q.shape[1], q.shape[2]) if layout == "bhnd" else (q.shape[0], q.shape[2], q.shape[1])


def _output(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(q) if v.shape[-1] == q.shape[-1] else q.new_empty((*q.shape[:-1], v.shape[-1]))


def _run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, spec: str, lse: bool = False, layout: str = "bhnd",
         names: list[str] | None = None, tensors: list[torch.Tensor] | None = None, number_names: list[str] | None = None,
         numbers: list[float] | None = None, q_begin: torch.Tensor | None = None, n_k: torch.Tensor | None = None,
         k_begin: torch.Tensor | None = None, pages: torch.Tensor | None = None, max_n_q: int | None = None,
         max_n_k: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    sequences = None
    if any(tensor is not None for tensor in (q_begin, n_k, k_begin, pages)):
        sequences = Sequences(q_begin, n_k, k_begin=k_begin, pages=pages, max_n_q=max_n_q, max_n_k=max_n_k)
    values = torch.empty(_lse_shape(q, layout) if lse else (0,), dtype=torch.float32, device=q.device)
    o = _output(q, v)
    with torch.no_grad():
        launch(q, k, v, spec=_spec(spec), layout=layout, out=o, lse=values if lse else False, sequences=sequences,
               **dict(zip(names or (), tensors or ())), **dict(zip(number_names or (), numbers or ())))
    return o, values


def _fake(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, spec: str, lse: bool = False, layout: str = "bhnd",
          names: Any = None, tensors: Any = None, number_names: Any = None, numbers: Any = None,
          *_sequences: Any, **_named: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _output(q, v), q.new_empty(_lse_shape(q, layout) if lse else (0,), dtype=torch.float32)


def _backward(_context: Any, *_gradients: Any) -> Any:
    raise NotImplementedError("lacuna::attention has no gradients: it is for inference. Call it under torch.no_grad(), or on "
                              "q.detach(), k.detach(), v.detach()")


for _device in ("CPU", "CUDA"):
    _library.impl("attention", _run, _device)
torch.library.register_fake("lacuna::attention", _fake, lib=_library)
torch.library.register_autograd("lacuna::attention", _backward, lib=_library)


def operator_text(spec: SpecLike) -> str:
    """A spec as the operator takes it, which has no objects of Python: one line, because torch.compile writes arguments
    into comments of the code that it generates. Between the words of JSON a space is as good as the end of a line."""
    return (spec if isinstance(spec, str) else spec_of(spec).text).replace("\n", " ")


def _words(sequences: Sequences | None) -> dict[str, Any]:
    if sequences is None:
        return {}
    return {"q_begin": sequences.q_begin, "n_k": sequences.n_k, "k_begin": sequences.k_begin, "pages": sequences.pages,
            "max_n_q": sequences.max_n_q, "max_n_k": sequences.max_n_k}


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, spec: SpecLike = "dense", *, lse: bool = False,
              layout: str = "bhnd", sequences: Sequences | None = None, **parameters: Any) -> Any:
    """lacuna.attention through torch.ops.lacuna.attention: o, or (o, lse). Parameters are numbers or tensors."""
    tensors = {name: value for name, value in parameters.items() if isinstance(value, torch.Tensor)}
    numbers = {name: float(value) for name, value in parameters.items() if name not in tensors}
    o, values = torch.ops.lacuna.attention(q, k, v, operator_text(spec), lse, layout, list(tensors), list(tensors.values()),
                                           list(numbers), list(numbers.values()), **_words(sequences))
    return (o, values) if lse else o
