"""lacuna.run and lacuna.calibrate, which call the command."""

import json
import subprocess

import lacuna
import numpy
import pytest
from conftest import problem


def test_a_report_has_figures_the_mask_and_a_picture():
    q, k, v = problem(heads=2, n_q=256)
    report = lacuna.run(q, k, v, spec="bsfa", threshold=1e30, device="cpu")
    assert report.tile_mask.shape == (1, 2, 2, 4)
    assert report.tile_mask[0, 0].tolist() == [[1, 1, 0, 0], [2, 2, 1, 1]]
    assert (report.density, report.gated) == (1.0, 1 / 3)
    assert 0.1 < report.error < 2 and report.time_us["dense"] > 0
    assert report.data["params"] == {"threshold": "1e+30"}
    page = report._repr_html_()
    assert "<svg" in page and "bsfa on cpu" in page


def test_a_report_of_branches_has_the_density_of_each():
    q, k, v = problem(heads=2, n_q=256, d=64)
    report = lacuna.run(q, k, v, spec="nsa", blocks=1, window=64, device="cpu")
    assert list(report.branches) == ["compressed", "selected", "window"]
    assert report.branches["compressed"] == 1 and report.branches["selected"] <= 1
    assert {name: mask.shape for name, mask in report.tile_mask.items()} == {
        branch["name"]: (1, 2, -(-256 // branch["tile"]["q"]), -(-(256 // branch.get("means", 1)) // branch["tile"]["k"]))
        for branch in report.data["branches"]}
    assert (report.tile_mask["selected"] != 0).sum() == report.data["branches"][1]["tiles"]["visited"]
    assert "<svg" not in report._repr_html_()
    with pytest.raises(lacuna.ArgumentError, match="--branch NAME"):
        report.picture()


def test_a_report_takes_arrays_and_layouts():
    q, k, v = problem(heads=2, n_q=256, dtype="float16")
    threshold = numpy.full((2, 2), 0.5, "float32")
    report = lacuna.run(q, k, v, spec="bsfa", threshold=threshold)
    swapped = [array.swapaxes(1, 2) for array in (q, k, v)]
    again = lacuna.run(*swapped, spec="bsfa", layout="bnhd", threshold=threshold)
    assert numpy.array_equal(report.tile_mask, again.tile_mask) and report.error == again.error


def test_a_wrong_parameter_of_a_report_is_told():
    q, k, v = problem()
    with pytest.raises(lacuna.ArgumentError, match="did you mean threshold"):
        lacuna.run(q, k, v, spec="bsfa", treshold=1)
    with pytest.raises(lacuna.ArgumentError, match="dtype: expected one of"):
        lacuna.run(q.astype("float64"), k, v)
    with pytest.raises(lacuna.SpecError):
        lacuna.run(q, k, v, spec='{"version": 1}')


def test_parameters_are_found_saved_and_used(tmp_path):
    q, k, v = problem(heads=2, n_q=512)
    k[:, :, :64] *= 4  # one tile that counts
    params = lacuna.calibrate("bsfa", samples=[(q, k, v)], rel_l1=0.1, device="cpu")
    assert list(params) == ["threshold"] and params["threshold"].shape == (2, 4) and params.complete
    assert params.facts["target"]["rel_l1"] == 0.1
    path = tmp_path / "layer5.safetensors"
    params.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["layer5.safetensors"]
    loaded = lacuna.Calibration.load(path)
    lacuna.tensor_files.write(tmp_path / "qkv.safetensors", {"q": q, "k": k, "v": v})
    command = [lacuna.command.PROGRAM, "run", lacuna.specs()["bsfa"]["path"], "--input", tmp_path / "qkv.safetensors", "--calibration", path, "--device",
               "cpu", "--json"]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["error"]["rel_l1"] <= 0.1
    assert numpy.array_equal(loaded["threshold"], params["threshold"])
    assert lacuna.run(q, k, v, spec="bsfa", **loaded.like(q)).error <= 0.1
    longer, _, _ = problem(heads=2, n_q=700)
    assert loaded.like(longer)["threshold"].shape == (2, 6)
    lacuna.attention(q, k, v, spec="bsfa", **params.like(q))


def test_what_cannot_be_calibrated_is_told(tmp_path):
    q, k, v = problem()
    with pytest.raises(lacuna.ArgumentError, match="nothing to calibrate"):
        lacuna.calibrate("dense", samples=[(q, k, v)])
    with pytest.raises(lacuna.ArgumentError, match="at least one"):
        lacuna.calibrate("bsfa", samples=[])
    (tmp_path / "x").write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="no safetensors file"):
        lacuna.Calibration.load(tmp_path / "x")
