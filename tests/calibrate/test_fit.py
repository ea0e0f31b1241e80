"""The fit: it finds constants, says what it cannot find, and its figures are correct."""

import math
from dataclasses import replace

import pytest

from kernel_scientist.calibrate import fit
from kernel_scientist.calibrate.fit import Fit, FitPoint
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.gpu.model.predict import KernelLoad
from kernel_scientist.hardware import gpus
from tests.calibrate.measurements import TRUTH, points


def test_the_fit_finds_the_constants_that_made_the_times() -> None:
    found = fit.fit(gpus.named("mi300x"), points(0.02))
    assert found.rho and found.rho > 0.98 and found.error and found.error < 0.05
    assert found.met and len(found.families) == 6 and found.fitted_on == found.held_out == 72
    assert {"hbm", "matrix", "vector", "lds", "latency_ns", "launch_us"} <= set(found.constants) - set(found.kept)
    for name in set(found.constants) - set(found.kept):
        tolerance = 0.5 if name in ("norm", "launch_us", "next_us", "cache") else 0.2
        assert found.constants[name] == pytest.approx(getattr(TRUTH, name), rel=tolerance), name
    for name in found.kept:
        assert found.constants[name] == getattr(Constants(), name)


@pytest.mark.slow
def test_constants_that_no_time_depends_on_keep_their_defaults() -> None:
    single = [replace(p, loads=p.loads[:1], time_us=p.time_us) for p in points(0.0) if len(p.loads) == 1]
    _, kept = fit.solve(gpus.named("h100"), [replace(p, loads=(_on_hopper(p.loads[0]),)) for p in single[:30]])
    assert kept["next_us"] == kept["cache"] == "no time depends on it"


def _on_hopper(load: KernelLoad) -> KernelLoad:
    return replace(load, code=load.code.model_copy(update={"arch": "sm_90"}))


def test_the_fit_survives_data_that_say_little() -> None:
    gpu = gpus.named("mi300x")
    one = fit.fit(gpu, points(0.01, families=1))
    assert len(one.families) == 1 and one.rho is not None
    equal = fit.fit(gpu, [replace(p, time_us=10.0) for p in points(0.0, families=2)])
    assert equal.rho is None and not equal.met and all(f.regret == 0 for f in equal.families)
    same = fit.fit(gpu, [replace(p, loads=points(0.0)[0].loads) for p in points(0.0, families=1)])
    assert same.rho is None and all(math.isfinite(value) for value in same.constants.values())
    for few in ([], points(0.0)[:1], points(0.0)[:2]):
        found = fit.fit(gpu, few)
        assert not found.met and found.fitted_on + found.held_out == len(few)
    assert Fit.model_validate_json(one.model_dump_json()) == one


def test_halves_see_every_case_and_depend_on_the_seed_alone() -> None:
    every = points(0.0)
    ours, others = fit.halves(every, 3)
    assert {p.name for p in ours} | {p.name for p in others} == {p.name for p in every}
    assert (
        {(p.family, p.case) for p in ours}
        == {(p.family, p.case) for p in others}
        == {(p.family, p.case) for p in every}
    )
    assert fit.halves(every[::-1], 3) == (ours, others) != fit.halves(every, 4)


def test_regret_and_ranks() -> None:
    def timed(times: dict[str, float]) -> list[FitPoint]:
        return [FitPoint(name, "f", "c", (), time_us) for name, time_us in times.items()]

    measured = timed({"a": 10.0, "b": 11.0, "c": 20.0})
    assert fit.regret(measured, {"a": 2.0, "b": 1.0, "c": 3.0}) == pytest.approx(0.1)
    equal = {"a": 1.0, "b": 1.0, "c": 1.0}
    assert fit.regret(measured, equal) == pytest.approx(1.0)  # the slowest of what is predicted equal
    assert fit.rho(measured, {"a": 1.0, "b": 3.0, "c": 2.0}) == 0.5
    assert fit.rho(measured[:2], equal | {"a": 2.0}) is fit.rho(measured, equal) is None
