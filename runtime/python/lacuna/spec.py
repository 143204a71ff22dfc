"""Specs as Python has them: a name of one that comes along, JSON text, a file, a dict, or a Spec made of any of these."""

import functools
import json
import os
import pathlib
from typing import TypeAlias

from .errors import SpecError
from .words import nearest

FOLDER = pathlib.Path(__file__).with_name("share") / "lacuna" / "specs"

class Spec:
    """One variant as text, with the name that errors show for it. Equal and hashed by its text."""

    __slots__ = ("text", "path", "_hash")

    def __init__(self, text: str, path: str = "<memory>"):
        self.text, self.path, self._hash = text, path, hash(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.text == other.text

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Spec({self.path})"

    @property
    def document(self) -> dict:
        """The spec as a dict, a new one each time."""
        try:
            return json.loads(self.text)
        except ValueError as error:
            raise SpecError(f"{self.path}: error: {error}") from None


SpecLike: TypeAlias = Spec | str | os.PathLike | dict


def shipped() -> dict[str, pathlib.Path]:
    """The specs that come along, by name."""
    return {path.stem: path for path in sorted([*FOLDER.glob("*.json"), *FOLDER.glob("examples/*.json")]) if path.stem != "schema"}


@functools.lru_cache(maxsize=64)
def _read(path: str, _changed_ns: int, _size: int) -> Spec:
    return Spec(pathlib.Path(path).read_text(encoding="utf-8"), path)


def _of_file(path: str) -> Spec:
    try:
        found = os.stat(path)
        return _read(path, found.st_mtime_ns, found.st_size)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: error: cannot be read: {error}") from None


@functools.lru_cache(maxsize=256)
def _of_name(name: str) -> Spec:
    known = shipped()
    if name in known:
        return Spec(known[name].read_text(encoding="utf-8"), known[name].name)
    near = nearest(name, known)
    raise SpecError(f"no spec {name!r}: expected the name of one that comes along, JSON text, or the path of a .json file" +
                    (f"; did you mean {near!r}?" if near else f"; there are {', '.join(known)}"))


def spec_of(spec: SpecLike) -> Spec:
    """A file is read again when it has changed, a dict written out at each call: a Spec saves both."""
    if isinstance(spec, Spec):
        return spec
    if isinstance(spec, dict):
        return Spec(json.dumps(spec), "<dict>")
    if isinstance(spec, os.PathLike):
        return _of_file(os.fspath(spec))
    if not isinstance(spec, str):
        raise TypeError(f"spec: expected a name, JSON text, a path, a dict or a Spec, got {type(spec).__name__}")
    if spec.lstrip().startswith("{"):
        return Spec(spec)
    return _of_file(spec) if spec.endswith(".json") else _of_name(spec)
