"""Terminal output of JSON values."""

import re

import pytest

from kernel_scientist.report import terminal


def test_records_with_many_fields_become_columns(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"case": f"case{i}", **{f"field{j}": 100 * i + j for j in range(15)}} for i in range(8)]
    terminal.show({"clocks": records, "cases": [{"case": "a", "x": 1.0}]})
    lines = [line for line in capsys.readouterr().out.splitlines() if "field14" in line]
    assert [re.findall(r"\d+", line)[1:] for line in lines] == [
        [str(100 * i + 14) for i in range(6)],
        ["614", "714"],
    ]
