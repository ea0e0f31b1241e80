"""Numbers, tables, lines and files as results show them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.records import factors
from kernel_scientist.records.errors import SetupError
from kernel_scientist.report import output
from kernel_scientist.report.output import Table


@given(st.floats(1e-9, 1e12))
def test_numbers_keep_five_digits_without_an_exponent_above_one(value: float) -> None:
    printed = output.number(value)
    assert float(printed) == pytest.approx(value, rel=5e-5) and ("e" not in printed or value < 1e-4)


def test_a_number_that_is_rounded_up_gets_no_exponent() -> None:
    assert output.number(99999.7) == "100000" and factors.factor(9999.96, (9999.0, 10001.0)).startswith("10000x")


def test_a_column_that_the_first_record_lacks_is_shown() -> None:
    (table,) = output.parts({"cases": [{"case": "a", "k1": 1.0}, {"case": "b", "k2": 2.0}]})
    assert isinstance(table, Table) and [*table.columns] == ["case", "k1", "k2"]


def test_records_become_tables_and_empty_values_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"case": "a [16]", "time_us": 57.08412, "speedup": 1.25}, {"case": "b", "time_us": 3.0, "speedup": None}]
    output.say(output.parts({"cases": records, "labels": [], "machine": {"cores": 2, "gpu": None}}))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["case", "time_us", "speedup"],
        ["a", "[16]", "57.084", "1.25"],
        ["b", "3"],
        ["machine:", "cores", "2"],
    ]


def test_a_page_shows_the_same_cells_and_escapes_them() -> None:
    table = Table({"kernel": "kernel", "us": "us"}, [{"kernel": "<k1>", "us": 1 / 3, "style": "champion"}], "final")
    html = output.html("comparison.html", shown=[table], curves="", by_model=False)
    assert (
        '<tr class="champion"><td>&lt;k1&gt;</td><td class="n">0.33333</td></tr>' in html and "final</caption>" in html
    )


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"cannot write .*file/report\.html"):
        output.write(tmp_path / "file" / "report.html", "")
