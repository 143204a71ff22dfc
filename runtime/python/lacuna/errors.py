"""Exceptions: each carries what the compiler or a launch said, as text with carets and as data."""

import json
import os
import sys
import warnings
from typing import NoReturn

_FOLDER = os.path.dirname(__file__)
_INPUT, _USAGE, _ENVIRONMENT = 1, 2, 3


class Error(Exception):
    """What went wrong, as the `lacuna` command prints it. `diagnostics`: a dict for each error, with severity, code,
    message, path, pointer, line, column, length, notes and helps."""

    def __init__(self, text: str, diagnostics: list[dict] | None = None):
        super().__init__(text.rstrip("\n"))
        self.diagnostics: list[dict] = diagnostics or []


class SpecError(Error, ValueError):
    """A spec is not acceptable, or not for this device, dtype and head dim."""


class ArgumentError(Error, ValueError):
    """An array or a parameter is not what a launch takes: its name, shape, dtype, strides or device."""


class DeviceError(Error, RuntimeError):
    """Something is missing on this machine: a GPU, a driver, NVRTC, memory."""


class InternalError(Error, RuntimeError):
    """A bug of lacuna."""


class SpecWarning(UserWarning):
    """A spec was accepted, with a remark; or the cache of kernels is of no use."""


def _is_of_spec(diagnostic: dict) -> bool:
    """By the groups of codes.def: text, fields, formulas, limits of the hardware."""
    return diagnostic.get("code", "")[:3] in ("E01", "E02", "E03", "E04")


def kind_of(status: int, diagnostics: list[dict]) -> type[Error]:
    """The exception for a status of the C ABI, or the exit status of the command: they are the same numbers."""
    if status == _INPUT:
        return SpecError if any(map(_is_of_spec, diagnostics)) else ArgumentError
    return {_USAGE: ArgumentError, _ENVIRONMENT: DeviceError}.get(status, InternalError)


def raise_status(status: int, text: str, document: str) -> NoReturn:
    """For a lacuna_status and the texts of lacuna_last_error."""
    try:
        diagnostics = json.loads(document)["diagnostics"]
    except (ValueError, KeyError):
        diagnostics = []
    raise kind_of(status, diagnostics)(text, diagnostics)


def raise_argument(text: str) -> NoReturn:
    raise ArgumentError(text)


def warn(text: str) -> None:
    """Where the caller of this package is."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, SpecWarning, stacklevel=level)


def warn_of(documents: list[str]) -> None:
    """Of {"diagnostics": [...]} or {"message": ...}."""
    for document in documents:
        parsed = json.loads(document)
        for item in parsed.get("diagnostics", [parsed]):
            place = f"{item['path']}:{item['line']}: " if item.get("line") else ""
            warn(place + item["message"])
