"""Specs as attention implementations of Hugging Face transformers.

    import lacuna.transformers
    lacuna.transformers.register()                                        # "lacuna:dense", "lacuna:bsfa", ...
    lacuna.transformers.register("lacuna:mine", layers="mine.layers")     # a spec for each layer, with its parameters: lacuna.layers
    model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="lacuna:dense")

A spec without a mask gets the causal one in models that are causal, and every spec the model's scale. What no spec can
follow is refused by name: padding, sliding windows and other masks of the model's, dropout, soft caps, sinks. Under
torch.compile leave the cache on: without one transformers assumes that sequences may be packed, and asks for that mask.

How far a static cache is filled is read on the device, so a step that was compiled or captured goes on as it fills.
"""

import os
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

from .errors import ArgumentError
from .hosting import Choice, choice_of, refuse
from .layers import layers_of
from .sequences import Sequences
from .spec import SpecLike, shipped
from .torch import attention as run

_COUNT = (1, 1, 1, 1)  # shape of a mask that is a number of keys
_REFUSED = {"dropout": 0.0, "softcap": None, "s_aux": None, "position_bias": None, "sliding_window": None, "cache": None}


def attention_function(name: str, choices: dict[int | None, Choice]) -> Any:
    """What AttentionInterface calls: query [b, h, n_q, d], key and value [b, h_kv, n_k, d] -> (o [b, n_q, h, d], None)."""

    def forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                attention_mask: torch.Tensor | None, scaling: float | None = None, dropout: float = 0.0,
                is_causal: bool | None = None, **more: Any) -> tuple[torch.Tensor, None]:
        refuse("transformers", name, {**more, "dropout": dropout}, _REFUSED)
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        choice = choices.get(getattr(module, "layer_idx", None), choices[None])
        text, parameters = choice.text(causal, scaling, query.shape[-1]), choice.parameters(query, "bhnd")
        if attention_mask is not None:
            if attention_mask.dtype != torch.int32 or tuple(attention_mask.shape) not in (_COUNT, (1, 1, 2, query.shape[0] + 1)):
                raise ArgumentError(f"{name}: expected the mask that {name} makes itself, got a tensor {tuple(attention_mask.shape)}: "
                                    "a mask of the caller's is a spec's to say")
            if tuple(attention_mask.shape) != _COUNT:
                return _attend_as_sequences(query, key, value, attention_mask[0, 0], text, parameters).contiguous(), None
            key, value = (tensor[:, :, :int(attention_mask)] for tensor in (key, value))
        return run(query, key, value, text, **parameters).transpose(1, 2).contiguous(), None

    return forward


def _attend_as_sequences(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: torch.Tensor, text: str,
                         parameters: dict[str, Any]) -> torch.Tensor:
    """o [b, n_q, h, d], of key and value [b, h_kv, room, d] that hold fewer keys than they have room for."""
    batch, heads, n_q, head_dim = query.shape
    heads_kv, room = key.shape[1:3]
    if batch > 1:
        # Nothing is moved: of each head the rows from its first key of the first sequence to its last of the last.
        rows = ((batch - 1) * heads_kv + 1) * room
        key, value = (tensor.contiguous().as_strided((1, heads_kv, rows, d), (tensor.numel(), room * d, d, 1))
                      for tensor, d in ((key, head_dim), (value, value.shape[-1])))
    k_begin = torch.arange(batch, device=query.device, dtype=torch.int32) * (heads_kv * room)
    sequences = Sequences(lengths[0], lengths[1, :batch], k_begin=k_begin, max_n_q=n_q, max_n_k=room)
    queries = query.transpose(0, 1).reshape(1, heads, batch * n_q, head_dim)
    return run(queries, key, value, text, sequences=sequences, **parameters).reshape(heads, batch, n_q, value.shape[-1]).permute(1, 2, 0, 3)


def _values_are_hidden() -> bool:
    """Whether the host must not look at what tensors hold: in a graph that is being compiled or captured."""
    return torch.compiler.is_compiling() or (torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())


def mask_function(name: str) -> Any:
    """What AttentionMaskInterface calls. Nothing, where the spec's own mask says all. Of a cache that has room for more: how
    many keys it holds, i32 [1, 1, 1, 1] on the host; or, where only the device knows, i32 [1, 1, 2, b + 1] of where the queries of
    each sequence begin and how many keys it has. (Models hand on what has four axes: `generate` makes the mask of a step before it
    enters the compiled graph.) Anything else is refused."""

    def make(q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: int = 0, mask_function: Any = causal_mask_function,
             attention_mask: torch.Tensor | None = None, local_size: int | None = None, batch_size: int = 1, device: Any = None,
             **_: Any) -> torch.Tensor | None:
        if mask_function not in (causal_mask_function, bidirectional_mask_function) or local_size is not None:
            raise ArgumentError(f"{name}: the model has a mask of its own (a sliding window, chunks, packed sequences), which is the "
                                "spec's to say")
        if attention_mask is not None and _values_are_hidden():
            raise ArgumentError(f"{name}: expected no attention_mask in a compiled or captured graph: whether it pads cannot be seen there")
        if attention_mask is not None and not bool(attention_mask.all()):
            raise ArgumentError(f"{name}: padded tokens are not supported: pass sequences of one length, or one at a time")
        held = q_offset + q_length - kv_offset
        if not isinstance(held, torch.Tensor):
            if held >= kv_length:
                return None
            if not torch.compiler.is_compiling():
                return torch.full(_COUNT, held, dtype=torch.int32)
            held = torch.full((1,), held, device=device, dtype=torch.int32)
        begin = torch.arange(batch_size + 1, device=held.device, dtype=torch.int32) * q_length
        return torch.stack([begin, held.to(torch.int32).expand(batch_size + 1)])[None, None]

    return make


def register(name: str | None = None, spec: SpecLike | None = None, *, layers: str | os.PathLike | Mapping | None = None,
             calibration: Any = None, **numbers: float) -> list[str]:
    """Registers `name` for a spec with its parameters, or for layers (a file or a document of lacuna.layers); without a name
    every spec that comes along, as "lacuna:NAME". Returns the names."""
    if name is None:
        tables = {f"lacuna:{shipped_name}": {None: choice_of(shipped_name)} for shipped_name in shipped()}
    elif (spec is None) == (layers is None):
        raise ArgumentError("expected spec= or layers=, and not both")
    else:
        tables = {name: layers_of(layers) if layers is not None else {None: choice_of(spec, calibration, **numbers)}}
    for key, choices in tables.items():
        AttentionInterface.register(key, attention_function(key, choices))
        AttentionMaskInterface.register(key, mask_function(key))
    return list(tables)
