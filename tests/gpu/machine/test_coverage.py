"""No row of the machine's table is without a test, and the instructions that it lacks are known by name."""

from kernel_scientist.gpu.machine.program import REFUSED, base_name
from tests.gpu.machine import (
    harness,
    test_atomics,
    test_carries,
    test_compares,
    test_control,
    test_divisions,
    test_fp8,
    test_lane_exchange,
    test_lds,
    test_literals,
    test_matrix,
    test_packed,
    test_scalar_memory,
    test_scalars,
    test_vector_memory,
    test_vectors,
)


def texts() -> list[str]:
    """Everything that the tests of this folder run."""
    vectors = test_vectors.instances(test_vectors.table(), range(1))
    found = [one.text() for one in vectors]
    for module in (
        test_atomics,
        test_carries,
        test_compares,
        test_lane_exchange,
        test_lds,
        test_packed,
        test_scalar_memory,
        test_scalars,
    ):
        found += [one[0].text for one in module.cases()]
    found += [one[0].text for one in (*test_vector_memory.load_cases(), *test_vector_memory.store_cases())]
    found += [*test_vector_memory.scratch_texts(), *test_vector_memory.TO_LDS, *test_vector_memory.scratch_stores()]
    found += [
        *test_control.NOTHING,
        *test_control.BRANCHES,
        *test_control.CALLS,
        *test_control.HARDWARE,
        *test_control.REFUSALS,
    ]
    found += [test_divisions.divide(kind) for kind in ("f32", "f64")] + [
        *test_divisions.PARTS,
        *test_fp8.cases(),
        *test_literals.TEXTS,
    ]
    return found + [one.text for one in test_matrix.runs()]


def test_every_row_has_a_test() -> None:
    tested = {base_name(line.split()[0]) for text in texts() for line in text.split("\n") if line}
    rows = {row.partition("@")[0] for row in harness.machine().rows}
    assert rows - tested - {REFUSED, "s_endpgm"} == set()
