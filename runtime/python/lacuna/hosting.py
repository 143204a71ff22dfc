"""What the hosts share: which spec a layer has, as a call of the host means it."""

import json
import os
from typing import Any

import numpy
import torch

from .calibration import Calibration
from .errors import ArgumentError
from .spec import Spec, SpecLike, spec_of

CAUSAL = "k <= q + n_k - n_q"  # the last query sees every key
_SCALE = '"<scale>"'  # the mark, as JSON has it


class Choice:
    """The spec of a layer with its parameters. In a graph that is being compiled it reads no JSON and fills no table."""

    def __init__(self, spec: Spec, numbers: dict[str, float] | None = None, calibration: Calibration | None = None):
        self.spec, self.numbers, self.calibration = spec, numbers or {}, calibration
        self.names = tuple(spec.document.get("params", {}))  # of the parameters of the spec
        self._forms = {(causal, scaled): _form(spec, causal, scaled) for causal in (False, True) for scaled in (False, True)}
        self._texts: dict[tuple, str] = {}
        self._host = {name: torch.from_numpy(numpy.array(array)) for name, array in (calibration or {}).items()}
        self._on_device: dict[torch.device, dict[str, torch.Tensor]] = {}
        self._fitted: dict[tuple, dict[str, torch.Tensor]] = {}

    def text(self, causal: bool, scale: float | None, head_dim: int) -> str:
        """The spec as the host's call means it: a mask that is causal where the host is and the spec says nothing, and
        the host's scale."""
        if torch.compiler.is_compiling():
            return self._made(causal, scale, head_dim)
        key = (causal, scale, head_dim)
        if key not in self._texts:
            self._texts[key] = self._made(*key)
        return self._texts[key]

    def _made(self, causal: bool, scale: float | None, head_dim: int) -> str:
        if scale is None or abs(scale * head_dim ** 0.5 - 1.0) < 1e-6:
            return self._forms[bool(causal), False]
        return self._forms[bool(causal), True].replace(_SCALE, repr(scale))

    def parameters(self, q: torch.Tensor, layout: str) -> dict[str, Any]:
        """Those of the calibration on q's device and for its tokens, and the numbers."""
        if self.calibration is None:
            return self.numbers
        tokens, device = q.shape[2 if layout == "bhnd" else 1], q.device
        if torch.compiler.is_compiling():
            arrays = self._on_device[device] if device in self._on_device else {name: array.to(device) for name, array in self._host.items()}
            return {**self.calibration.fitted(arrays, tokens), **self.numbers}
        if device not in self._on_device:
            self._on_device[device] = {name: array.to(device) for name, array in self._host.items()}
        key = (tokens, device)
        if key not in self._fitted:
            self._fitted[key] = self.calibration.fitted(self._on_device[device], tokens)
        return {**self._fitted[key], **self.numbers}


def _form(spec: Spec, causal: bool, scaled: bool) -> str:
    """The text of a spec with a causal mask, if it has none, and with a mark in place of its scale."""
    document = spec.document
    attention = dict(document.get("attention", {}))
    if causal and "mask" not in attention and document.get("mask") != "external":
        attention["mask"] = CAUSAL
    if scaled:
        attention["scale"] = _SCALE.strip('"')
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
