"""Measure this machine's peaks and bandwidths (`peaks.cpp`), once a day, in seconds, in a process of its own."""

import ctypes
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from kernel_scientist.compilers import gxx
from kernel_scientist.compilers.request import BuildRequest
from kernel_scientist.evaluation.timing.conditions import Load
from kernel_scientist.hardware import cpu, measured
from kernel_scientist.hardware.measured import MeasuredPeaks
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.sandbox import bubblewrap
from kernel_scientist.sandbox.process import Process

progress = logging.getLogger("kernel_scientist.progress")
SOURCE = Path(__file__).with_name("peaks.cpp")
FP32, BF16, INT8, READ, COPY, CACHED, CLOCK = range(7)
TYPES = {"fp32": FP32, "bf16": BF16, "int8": INT8}
LEAST_BYTES, MOST_BYTES = 256 << 20, 1 << 30
"""Memory that is read by all threads together: twice the last cache, between these."""
PART_BYTES, CACHED_BYTES = 4 << 20, 1 << 20
"""Bytes that a thread reads in one window, from memory and from its caches."""
TIMEOUT_S = 60


def measure(hold: Callable[[], AbstractContextManager[object]]) -> MeasuredPeaks | None:
    """Return this machine's measured peaks; measure them if that was not done in the last day.

    `hold` holds the device's lock meanwhile. None if they cannot be measured (no compiler, no such unit).
    """
    if not measured.is_due():
        return measured.kept()
    try:
        built = gxx.build(BuildRequest(SOURCE.read_text(), {}, ["-pthread"]))
    except SetupError:
        return None
    if built.path is None:
        progress.warning("this machine's peaks are not measured: the compiler says %s", gxx.headline(built.report.log))
        return None
    progress.debug("measuring this machine's peaks, once a day")
    with hold():
        before = Load.now()
        command = [sys.executable, "-P", "-m", __name__, str(built.path), str(cpu.cores()), str(_bytes())]
        try:
            out = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, env=_paths())
        except (subprocess.SubprocessError, OSError) as error:
            progress.warning("this machine's peaks are not measured: %s", error)
            return None
        load = before.until_now()
    found = MeasuredPeaks(
        machine=cpu.model(),
        cores=cpu.cores(),
        date=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        load=load["load"],
        others_percent=load["others_percent"],
        **json.loads(out.stdout),
    )
    environment.keep(measured.file(), found.model_dump_json())
    return found


def _bytes() -> int:
    last, memory = max(cpu.caches().values(), default=0), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(max(LEAST_BYTES, min(2 * last, MOST_BYTES)), memory // 8)


def _paths() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": bubblewrap.python_path()}


def main() -> None:
    """Print the rates as JSON: `measured_peaks LIBRARY CORES BYTES`."""
    # kernels are timed so, too: one could look faster than what is reachable
    Process(os.getpid()).take_precedence()
    library = ctypes.CDLL(sys.argv[1])
    library.measure.restype, library.measure.argtypes = (
        ctypes.c_double,
        (*(ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64),),
    )
    library.unit_of.restype = ctypes.c_char_p
    cores, size = int(sys.argv[2]), int(sys.argv[3])
    tiles = bool(library.allow_tiles())
    units = {name: library.unit_of(what).decode() for name, what in TYPES.items()}
    units = {name: unit for name, unit in units.items() if unit and (tiles or "AMX" not in unit)}
    rates = {
        "gflops": {name: round(library.measure(TYPES[name], cores, 64, 64), 1) for name in units},
        "units": units,
        "memory_gbps": round(library.measure(READ, cores, size // cores, PART_BYTES), 1),
        "copy_gbps": round(library.measure(COPY, cores, size // cores, PART_BYTES), 1),
        "cache_gbps": round(library.measure(CACHED, cores, CACHED_BYTES, CACHED_BYTES), 1),
        "clock_ghz": round(library.measure(CLOCK, 1, 64, 64), 2),
    }
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
