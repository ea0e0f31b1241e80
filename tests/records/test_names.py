"""Names of texts: distinct, of allowed signs and length, and readable back."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel_scientist.records import text
from kernel_scientist.records.names import FILE, MLFLOW, PREFECT, Naming

NAMINGS = {"file": FILE, "mlflow": MLFLOW, "prefect": PREFECT}
tricky = st.text(alphabet="_-.x2c0z/ü,/: A\ud800", max_size=12)
texts = st.one_of(
    st.text(max_size=40), tricky, st.text(min_size=100, max_size=300), tricky.map(lambda t: "a" * 240 + t)
)
namings = pytest.mark.parametrize("naming", NAMINGS.values(), ids=NAMINGS)


@namings
@given(one=texts, other=texts)
@example(one="a,b", other="a:b")
@example(one="a_x2c_b", other="a,b")
@example(one="_x,", other="_x_x2c_")
@example(one="a/b", other="a.x2f.b")
@example(one="", other="_x_")
@example(one="a" * 299 + ",", other="a" * 299 + ":")
def test_different_texts_have_different_names(naming: Naming, one: str, other: str) -> None:
    names = naming.encode(one), naming.encode(other)
    assert (names[0] == names[1]) == (one == other)
    for name in names:
        assert (
            re.fullmatch(f"[{naming.allowed}{'/' * naming.path}]+", name)
            and len(name) <= naming.longest
            and (naming is MLFLOW or name[0] != ".")
        )


@namings
@given(value=texts)
@example(value="..")
@example(value="_x2c_,_x41")
@example(value="-x2d--x-")
def test_a_name_that_was_not_cut_can_be_read_back(naming: Naming, value: str) -> None:
    name = naming.encode(value)
    if len(name) < naming.longest and (name == value or not naming.one_way):
        assert naming.decode(name) == value


@namings
def test_a_name_that_was_cut_says_so(naming: Naming) -> None:
    with pytest.raises(ValueError, match="does not stand in it"):
        naming.decode(naming.encode("a" * 300))


@given(
    st.text(alphabet="abcxyz0189_.", min_size=1, max_size=60).filter(
        lambda t: t[0] != "." and "_x" not in t and ".x" not in t
    )
)
def test_usual_names_stay_as_they_are(value: str) -> None:
    assert FILE.encode(value) == MLFLOW.encode(value) == value


def test_an_artifact_of_prefect_is_easy_to_find() -> None:
    name = PREFECT.encode("leaderboard-level1-1_Square-größe-cpu")
    assert re.fullmatch("leaderboard-level1-1-square-gr-e-cpu-xz[0-9a-f]{16}-", name)
    assert PREFECT.encode("leaderboard-bf16-gemm-cpu") == "leaderboard-bf16-gemm-cpu"


@given(one=texts)
def test_a_case_has_the_same_name_in_a_metric(one: str) -> None:
    name = f"time_us/{FILE.encode(one)}"
    assert MLFLOW.encode(name) == name or ".x" in one


def test_names_are_those_that_mlflow_and_prefect_take() -> None:
    from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH, _validate_metric_name, _validate_model_name
    from prefect.client.schemas.actions import ArtifactCreate

    for value in ("time_us/größe,1:2", "a//b", "x" * 400, "../..", "", " ", "a/./b"):
        _validate_metric_name(MLFLOW.encode(value))
        _validate_model_name(FILE.encode(value))
        ArtifactCreate(key=PREFECT.encode(value))
    assert MLFLOW.longest <= MAX_ENTITY_KEY_LENGTH


@given(tricky)
def test_valid_text_can_be_stored(value: str) -> None:
    found = text.valid(value)
    found.encode()
    assert "\0" not in found and len(found) == len(value)
    assert text.valid("größe \U0001f600") == "größe \U0001f600"
