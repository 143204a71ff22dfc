"""What is installed: types, the command, and binaries that load on other machines."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

import lacuna
import pytest

PACKAGE = pathlib.Path(lacuna.__file__).parent


def test_types_come_along():
    assert (PACKAGE / "py.typed").exists()
    stub = ast.parse((PACKAGE / "_lacuna.pyi").read_text())
    classes = {node.name: {item.name for item in node.body if isinstance(item, ast.FunctionDef)} for node in stub.body if isinstance(node, ast.ClassDef)}
    assert {"Engine", "Kernel", "Selection", "Group", "GroupPlan"} <= set(classes)
    assert {"__call__", "workspace_bytes"} <= classes["Kernel"]
    assert "attention" in {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}


def test_one_wheel_serves_later_versions_of_python():
    (extension,) = PACKAGE.glob("_lacuna*.so")
    assert extension.name == "_lacuna.abi3.so" if sys.version_info >= (3, 12) else f"cpython-3{sys.version_info[1]}" in extension.name


def test_the_command_is_installed():
    command = pathlib.Path(sys.executable).with_name("lacuna")
    if not command.exists():
        pytest.skip("the package was put on the path, not installed")
    assert subprocess.run([command, "--version"], capture_output=True, text=True).stdout.strip() == lacuna.__version__
    assert subprocess.run([command, "chek"], capture_output=True).returncode == 2


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
def test_binaries_ask_for_no_newer_glibc():
    for path in [*PACKAGE.glob("_lacuna*.so"), *PACKAGE.glob("lib/*"), PACKAGE / "bin/lacuna"]:
        symbols = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", symbols)}
        assert max(versions) <= (2, 34), path


def test_the_cpu_works_without_its_compiler():
    script = ("import warnings, numpy, lacuna\n"
              "q = numpy.ones((1, 1, 8, 64), 'float32')\n"
              "with warnings.catch_warnings(record=True) as told:\n"
              "    assert numpy.allclose(lacuna.attention(q, q, q), 1)\n"
              "    lacuna.attention(q, q, q, spec='bsfa')\n"
              "print(*[w.message for w in told])\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "LACUNA_HOST_PLUGIN": "off"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("lacuna-attention[cpu]") == 1 and not done.stderr


def test_a_python_that_ends_says_nothing():
    script = ("import numpy, lacuna\nq = numpy.ones((1, 1, 8, 64), 'float32')\nkept = lacuna.compile('dense', head_dim=64, dtype='f32', device='cpu')\n"
              "kept(q, q, q)\nlacuna.attention(q, q, q)\n")
    # A package without the CPU's compiler says so once.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
