"""Classes of bugs: found from the evidence of a failure, with a repair in the kernel's language."""

import pytest

from kernel_scientist.records.evaluation import CompileReport, Evaluation
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.scientist.context.bug_taxonomy import BUGS, classify

MEMORY = "memory: {} of lock_ptr in gemm_kernel, line 41 (while tl.atomic_cas(lock, 0, 1) == 1:): {}"


@pytest.mark.parametrize(
    ("verdict", "reason", "bug"),
    [
        (Verdict.INCORRECT, MEMORY.format("uninitialised read", "reads what nothing has written"), "B.2 uninitialised"),
        (
            Verdict.INCORRECT,
            MEMORY.format("write race", "programs of one launch use one address"),
            "C.1 wrong logic: a race",
        ),
        (Verdict.INCORRECT, MEMORY.format("out-of-bounds read", "reads outside the tensor"), "B.3 wrong boundary"),
        (Verdict.INCORRECT, "3 of 4096 elements differ", "C.4 isolated"),
        (Verdict.INCORRECT, "3000 of 4096 elements differ", "C.1 wrong logic"),
        (Verdict.CRASHED, "NameError: name 'BLOCK' is not defined", "B.2 missing"),
        (Verdict.TIMEOUT, "its call took longer than 10 s", "B.5 hang"),
    ],
)
def test_the_class_follows_the_evidence(verdict: Verdict, reason: str, bug: str) -> None:
    found = classify(Evaluation(verdict=verdict, reason=reason))
    assert f"{found.id} {found.name}".startswith(bug)


def test_an_uninitialised_lock_is_to_be_zeroed() -> None:
    evaluation = Evaluation(verdict=Verdict.INCORRECT, reason=MEMORY.format("uninitialised read", "never written"))
    assert "torch.zeros" in classify(evaluation).hint("triton") and "lock" in classify(evaluation).hint("triton")


@pytest.mark.parametrize("language", ["triton", "hip", "cuda"])
def test_no_repair_speaks_of_another_language(language: str) -> None:
    for bug in BUGS:
        for foreign in ('extern "C"', "<omp.h>", "each entry of TUNABLES becomes a macro"):
            assert foreign not in bug.hint(language), bug.id
    assert "<omp.h>" in next(b for b in BUGS if b.id == "A.3").hint("cpp")


def test_an_unknown_name_in_triton_is_to_be_passed_to_the_kernel() -> None:
    report = CompileReport(ok=False, compiler="triton", log="NameError('BLOCK is not defined')")
    found = classify(Evaluation(verdict=Verdict.COMPILE_ERROR, reason="it does not compile", compile=report))
    assert found.id == "B.2" and "tl.constexpr" in found.hint("triton")
