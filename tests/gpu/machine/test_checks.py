"""Checking runs find every planted fault at its line, and accuse no honest kernel."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_scientist.gpu.machine import build, findings, library
from kernel_scientist.gpu.machine.code import Code
from kernel_scientist.gpu.machine.library import Library
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.gpu.toolchains.quoted_sources import Sources
from kernel_scientist.records import environment
from tests.gpu.machine import corpus
from tests.gpu.machine.corpus import Case

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
FAULTS = [case for file in ("bounds.hip", "races.hip", "unset.hip") for case in corpus.cases(file)]
HONEST = corpus.cases("sound.hip")
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def machine() -> Library:
    return library.loaded(build.build(environment.cache_folder() / "machine"))


@pytest.fixture(scope="module")
def codes(machine: Library) -> Iterator[dict[str, Code]]:
    files = ("bounds.hip", "races.hip", "unset.hip", "sound.hip")
    yield {file: corpus.compiled(machine, file) for file in files}


def found(codes: dict[str, Code], case: Case, seed: int) -> list[Any]:
    return findings.defects(corpus.checked(codes[case.file], case, seed)[0], Sources())


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.name)
def test_a_planted_fault_is_found_at_its_line(codes: dict[str, Code], case: Case) -> None:
    for seed in SEEDS:
        defects = found(codes, case, seed)
        assert any(one.kind == case.kind and one.line in case.lines for one in defects), (seed, defects)
        for one in defects:
            assert 0 < one.programs <= one.of_programs and one.lanes > 0


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_an_honest_kernel_is_not_accused(codes: dict[str, Code], case: Case) -> None:
    for seed in SEEDS:
        assert not found(codes, case, seed)


def one(codes: dict[str, Code], name: str) -> Any:
    case = next(case for case in FAULTS if case.name == name)
    return next(defect for defect in found(codes, case, 1) if defect.kind == case.kind and defect.line in case.lines)


@pytest.mark.parametrize(
    ("name", "tensor", "element", "words"),
    [
        ("one_past_the_end", "argument 0", 1000, "reads element 1000 of argument 0, which has 1000; 1 of 4"),
        ("before_the_start", "argument 0", -1, "reads element -1"),
        ("into_the_neighbour", "argument 0", 5000, "reads element 5000 of argument 0, which has 4096"),
        ("sum_of_ints", "argument 0", -(1 << 31), "32-bit arithmetic overflowed, element 2147483648 was meant"),
        ("dynamic_lds_too_small", "LDS", 512, "uses byte 512 of LDS, of which the workgroup has 512"),
        ("lanes_store_pairwise", "argument 1", 0, "lanes 0 and 1 of one instruction store different values"),
        ("split_k_stores", "argument 1", 0, "in workgroup 0, with no release and acquire between them"),
        ("guarded_copy_of_empty_memory", "argument 0", 0, "reads what nothing has written"),
        ("branch_on_an_empty_flag", "argument 2", 0, "nothing has written, and a branch depends on it"),
        ("a_flag_that_nobody_sets", "argument 1", 0, "waits for a value that no running wave will store"),
    ],
)
def test_a_finding_says_what_and_where(
    codes: dict[str, Code], name: str, tensor: str, element: int, words: str
) -> None:
    defect = one(codes, name)
    assert (defect.tensor, defect.examples[0].element) == (tensor, element) and words in defect.note, defect


def test_memory_that_a_checking_run_changes_holds_the_right_values(codes: dict[str, Code]) -> None:
    case = next(case for case in HONEST if case.name == "last_block_of_all_threads")
    checks, result = corpus.checked(codes["sound.hip"], case)
    assert not checks.records() and not result.gave_up and result.instructions == int(result.executed.sum())
    assert np.all(result.lanes <= 64 * result.executed)
