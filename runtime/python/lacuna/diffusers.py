"""Specs in models of diffusers, whose attention is of [batch, tokens, heads, head_dim].

    with lacuna.diffusers.attention_backend("sparge-video", order=order):    # every model that dispatches its attention
        image = pipeline(prompt)
    model.set_attn_processor(lacuna.diffusers.AttnProcessor("sparge"))       # models of the older Attention module

What no spec can follow is refused by name: a mask of the caller's, dropout, a context-parallel split.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from diffusers.models import attention_dispatch
from diffusers.models.attention_processor import Attention, AttnProcessor2_0

from .hosting import Choice, choice_of, refuse
from .spec import SpecLike
from .torch import attention as run


def attention_function(name: str, choice: Choice, tensors: dict[str, torch.Tensor]) -> Any:
    """What diffusers dispatches to: q, k, v [b, n, h, d] -> o [b, n, h, d]."""

    def forward(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
                dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
                _parallel_config: Any = None) -> torch.Tensor:
        refuse("diffusers", name, {"attn_mask": attn_mask, "dropout_p": dropout_p, "_parallel_config": _parallel_config},
               {"attn_mask": None, "dropout_p": 0.0, "_parallel_config": None})
        text = choice.text(is_causal, scale, query.shape[-1])
        return run(query, key, value, text, layout="bnhd", **{**choice.parameters(query, "bnhd"), **tensors})

    return forward


@contextlib.contextmanager
def attention_backend(spec: SpecLike, calibration: Any = None, **parameters: Any) -> Iterator[None]:
    """Every call that diffusers dispatches goes to a spec meanwhile. parameters: numbers or tensors."""
    tensors = {name: value for name, value in parameters.items() if isinstance(value, torch.Tensor)}
    numbers = {name: value for name, value in parameters.items() if name not in tensors}
    registry, backend = attention_dispatch._AttentionBackendRegistry, attention_dispatch.AttentionBackendName.NATIVE
    # Its names are an enumeration, which takes none of ours: "native" stands for the spec meanwhile.
    tables = (registry._backends, registry._constraints, registry._supported_arg_names)
    before = [table.get(backend) for table in tables]
    active = registry._active_backend
    registry.register(backend)(attention_function("lacuna.diffusers", choice_of(spec, calibration, **numbers), tensors))
    registry.set_active_backend(backend)
    try:
        yield
    finally:
        registry.set_active_backend(active)
        for table, value in zip(tables, before):
            table[backend] = value


class AttnProcessor(AttnProcessor2_0):
    """A processor of diffusers' Attention module: its projections and norms, and a spec in place of their product."""

    def __init__(self, spec: SpecLike, calibration: Any = None, **numbers: float):
        super().__init__()
        self._function = attention_function("lacuna.diffusers", choice_of(spec, calibration, **numbers), {})

    def __call__(self, attn: Attention, hidden_states: torch.Tensor, encoder_hidden_states: torch.Tensor | None = None,
                 attention_mask: torch.Tensor | None = None, temb: torch.Tensor | None = None, **_: Any) -> torch.Tensor:
        residual, shape = hidden_states, hidden_states.shape
        if attn.spatial_norm is not None:
            hidden_states = attn.spatial_norm(hidden_states, temb)
        if hidden_states.ndim == 4:
            hidden_states = hidden_states.flatten(2).transpose(1, 2)
        if attn.group_norm is not None:
            hidden_states = attn.group_norm(hidden_states.transpose(1, 2)).transpose(1, 2)
        others = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        if encoder_hidden_states is not None and attn.norm_cross:
            others = attn.norm_encoder_hidden_states(others)
        q, k, v = (project(states).unflatten(-1, (attn.heads, -1))
                   for project, states in ((attn.to_q, hidden_states), (attn.to_k, others), (attn.to_v, others)))
        q = attn.norm_q(q) if attn.norm_q is not None else q
        k = attn.norm_k(k) if attn.norm_k is not None else k
        hidden_states = self._function(q, k, v, attn_mask=attention_mask, scale=attn.scale).flatten(2).to(q.dtype)
        hidden_states = attn.to_out[1](attn.to_out[0](hidden_states))
        if len(shape) == 4:
            hidden_states = hidden_states.transpose(1, 2).reshape(shape)
        if attn.residual_connection:
            hidden_states = hidden_states + residual
        return hidden_states / attn.rescale_output_factor
