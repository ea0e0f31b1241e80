"""Records go through JSON unharmed and refuse what cannot be."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernel_scientist.records.base import read_text
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Evaluation, Timing, geomean
from kernel_scientist.records.kernel import Case, Experiment, Kernel, Verdict, digest

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
texts = st.text(max_size=30)


@st.composite
def experiments(draw: st.DrawFn) -> Experiment:
    low, high = sorted((draw(finite), draw(finite)))
    return Experiment(
        title=draw(texts),
        description=draw(texts),
        rubric=tuple(draw(st.lists(texts, max_size=3))),
        uplift=(low, high),
        innovation=draw(st.integers(0, 100)),
    )


@given(experiments(), texts, st.sampled_from(["cpp", "triton"]))
def test_kernels_survive_json(experiment: Experiment, source: str, language: str) -> None:
    kernel = Kernel(name="k00001", language=language, source=source, experiment=experiment)  # type: ignore[arg-type]
    again = Kernel.model_validate_json(kernel.model_dump_json())
    assert again == kernel
    assert again.digest == digest(source)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_geomean_scales(values: list[float], factor: float) -> None:
    assert geomean([v * factor for v in values]) == pytest.approx(geomean(values) * factor, rel=1e-9)
    assert min(values) * (1 - 1e-9) <= geomean(values) <= max(values) * (1 + 1e-9)


def test_only_an_ok_kernel_has_times() -> None:
    timing = Timing(case="c", time_us=1.0, interval_us=(1.0, 1.0))
    with pytest.raises(ValidationError, match="only an ok kernel has a time"):
        Evaluation(verdict=Verdict.INCORRECT, reason="wrong", timings=(timing,))
    with pytest.raises(ValidationError, match="without a reason"):
        Evaluation(verdict=Verdict.CRASHED)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_time_is_nan_or_infinite(bad: float) -> None:
    with pytest.raises(ValidationError):
        Timing(case="c", time_us=bad, interval_us=(1.0, 1.0))


def test_records_are_closed_and_frozen() -> None:
    with pytest.raises(ValidationError):
        Case.model_validate({"sizes": {"m": 1}, "seed": 1, "extra": 2})
    case = Case(sizes={"m": 64, "n": 32}, seed=1)
    assert case.name == "m64-n32"
    with pytest.raises(ValidationError):
        case.seed = 2  # type: ignore[misc]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "kernel.py"


@given(st.one_of(st.binary(max_size=40), texts.map(str.encode)))
def test_a_file_is_its_text_or_a_sentence_names_it(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    try:
        text = read_text(file, "kernel ")
    except SetupError as error:
        assert str(error).startswith(f"cannot read kernel {file}: it is ")
        try:
            found = content.decode()
        except UnicodeDecodeError:
            assert "it is not text (byte " in str(error)
        else:
            assert "\0" in found or not found.lstrip("\ufeff").strip()
    else:
        assert text.strip() and "\0" not in text
        assert text == content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
