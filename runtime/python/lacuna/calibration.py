"""lacuna.calibrate: the parameters of a spec for one model layer, from samples and an error bound."""

import json
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from . import command, tensor_files
from .arrays import library_of
from .errors import ArgumentError
from .report import _parameter_words, device_of, write_tensors
from .spec import SpecLike, spec_of


class Calibration(Mapping):
    """Parameters by name, as arrays of NumPy: `attention(q, k, v, spec=..., **params.like(q))`.

    facts: what they were found on and what they reach: spec, spec_sha256, target, heads, samples, results.
    complete: False if Ctrl-C ended the search; then the bound holds, and more could have been left out."""

    def __init__(self, tensors: dict[str, numpy.ndarray], metadata: dict[str, str]):
        self._tensors, self._metadata = tensors, metadata
        self.facts: dict = json.loads(metadata.get("facts", "{}"))
        if metadata.get("format") is None or not self.facts:
            raise ValueError("no calibration: its safetensors metadata has no format and facts")
        self.complete: bool = self.facts.get("complete", True)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Calibration":
        """Of a file of `save` or of `lacuna calibrate -o`. OSError, ValueError."""
        return cls(*tensor_files.parse(pathlib.Path(path).read_bytes()))

    def save(self, path: str | os.PathLike) -> None:
        """As safetensors, which `lacuna run --calibration` reads too. Written whole or not at all."""
        tensor_files.write_whole(path, *self.parts())

    def parts(self) -> tuple[dict[str, numpy.ndarray], dict[str, str]]:
        """What `save` writes, and what makes another: all tensors, and the metadata of the file."""
        return self._tensors, self._metadata

    def like(self, q: Any, layout: str = "bhnd") -> dict[str, Any]:
        """The same in the library and on the device of q. Where q has another number of tokens than the samples, what has
        a value for each tile of queries is cut, or goes on with its last."""
        tokens = q.shape[2 if layout == "bhnd" else 1]
        return {name: library_of(type(q)).from_numpy(numpy.array(array), q) for name, array in self.fitted(self, tokens).items()}

    def fitted(self, arrays: Mapping[str, Any], tokens: int) -> dict[str, Any]:
        """Its arrays, here or in another library, for so many queries."""
        rows = -(-tokens // self.facts["tile_q"])
        return {name: _with_rows(array, rows) if array.ndim > 1 else array for name, array in arrays.items()}

    def __getitem__(self, name: str) -> numpy.ndarray:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        """Without those for other numbers of kept tiles, "NAME.kept_16"."""
        return (name for name in self._tensors if "." not in name)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in self.items())
        return f"<lacuna.Calibration of {self.facts.get('spec')}: {shapes}>"


def _with_rows(array: Any, rows: int) -> Any:
    """[heads, rows] of [heads, any]: cut, or on with the last."""
    have = array.shape[1]
    return array[:, :rows] if rows <= have else array[:, [*range(have), *[have - 1] * (rows - have)]]


def calibrate(spec: SpecLike, samples: Sequence[Any], *, rel_l1: float = 0.05, device: str | None = None,
              kept: Sequence[int] = (), one_for_all: bool = False, layout: str = "bhnd", **parameters: Any) -> Calibration:
    """Finds the parameters of a spec on samples of one layer, so that no head's relative L1 error exceeds rel_l1.

    samples: (q, k, v) each, arrays as `attention` takes them, or paths of safetensors files with q, k and v.
    device: "cpu", "cuda:N"; else where the first sample is. kept: numbers of kept tiles to find thresholds for.
    one_for_all: one number for all heads. parameters: those that are not looked for. Ctrl-C keeps what has been found."""
    text = spec_of(spec)
    if not samples:
        raise ArgumentError("samples: expected at least one (q, k, v), or the path of a safetensors file, got none")
    with tempfile.TemporaryDirectory(prefix="lacuna-") as folder:
        place = pathlib.Path(folder)
        files = []
        for number, sample in enumerate(samples):
            if isinstance(sample, (str, os.PathLike)):
                files.append(os.fspath(sample))
                continue
            files.append(str(place / f"sample{number}.safetensors"))
            device = device or device_of(sample[0])
            write_tensors(pathlib.Path(files[-1]), *sample, layout=layout)
        out = place / "calibration.safetensors"
        words = ["--samples", *files, "--target", f"rel_l1={rel_l1!r}", "-o", str(out), *_parameter_words(place, parameters)]
        words += ["--device", device] if device else []
        words += ["--kept", ",".join(map(str, kept))] if kept else []
        words += ["--one-for-all"] if one_for_all else []
        command.call("calibrate", "-", *words, spec=text, progress=True)
        return Calibration.load(out)
