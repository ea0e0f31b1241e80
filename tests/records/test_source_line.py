"""Where a kernel spends its time by source line, as text."""

from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.records import source_line
from kernel_scientist.records.source_line import SourceLine

SHARES = st.floats(0, 1)
LINES = st.lists(
    st.builds(
        SourceLine,
        kernel=st.just("k"),
        line=st.integers(0, 99_999),
        text=st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=200).map(str.strip),
        callers=st.lists(st.integers(1, 99_999), max_size=5).map(tuple),
        share=SHARES,
        cycles=st.floats(0, 1e9),
        causes=st.dictionaries(st.sampled_from(["vector", "lds", "wait"]), SHARES),
        waits_for=st.lists(st.integers(1, 99_999), max_size=5).map(tuple),
        limit=st.just("lds"),
        of_limit=SHARES,
        barriers=st.floats(0, 1e6),
    ),
    min_size=1,
    max_size=12,
)


@given(LINES)
def test_every_line_is_a_row_under_the_header_and_its_text_stands_in_one_column(lines: list[SourceLine]) -> None:
    header, *rows = source_line.table(lines)
    column = header.index("source")
    assert len(rows) == len(lines)
    for row, one in zip(rows, lines, strict=True):
        assert row[column:].startswith(one.text[: source_line.WIDEST].rstrip())
        assert row.split()[0] == (str(one.line) if one.line else "?")


def line(**changes: object) -> SourceLine:
    given = {"kernel": "k", "line": 44, "text": "a", "share": 0.45, "causes": {"wait": 0.42, "vector": 0.03}}
    return SourceLine.model_validate({**given, **changes})


def test_what_limits_the_launch_stands_before_what_a_program_waits_for_by_itself() -> None:
    one = line(limit="vector", of_limit=0.07, waits_for=(43,), barriers=2, callers=(60, 61))
    header, row = source_line.table([one])
    assert header.split()[:4] == ["line", "of", "vector", "alone"] and row.split()[:3] == ["44", "7%", "45%"]
    assert "wait 42% for line 43, vector 3%, 2 barriers" in row and row.endswith("a  (called from line 60, 61)")
    assert "`of vector`" in source_line.meaning([one]) and "predicted, not measured" in source_line.meaning([one])


def test_a_launch_that_latency_limits_has_no_share_besides() -> None:
    one = line(limit="latency", of_limit=0.45)
    assert source_line.table([one])[0].split()[:3] == ["line", "alone", "cycles"]
    assert "`of" not in source_line.meaning([one])


def test_without_lines_there_is_no_table() -> None:
    assert not source_line.table([])
