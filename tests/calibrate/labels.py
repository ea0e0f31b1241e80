"""Kernels of eight published best configurations and of those they are compared with, recorded as the model sees them.

Compiling and tracing them takes minutes. `python -m tests.calibrate.labels` records them again.
"""

import gzip
from pathlib import Path

from kernel_scientist.calibrate import features, tables
from kernel_scientist.calibrate.features import Features
from kernel_scientist.calibrate.tables import Label
from kernel_scientist.hardware import gpus

FILE = Path(__file__).with_name("labels.json.gz")


def eight() -> list[Label]:
    """Return labels of small and large m: every fifth of those that the benchmark ranks."""
    return tables.labels()[::5]


def recorded() -> Features:
    """Return the recorded features."""
    return features.read(gzip.decompress(FILE.read_bytes()).decode())


if __name__ == "__main__":
    found = features.features([e for label in eight() for e in (label.best, *label.others)], gpus.MI300X)
    FILE.write_bytes(gzip.compress(features.written(found).encode(), mtime=0))
