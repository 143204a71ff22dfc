"""What is asked of the CUDA driver here: to wait for a stream, where the array library has no word for it."""

import ctypes

from .errors import DeviceError


def synchronize(stream: int, device: int) -> None:
    """Waits, in the primary context of the device, until the work on a stream is done."""
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        if (status := getattr(driver, name)(*arguments)) != 0:
            raise DeviceError(f"{name}: error {status} of the CUDA driver")

    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        call("cuCtxPushCurrent_v2", context)
        try:
            call("cuStreamSynchronize", ctypes.c_void_p(stream))
        finally:
            call("cuCtxPopCurrent_v2", ctypes.byref(context))
    finally:
        call("cuDevicePrimaryCtxRelease_v2", device)
