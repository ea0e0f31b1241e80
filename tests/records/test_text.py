"""Counts in messages."""

from kernel_scientist.records.text import number_of
from tests import results


def test_a_count_has_the_right_number() -> None:
    assert [number_of(count, "kernel") for count in (0, 1, 2, 1234567)] == [
        "0 kernels",
        "1 kernel",
        "2 kernels",
        "1234567 kernels",
    ]


def test_a_campaign_of_one_kernel_is_told_so() -> None:
    from kernel_scientist.report import tables

    first = next(tables.campaign(results.campaign(campaign="c", kernels=1, stopped="nothing more to try")))
    assert first == "campaign c: 1 kernel, nothing more to try"
