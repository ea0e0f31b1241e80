"""The room that a campaign needs on its disks, checked before anything starts.

A disk that fills later is waited for, so what is asked for here is what a campaign writes at its start and for its
first kernels.
"""

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from kernel_scientist.records import disk, environment
from kernel_scientist.records.disk import MB
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params
from kernel_scientist.records.text import number_of
from kernel_scientist.tracking import local_store

MOST_KERNELS = 100
"""Kernels that are provided for: those after them may have to wait."""


class DiskNeed(NamedTuple):
    """What one folder takes up, in bytes: once, and for each kernel."""

    folder: Path
    what: str
    once: int
    kernel: int

    def bytes(self, kernels: int) -> int:
        """Return the bytes of a campaign of so many kernels."""
        return self.once + self.kernel * min(kernels, MOST_KERNELS)


def needs(params: Params) -> list[DiskNeed]:
    """Return what a campaign writes on this machine.

    Measured: a new store has 1.1 MB and a kernel of the playbook 20 kB in it; a kernel that a model wrote has prompts
    and replies too, ten times as much. Prefect's database and its log have 5.8 MB after ten kernels. A compiled kernel
    has 15 kB and more, one that uses torch's headers 200 kB; the machine that executes GPU code has 4 MB.
    """
    found = [DiskNeed(environment.cache_folder(), "compiled kernels", 8 * MB, MB // 5)]
    if file := local_store.database(environment.tracking_uri(params.tracking.uri)):
        found.append(DiskNeed(file.parent, "the MLflow store", 8 * MB, MB // 5))
    if not os.environ.get("PREFECT_API_URL"):
        found.append(DiskNeed(environment.prefect_folder(), "Prefect's database", 12 * MB, MB // 10))
    return found


def require(params: Params) -> None:
    """Raise SetupError, which names folders, free space and what is needed, unless a campaign's disks have room."""
    search = params.search
    kernels = min(search.generations * (search.experiments + 1) + 2, params.budget.kernels)
    disks: defaultdict[int, list[DiskNeed]] = defaultdict(list)
    for need in needs(params):
        disks[disk.existing(need.folder).stat().st_dev].append(need)
    for together in disks.values():
        free, needed = disk.free_bytes(together[0].folder), sum(n.bytes(kernels) for n in together)
        if free < needed:
            places = ", ".join(f"{n.bytes(kernels) / MB:.0f} MB for {n.what} in {n.folder}" for n in together)
            raise SetupError(
                f"there is too little room on the disk of {together[0].folder}: {free / MB:.3g} MB are free, and a "
                f"campaign of {number_of(kernels, 'kernel')} takes up to {needed / MB:.0f} MB ({places}); make "
                "room there"
            )
