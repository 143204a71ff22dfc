"""Clock and power of the first GPU, sampled by a thread through NVML; nothing where there is no NVML."""

import ctypes
import statistics
import threading

PERIOD_S = 0.02
SM_CLOCK = 1  # NVML_CLOCK_SM


class Sensors:
    """A context; between begin() and end() lie the samples that end() averages."""

    def __init__(self):
        self.samples, self.stopping, self.thread = [], threading.Event(), None
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            self.nvml = None
            return
        self.device = ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() != 0 or self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) != 0:
            self.nvml = None

    def __enter__(self):
        if self.nvml:
            self.thread = threading.Thread(target=self.sample, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        if self.thread:
            self.thread.join()

    def sample(self):
        clock_mhz, power_mw = ctypes.c_uint(), ctypes.c_uint()
        while not self.stopping.wait(PERIOD_S):
            if (self.nvml.nvmlDeviceGetClockInfo(self.device, SM_CLOCK, ctypes.byref(clock_mhz)) == 0
                    and self.nvml.nvmlDeviceGetPowerUsage(self.device, ctypes.byref(power_mw)) == 0):
                self.samples.append((clock_mhz.value, power_mw.value / 1e3))

    def begin(self):
        self.samples.clear()

    def end(self):
        """{"clock_mhz", "power_w"}, means since begin(); {} if there is no sample."""
        samples = list(self.samples)
        if not samples:
            return {}
        return {"clock_mhz": round(statistics.fmean(clock for clock, _ in samples)),
                "power_w": round(statistics.fmean(power for _, power in samples))}
