"""lacuna.run: what a spec does on given tensors, next to dense attention."""

import html
import pathlib
import tempfile
from typing import Any

import numpy

from . import command, tensor_files
from .arrays import to_host
from .errors import ArgumentError
from .spec import Spec, SpecLike, spec_of

_CUDA = 2  # DLDeviceType
_FILES = {"order": "--order", "tile_mask": "--tile-mask"}  # what goes in a file of its own


class Report:
    """Figures of one run; in a notebook with its picture.

    density: share of the visible tiles that were visited; gated: share of these that the gate left out;
    error: relative L1 error of o against dense attention, max_abs its largest difference;
    time_us: {"sparse", "dense", "predict", "attend"}; tile_mask: u8 [b, h, q_tiles, k_tiles], 0 not visited, 1 visited,
    2 gated; data: all that `lacuna run --json` says. Of a spec with branches, whose tiles are their own, tile_mask has an
    array for each by its name, `branches` has their densities, density and gated are of all tiles together, and there is
    no picture."""

    def __init__(self, data: dict, tile_mask: numpy.ndarray | dict[str, numpy.ndarray], folder: tempfile.TemporaryDirectory, spec: Spec, words: list[str]):
        self.data, self.tile_mask = data, tile_mask
        self._folder, self._spec, self._words = folder, spec, words
        self._picture: str | None = None
        branches = data.get("branches", [])
        counts = [branch["tiles"] for branch in branches] or [data["tiles"]]
        tiles = {key: sum(count[key] for count in counts) for key in ("visible", "visited", "gated")}
        self.branches: dict[str, float] = {
            branch["name"]: branch["tiles"]["visited"] / max(1, branch["tiles"]["visible"]) for branch in branches}
        self.density: float = tiles["visited"] / max(1, tiles["visible"])
        self.gated: float = tiles["gated"] / max(1, tiles["visited"])
        self.error: float = data["error"]["rel_l1"]
        self.max_abs: float = data["error"]["max_abs"]
        self.time_us: dict[str, float] = data["time_us"]

    def picture(self) -> str:
        """The tiles of each head as SVG; drawn at the first call, by another run on the same tensors."""
        if self.branches:
            raise ArgumentError("branches have tiles of their own: `lacuna viz mask --branch NAME` draws those of one")
        if self._picture is None:
            path = pathlib.Path(self._folder.name) / "mask.svg"
            command.call("viz", "mask", "-", *self._words, "-o", str(path), spec=self._spec)
            self._picture = path.read_text(encoding="utf-8")
        return self._picture

    def __repr__(self) -> str:
        time = self.time_us
        return (f"{self.data['spec']} on {self.data['device']} ({self.data['device_name']}): density {self.density:.3f}, gated "
                f"{self.gated:.3f}, relative L1 error {self.error:.2e}, {time['sparse']:.0f} us, dense {time['dense']:.0f} us")

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>{'' if self.branches else self.picture()}"


def _parameter_words(folder: pathlib.Path, parameters: dict[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in parameters.items():
        if name in _FILES:
            path = folder / f"{name}.npy"
            numpy.save(path, to_host(value)[0])
            words += [_FILES[name], str(path)]
        elif hasattr(value, "__dlpack__"):
            path = folder / f"{name}.safetensors"
            tensor_files.write(path, {name: value})
            words += ["--param", f"{name}=@{path}"]
        else:
            try:
                words += ["--param", f"{name}={float(value)!r}"]
            except (TypeError, ValueError):
                raise TypeError(f"argument {name}: expected a number, or an array, got {type(value).__name__}") from None
    return words


def device_of(array: Any) -> str:
    kind, index = array.__dlpack_device__()
    return f"cuda:{index}" if int(kind) == _CUDA else "cpu"


def write_tensors(path: pathlib.Path, q: Any, k: Any, v: Any, layout: str = "bhnd") -> None:
    tensors = {"q": q, "k": k, "v": v}
    if layout == "bnhd":
        tensors = {name: array.swapaxes(1, 2) for name, array in tensors.items()}
    tensor_files.write(path, tensors)


def run(q: Any, k: Any, v: Any, *, spec: SpecLike = "dense", device: str | None = None, layout: str = "bhnd",
        **parameters: Any) -> Report:
    """Runs a spec on q [b, h, n_q, d], k, v [b, h_kv, n_k, d] and measures it against dense attention.

    device: "cpu", "cuda:N"; else where q is. layout: as `attention` has it. parameters: those of the spec, a number or an
    array each, and order or tile_mask where the spec leaves them to the caller. The tensors go to the `lacuna` command
    through a file of a temporary folder, which lives as long as the report. Raises as `attention` does."""
    text = spec_of(spec)
    folder = tempfile.TemporaryDirectory(prefix="lacuna-")
    place = pathlib.Path(folder.name)
    write_tensors(place / "qkv.safetensors", q, k, v, layout)
    words = ["--input", str(place / "qkv.safetensors"), "--device", device or device_of(q), *_parameter_words(place, parameters)]
    has_branches = "branches" in text.document
    file = place / ("masks.safetensors" if has_branches else "mask.npy")
    data = command.call("run", "-", *words, "--mask-out", str(file), spec=text)
    mask = tensor_files.parse(file.read_bytes())[0] if has_branches else numpy.load(file)
    return Report(data, mask, folder, text, words)
