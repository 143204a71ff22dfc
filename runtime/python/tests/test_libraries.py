"""Arrays of CuPy and JAX, where they are installed: by DLPack, on the device where they are."""

import lacuna
import numpy
import pytest
from conftest import CAUSAL, error, exact, problem


@pytest.fixture
def cupy():
    found = pytest.importorskip("cupy")
    try:
        found.cuda.runtime.getDeviceCount()
    except found.cuda.runtime.CUDARuntimeError:
        pytest.skip("no GPU")
    return found


def test_cupy(cupy):
    arrays = problem(heads=4, heads_kv=2, n_q=130, dtype="float16")
    q, k, v = map(cupy.asarray, arrays)
    expected, expected_lse = exact(*arrays, causal=True)
    o, lse = lacuna.attention(q, k, v, spec=CAUSAL, lse=True)
    assert isinstance(o, cupy.ndarray) and isinstance(lse, cupy.ndarray)
    assert error(cupy.asnumpy(o), expected) < 1e-2 and abs(cupy.asnumpy(lse) - expected_lse).max() < 1e-3
    sparse = lacuna.attention(q, k, v, spec="sparge")  # with workspace of CuPy's pool
    assert numpy.isfinite(cupy.asnumpy(sparse)).all()
    out = cupy.empty_like(q)
    with cupy.cuda.Stream() as stream:
        assert lacuna.attention(q, k, v, spec=CAUSAL, out=out, stream=stream) is out
        stream.synchronize()
    assert error(cupy.asnumpy(out), expected) < 1e-2
    report = lacuna.run(q, k, v, spec="bsfa", threshold=1e30)
    assert report.data["device"].startswith("cuda") and report.gated > 0
    with pytest.raises(lacuna.ArgumentError, match="k: device"):
        lacuna.attention(q, arrays[1], v, spec=CAUSAL)


def test_jax():
    jax = pytest.importorskip("jax")
    arrays = problem(heads=4, heads_kv=2, n_q=130, dtype="float16")
    q, k, v = map(jax.numpy.asarray, arrays)
    expected, expected_lse = exact(*arrays, causal=True)
    for _ in range(3):
        o, lse = lacuna.attention(q, k, v, spec=CAUSAL, lse=True)
        assert isinstance(o, jax.Array) and isinstance(lse, jax.Array) and o.devices() == q.devices()
        assert error(o, expected) < 1e-2 and abs(numpy.asarray(lse) - expected_lse).max() < 1e-3
    assert numpy.isfinite(numpy.asarray(lacuna.attention(q, k, v, spec="sparge"), "float32")).all()
    assert lacuna.run(q, k, v, spec="bsfa", threshold=1e30).gated > 0
    with pytest.raises(lacuna.ArgumentError, match="k: dtype"):
        lacuna.attention(q, k.astype("float32"), v, spec=CAUSAL)
