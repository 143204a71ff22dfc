"""What the hosts share: which spec a layer has, as a call of the host means it."""

import dataclasses
import json
import math
import os
from typing import Any

import torch

from .calibration import Calibration
from .errors import ArgumentError
from .spec import Spec, SpecLike, spec_of

CAUSAL = "k <= q + n_k - n_q"  # the last query sees every key


@dataclasses.dataclass
class Choice:
    """The spec of a layer with its parameters."""

    spec: Spec
    numbers: dict[str, float] = dataclasses.field(default_factory=dict)
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        self._texts: dict[tuple, str] = {}
        self._tensors: dict[tuple, dict[str, torch.Tensor]] = {}

    def text(self, causal: bool, scale: float | None, head_dim: int) -> str:
        """The spec as the host's call means it: a mask that is causal where the host is and the spec says nothing, and
        the host's scale. Found once for each, since a graph is not to be broken by JSON."""
        key = (causal, scale, head_dim)
        if key not in self._texts:
            self._texts[key] = _fitted(self.spec, causal, scale, head_dim)
        return self._texts[key]

    def parameters(self, q: torch.Tensor, layout: str) -> dict[str, Any]:
        """Those of the calibration on q's device and for its tokens, and the numbers."""
        if self.calibration is None:
            return self.numbers
        key = (q.shape[2 if layout == "bhnd" else 1], q.device)
        if key not in self._tensors:
            self._tensors[key] = self.calibration.like(q, layout)
        return {**self._tensors[key], **self.numbers}


def _fitted(spec: Spec, causal: bool, scale: float | None, head_dim: int) -> str:
    document = spec.document
    attention = dict(document.get("attention", {}))
    if causal and "mask" not in attention and document.get("mask") != "external":
        attention["mask"] = CAUSAL
    if scale is not None and not math.isclose(scale * math.sqrt(head_dim), 1.0, rel_tol=1e-6):
        attention["scale"] = scale
    return json.dumps({**document, "attention": attention}) if attention != document.get("attention", {}) else spec.text


def choice_of(spec: SpecLike, calibration: Calibration | str | os.PathLike | None = None, **numbers: float) -> Choice:
    if isinstance(calibration, (str, os.PathLike)):
        calibration = Calibration.load(calibration)
    return Choice(spec_of(spec), {name: float(value) for name, value in numbers.items()}, calibration)


def refuse(host: str, name: str, given: dict[str, Any], defaults: dict[str, Any]) -> None:
    """What a host passes and no spec can follow is an error, never silently left out."""
    for key, harmless in defaults.items():
        value = given.get(key)
        if value is None or (isinstance(value, (bool, int, float)) and value == harmless):
            continue
        raise ArgumentError(f"{name}: {host} asks for {key}, which is the spec's to say: write a variant of it")
