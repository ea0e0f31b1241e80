"""How two statements are compared."""

import pytest

from kernel_scientist.evidence.findings import Findings


@pytest.mark.parametrize(
    ("stated", "recomputed", "differences"),
    [
        (2097153, 2097152, 1),
        (2097153.0, 2097152.0, 0),
        (2097153, 2097152.0, 0),
        (10**400, 10**400, 0),
        (10**400, 10**400 + 1, 1),
        (10**400, 1.5, 1),
        ({"a": [1, 2.0]}, {"a": [1, 2.0 + 1e-9]}, 0),
    ],
)
def test_whole_numbers_are_compared_exactly_and_fractions_to_a_millionth(
    stated: object, recomputed: object, differences: int
) -> None:
    findings = Findings()
    findings.same("a statement", stated, recomputed)
    assert len(findings.differences) == differences


def test_what_is_unchecked_is_listed_once() -> None:
    findings = Findings()
    for _ in range(2):
        findings.open("the verdict", "no kernel is executed")
    assert [one.what for one in findings.unchecked] == ["the verdict"]
