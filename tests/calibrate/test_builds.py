"""Kernels are compiled ahead in processes of their own, none of which can hold the calibration up."""

import time
from pathlib import Path

from kernel_scientist.calibrate import builds
from kernel_scientist.calibrate.suite import CalibrationKernel


def entry(name: str, source: str) -> CalibrationKernel:
    return CalibrationKernel("copy", "n1", name, source, {"items": []})


def test_every_source_is_called_and_one_that_never_returns_is_ended(tmp_path: Path) -> None:
    called, ended = tmp_path / "called", tmp_path / "ended"
    calls = f"def custom_kernel(data): open({str(called)!r}, 'a').write('x')\n"
    hangs = f"import time\ntime.sleep(600)\nopen({str(ended)!r}, 'w')\n"
    entries = [entry("broken", "raise ValueError('no')"), entry("a", calls), entry("b", calls)]
    builds.ahead(entries, tmp_path, 120)
    assert called.read_text() == "xx"
    start = time.monotonic()
    builds.ahead([entry("hangs", hangs)], tmp_path, 2)
    assert time.monotonic() - start < 100 and not ended.exists()
