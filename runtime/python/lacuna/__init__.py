"""Sparse attention from JSON, compiled at run time.

    o = lacuna.attention(q, k, v, spec="bsfa", threshold=t)     NumPy on the CPU, or PyTorch, CuPy, JAX: nothing is copied
    o = lacuna.attention(..., sequences=lacuna.Sequences(...))  batches of different lengths, keys in pages
    kernel = lacuna.compile("sparge", head_dim=128)             compiled once, for loops and graphs
    lacuna.check(text), lacuna.explain("bsfa"), lacuna.specs()  what the compiler says
    lacuna.run(q, k, v, spec="sparge")                          density, error, time, the tiles
    lacuna.calibrate("bsfa", samples=[...], rel_l1=0.02)        parameters within an error bound
    lacuna.Group.from_torch(process_group).attention(q, k, v)   one problem on several GPUs

Parts that need a host are modules of their own: lacuna.torch, lacuna.transformers, lacuna.diffusers, lacuna.vllm_omni.
"""

from ._lacuna import Selection, version
from .calibration import Calibration, calibrate
from .errors import ArgumentError, DeviceError, Error, InternalError, SpecError, SpecWarning
from .explanation import Explanation, check, explain, specs
from .group import Group, Plan
from .kernel import Engine, Kernel, Signature, attention, compile
from .report import Report, run
from .sequences import Sequences
from .spec import Spec

__version__ = version()
__all__ = ["ArgumentError", "Calibration", "DeviceError", "Engine", "Error", "Explanation", "Group", "InternalError",
           "Kernel", "Plan", "Report", "Selection", "Sequences", "Signature", "Spec", "SpecError", "SpecWarning",
           "attention", "calibrate", "check", "compile", "explain", "run", "specs"]
