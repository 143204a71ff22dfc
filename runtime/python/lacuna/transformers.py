"""Specs as attention implementations of Hugging Face transformers.

    import lacuna.transformers
    lacuna.transformers.register()                                        # "lacuna:dense", "lacuna:bsfa", ...
    lacuna.transformers.register("lacuna:mine", layers="layers.json")     # a spec for each layer, with its parameters
    model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="lacuna:dense")

A spec without a mask gets the causal one in models that are causal, and every spec the model's scale. What no spec can
follow is refused by name: padding, sliding windows and other masks of the model's, dropout, soft caps, sinks. Under
torch.compile leave the cache on: without one transformers assumes that sequences may be packed, and asks for that mask.
"""

import os
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function

from .errors import ArgumentError
from .hosting import Choice, choice_of, layers_of, refuse
from .spec import SpecLike, shipped
from .torch import attention as run

_REFUSED = {"dropout": 0.0, "softcap": None, "s_aux": None, "position_bias": None, "sliding_window": None, "cache": None}


def attention_function(name: str, choices: dict[int | None, Choice]) -> Any:
    """What AttentionInterface calls: query [b, h, n_q, d], key and value [b, h_kv, n_k, d] -> (o [b, n_q, h, d], None)."""

    def forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                attention_mask: torch.Tensor | None, scaling: float | None = None, dropout: float = 0.0,
                is_causal: bool | None = None, **more: Any) -> tuple[torch.Tensor, None]:
        refuse("transformers", name, {**more, "dropout": dropout}, _REFUSED)
        if attention_mask is not None:
            if attention_mask.ndim != 0:
                raise ArgumentError(f"{name}: expected the mask that {name} makes itself, got a tensor {tuple(attention_mask.shape)}: "
                                    "a mask of the caller's is a spec's to say")
            key, value = (tensor[:, :, :int(attention_mask)] for tensor in (key, value))
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        choice = choices.get(getattr(module, "layer_idx", None), choices[None])
        text = choice.text(causal, scaling, query.shape[-1])
        o = run(query, key, value, text, **choice.parameters(query, "bhnd"))
        return o.transpose(1, 2).contiguous(), None

    return forward


def mask_function(name: str) -> Any:
    """What AttentionMaskInterface calls: None, where the spec's own mask says all, or how many keys a cache holds that
    has room for more. Anything else is refused."""

    def make(q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: int = 0, mask_function: Any = causal_mask_function,
             attention_mask: torch.Tensor | None = None, local_size: int | None = None, **_: Any) -> torch.Tensor | None:
        if mask_function not in (causal_mask_function, bidirectional_mask_function) or local_size is not None:
            raise ArgumentError(f"{name}: the model has a mask of its own (a sliding window, chunks, packed sequences), which is the "
                                "spec's to say")
        if attention_mask is not None and not torch.compiler.is_compiling() and not bool(attention_mask.all()):
            raise ArgumentError(f"{name}: padded tokens are not supported: pass sequences of one length, or one at a time")
        if attention_mask is not None and torch.compiler.is_compiling():
            raise ArgumentError(f"{name}: expected no attention_mask under torch.compile: whether it pads cannot be seen there")
        if torch.compiler.is_compiling():
            return None
        held = int(q_offset) + q_length - kv_offset
        return None if held >= kv_length else torch.tensor(held)

    return make


def register(name: str | None = None, spec: SpecLike | None = None, *, layers: str | os.PathLike | None = None,
             calibration: Any = None, **numbers: float) -> list[str]:
    """Registers `name` for a spec with its parameters, or for a file of layers (hosting.layers_of); without a name every
    spec that comes along, as "lacuna:NAME". Returns the names."""
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
