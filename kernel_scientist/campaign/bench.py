"""The bench of a campaign or a single evaluation: one problem, its target, and the right to use the device."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from kernel_scientist.campaign.build_timing_lock import BuildTimingLock
from kernel_scientist.campaign.target import Target
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox import device_lock
from kernel_scientist.sandbox.device_lock import Turn


@dataclass(frozen=True)
class Bench:
    """Where kernels of a problem are built and timed: a target, and whose turn it is."""

    params: Params
    problem: Problem
    target: Target
    quiet: BuildTimingLock = field(default_factory=BuildTimingLock)
    campaign: str = ""
    """The campaign for which kernels are evaluated, if it is one."""

    @property
    def address(self) -> Address:
        """The target's address."""
        return self.target.address

    @property
    def by_model(self) -> bool:
        """Whether kernels are ranked by predicted times."""
        return self.address.by_model

    @property
    def stopped(self) -> threading.Event:
        """Set once the work is to end."""
        return self.target.stopped

    @contextmanager
    def device(self, purpose: str, still_s: float | None = None) -> Generator[None]:
        """Wait until the target can time another kernel, and lock its device, if it has one to be locked.

        `purpose`: what for, such as `time k00012`: others read it who wait. Raises DeviceBusyError if others hold it
        and nothing moves for `still_s` seconds, `harness.device_wait_s` by default (`device_lock.device`).
        """
        self.target.await_place(at_once=still_s == 0)
        if not self.address.lock:
            yield
            return
        limit_s = self.params.harness.device_wait_s if still_s is None else still_s
        quiet = self.quiet.timing(0.0 if still_s == 0 else None)  # builds of this campaign end by themselves
        with device_lock.device(self.address.lock, limit_s, self.stopped, purpose, self.campaign), quiet:
            yield

    def turn(self, purpose: str) -> Turn:
        """Return a turn at the target's device, which is not taken yet. `purpose`: as for `device`."""
        return Turn(partial(self.device, purpose))
