"""Specs as the callable that vllm-omni's diffusion models call: fn(q, k, v, params, is_causal, softmax_scale).

    attend = lacuna.vllm_omni.attention("sparge", tau=0.9)
    o = attend(q, k, v, None, False, head_dim ** -0.5)      # [batch, tokens, heads, head_dim], o alike
"""

from typing import Any

import torch

from .hosting import choice_of, refuse
from .spec import SpecLike
from .torch import attention as run


def attention(spec: SpecLike, calibration: Any = None, **numbers: float) -> Any:
    """A callable of a spec. `params` of a call is None, or has further parameters (a mapping, or attributes by name);
    a mask in it (attn_mask) is refused: what is visible is the spec's to say."""
    choice = choice_of(spec, calibration, **numbers)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, params: Any = None, is_causal: bool = False,
               softmax_scale: float | None = None) -> torch.Tensor:
        given = params if isinstance(params, dict) else vars(params) if params is not None else {}
        refuse("vllm-omni", "lacuna.vllm_omni", {"attn_mask": given.get("attn_mask")}, {"attn_mask": None})
        more = {name: value for name, value in given.items() if name != "attn_mask" and value is not None}
        text = choice.text(is_causal, softmax_scale, q.shape[-1])
        return run(q, k, v, text, layout="bnhd", **{**choice.parameters(q, "bnhd"), **more})

    return attend
