"""Which spec each layer of a model has, with its parameters: as a document, and as one file.

    {"default": "dense", "layers": {"5": {"spec": "bsfa", "calibration": params}, "6-11": {"spec": "sparge", "tau": 0.9}}}

An entry is a spec (a name, a path, JSON text) or {"spec": ..., "calibration": ..., NAME: number}, a calibration a file or what
`lacuna.calibrate` returned; "default", which may be left out, is what every other layer has: without a mask of its own it is
dense attention. As a JSON file it names specs and calibrations, which may lie beside it; `save_layers` writes everything into one
file of safetensors.
"""

import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from . import tensor_files
from .calibration import Calibration
from .errors import ArgumentError
from .hosting import Choice, choice_of
from .spec import spec_of

_FORMAT = "lacuna-layers 1"
_ALL = "all"  # other layers, among the names of tensors

Resolve = Callable[[Any], Any]


def _entry(entry: Any, where: str) -> dict[str, Any]:
    made = dict(entry) if isinstance(entry, Mapping) and "version" not in entry else {"spec": entry}
    if "spec" not in made:
        raise ArgumentError(f"{where}: expected a spec")
    for name, value in made.items():
        if name not in ("spec", "calibration") and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise ArgumentError(f"{where}: {name}: expected a number, got {type(value).__name__}; what has a value for each head is a calibration")
    return made


def _range(key: str, path: str) -> range:
    first, _, last = str(key).partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        raise ArgumentError(f"{path}: layers: expected numbers like \"5\" or \"6-11\", got \"{key}\"")
    return range(int(first), int(last or first) + 1)


def _read(document: Any, path: str, spec: Resolve, calibration: Resolve) -> dict[int | None, Choice]:
    """None: every other layer. spec, calibration: of what an entry has under these names."""
    if not isinstance(document, Mapping):
        raise ArgumentError(f"{path}: expected an object with default and layers, got {type(document).__name__}")
    if unknown := set(document) - {"default", "layers"}:
        raise ArgumentError(f"{path}: expected default and layers, got {', '.join(sorted(unknown))}")

    def choice(value: Any, where: str) -> Choice:
        entry = _entry(value, f"{path}: {where}")
        given = calibration(entry.pop("calibration", None))
        return choice_of(spec(entry.pop("spec")), given, **entry)

    choices: dict[int | None, Choice] = {None: choice(document.get("default", "dense"), "default")}
    for key, value in document.get("layers", {}).items():
        layers = _range(key, path)
        choices.update(dict.fromkeys(layers, choice(value, str(key))))
    return choices


def layers_of(source: str | os.PathLike | Mapping) -> dict[int | None, Choice]:
    """The choices of a document, of a JSON file or of a file of `save_layers`. None: every other layer."""
    if isinstance(source, Mapping):
        return _read(source, "<dict>", spec_of, lambda found: found)
    path = pathlib.Path(source)
    data = path.read_bytes()
    try:
        tensors, metadata = tensor_files.parse(data)
    except ValueError:
        return _of_json(path, data)
    if metadata.get("format") != _FORMAT:
        raise ArgumentError(f"{path}: expected a file of layers, whose format is {_FORMAT!r}, got {metadata.get('format')!r}")

    def calibration(found: Any) -> Calibration | None:
        if found is None:
            return None
        prefix = found["tensors"] + "/"
        own = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        return Calibration(own, found["metadata"])

    return _read(json.loads(metadata["layers"]), str(path), spec_of, calibration)


def _of_json(path: pathlib.Path, data: bytes) -> dict[int | None, Choice]:
    def beside(name: Any) -> Any:
        return str(path.parent / name) if isinstance(name, str) and (path.parent / name).exists() else name

    try:
        document = json.loads(data)
    except ValueError as error:
        raise ArgumentError(f"{path}: expected JSON, or a file of lacuna.layers.save_layers: {error}") from None
    return _read(document, str(path), lambda found: spec_of(beside(found)), beside)


def save_layers(path: str | os.PathLike, document: Mapping) -> None:
    """Writes a document of layers with the texts of its specs and the tensors of its calibrations, as one safetensors file."""
    tensors: dict[str, Any] = {}

    def packed(value: Any, name: str) -> dict[str, Any]:
        entry = _entry(value, f"<dict>: {name}")
        entry["spec"] = spec_of(entry["spec"]).text
        calibration = choice_of(entry["spec"], entry.pop("calibration", None)).calibration
        if calibration is not None:
            own, metadata = calibration.parts()
            tensors.update({f"{name}/{key}": tensor for key, tensor in own.items()})
            entry["calibration"] = {"tensors": name, "metadata": metadata}
        return entry

    layers_of(document)  # says what is wrong with it
    layers = {str(key): packed(value, str(key)) for key, value in document.get("layers", {}).items()}
    kept = {"default": packed(document.get("default", "dense"), _ALL), "layers": layers}
    tensor_files.write_whole(path, tensors, {"format": _FORMAT, "layers": json.dumps(kept)})
