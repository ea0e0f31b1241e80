"""No row of the machine's table is without a test, and the instructions that it lacks are known by name."""

from kernel_scientist.gpu.machine import lacking
from kernel_scientist.gpu.machine.program import REFUSED, base_name
from tests.gpu.machine import (
    harness,
    test_atomics,
    test_carries,
    test_compares,
    test_control,
    test_divisions,
    test_fp8,
    test_indexed,
    test_lane_exchange,
    test_lds,
    test_literals,
    test_matrix,
    test_newer,
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
        *test_control.TRAPS,
        *test_control.REFUSALS,
    ]
    found += [test_divisions.divide(kind) for kind in ("f32", "f64")] + [
        *test_divisions.PARTS,
        *test_fp8.cases(),
        *test_literals.TEXTS,
        *test_newer.TEXTS,
        *test_indexed.TEXTS,
    ]
    return [*found, *test_matrix.NAMES, *test_matrix.OLDER]


def test_every_row_has_a_test() -> None:
    tested = {base_name(line.split()[0]) for text in texts() for line in text.split("\n") if line}
    assert harness.machine().rows.keys() - tested - {REFUSED, "s_endpgm"} == set()


def test_what_is_refused_is_not_in_the_table() -> None:
    refused = [name for names in lacking.REFUSED.values() for name in names]
    assert len(refused) == len(set(refused))
    assert not set(refused) & harness.machine().rows.keys()
    assert lacking.reason("ds_append") == "no compiler emits it for compute"
    assert lacking.reason("v_nonsense") == "the machine does not know it"
