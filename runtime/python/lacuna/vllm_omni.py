"""Specs in diffusion models of vllm-omni: kernels of its SPARSE_ATTN backend, fn(q, k, v, params, is_causal, softmax_scale).

    AttentionSpec(backend="SPARSE_ATTN", extra={"backend": "lacuna", "params": {"spec": "sparge", "tau": 0.9}})

    attend = lacuna.vllm_omni.attention("sparge", tau=0.9)     # the same of one spec, as a callable of one's own
    o = attend(q, k, v, {}, False, head_dim ** -0.5)           # [batch, tokens, heads, head_dim], o alike

`params` of a call has parameters of the spec beside what the host knows of the step and the video, which is passed over. What
would change the result and no spec can follow is refused by name: masks, spans, packed sequences.
"""

from typing import Any

import torch

from .errors import ArgumentError
from .hosting import Choice, choice_of, refuse
from .spec import SpecLike, spec_of
from .torch import attention as run
from .words import nearest

_REFUSED = dict.fromkeys(("attn_mask", "full_attn_spans", "cu_seqlens_q", "cu_seqlens_k", "valid_kv_length"))
_STATE = frozenset(("denoise_step_idx", "total_denoise_steps", "latent_shape", "patch_size", "total_latent_frames", "patches_per_frame"))
_TENSORS = ("counts", "tile_mask", "list_indices", "list_counts", "order")  # that any launch may take


def _parameters(choice: Choice, given: dict[str, Any]) -> dict[str, Any]:
    """Those of the spec. What is nearly the name of one is a mistake, whatever else the host's own."""
    known = [*choice.names, *_TENSORS]
    for name, value in given.items():
        if value is None or name in known or name in _STATE:
            continue
        if near := nearest(name, known):
            raise ArgumentError(f"parameter {name}: is not a parameter of {choice.spec.path}; did you mean {near!r}?")
    return {name: given[name] for name in known if given.get(name) is not None}


def _attend(choice: Choice, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, params: Any, is_causal: bool,
            softmax_scale: float | None) -> torch.Tensor:
    given = params if isinstance(params, dict) else vars(params) if params is not None else {}
    refuse("vllm-omni", "lacuna.vllm_omni", given, _REFUSED)
    text = choice.text(is_causal, softmax_scale, q.shape[-1])
    return run(q, k, v, text, layout="bnhd", **{**choice.parameters(q, "bnhd"), **_parameters(choice, given)})


def attention(spec: SpecLike, calibration: Any = None, **numbers: float) -> Any:
    """A callable of a spec. `params` of a call is None, a mapping, or has attributes by name."""
    choice = choice_of(spec, calibration, **numbers)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, params: Any = None, is_causal: bool = False,
               softmax_scale: float | None = None) -> torch.Tensor:
        return _attend(choice, q, k, v, params, is_causal, softmax_scale)

    return attend


_choices: dict[str, Choice] = {}  # of attn_fn; a process has few


@torch.compiler.assume_constant_result
def _key(spec: SpecLike, calibration: str | None) -> str:
    """By which _choices has it from now on; found while a graph is compiled, not in it."""
    key = f"{spec_of(spec).text}\n{calibration or ''}"
    if key not in _choices:
        _choices[key] = choice_of(spec, calibration)
    return key


def attn_fn(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, params: dict[str, Any] | None = None, is_causal: bool = False,
            softmax_scale: float | None = None) -> torch.Tensor:
    """What vllm-omni finds under the name "lacuna" (entry point of vllm_omni.sparse_attn). `params` also has "spec" and, if
    wanted, "calibration", the path of a file of `Calibration.save`."""
    given = dict(params or {})
    if "spec" not in given:
        raise ArgumentError("params: expected \"spec\", the name of a spec or its text, got none")
    choice = _choices[_key(given.pop("spec"), given.pop("calibration", None))]
    return _attend(choice, query, key, value, given, is_causal, softmax_scale)
