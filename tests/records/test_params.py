"""params.yaml: every parameter has a default and a comment, an unknown one is an error that names it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flows.form import Form
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import ROLES, Llm, Params, load, parse
from tests.conftest import ROOT

FILE = ROOT / "params.yaml"


def test_the_file_holds_every_parameter_with_its_default_and_a_comment() -> None:
    given, defaults = yaml.safe_load(FILE.read_text()), Params().model_dump(by_alias=True)
    assert load(FILE) == Params()
    assert {name: set(part) for name, part in given.items() if isinstance(part, dict)} == {
        name: set(part) for name, part in defaults.items() if isinstance(part, dict)
    }
    knobs = [line for line in FILE.read_text().splitlines() if ":" in line and not line.lstrip().startswith("#")]
    bare = [k for k in knobs if "#" not in k and not k.rstrip().endswith(":") and "model: playbook" not in k]
    assert bare == []


def test_overrides_are_yaml_and_typed() -> None:
    params = load(
        FILE, ["search.generations=10", "harness.confidence=0.9", "tracking.register=false", "problem=identity"]
    )
    assert params.search.generations == 10 and params.harness.confidence == 0.9
    assert params.tracking.register_champion is False and params.problem == "identity"


def test_a_mapping_changes_only_the_keys_that_it_names(tmp_path: Path) -> None:
    params = load(FILE, ["llm.writer={model: openai/x, price: {input_usd: 1, output_usd: 2}}"])
    assert params.llm.writer.model == "openai/x" and params.llm.writer.temperature == 0.1
    assert params.llm.designer == Params().llm.designer
    cheaper = [
        "llm={writer: {model: openai/x, price: {input_usd: 1, output_usd: 2}}}",
        "llm.writer.price={input_usd: 0}",
    ]
    price = load(FILE, cheaper).llm.writer.price
    assert price is not None and (price.input_usd, price.output_usd) == (0, 2)
    assert load(FILE, ["search={generations: 9}"]).search == Params().search.model_copy(update={"generations": 9})
    assert load(FILE, ["llm.writer={temperature: null}"]).llm.writer.temperature is None
    assert (
        load(FILE, ["llm.writer={price: {input_usd: 1, output_usd: 2}}", "llm.writer.price=null"]).llm.writer.price
        is None
    )
    own = tmp_path / "own.yaml"
    own.write_text("llm:\n  writer: {model: openai/x}\n  designer: {temperature: null}\n")
    assert load(own).llm.writer.temperature == 0.1 and load(own).llm.selector.temperature == 0.3
    assert load(own).llm.designer.temperature is None


def test_the_flows_form_leaves_what_it_does_not_name() -> None:
    given = {"llm": {"writer": {"model": "openai/x"}}, "budget": {"usd": None}, "search": {"from": "seeds"}}
    form = Form.model_validate(given)
    params = load(FILE, form.overrides(["search.generations=9"]))
    assert params.llm.writer.temperature == 0.1 and params.llm.writer.model == "openai/x"
    assert params.search.from_ == "seeds" and Params().search.from_ == "champion"
    assert params.budget.usd is None and params.budget.kernels == Params().budget.kernels


@given(st.dictionaries(st.sampled_from(["generations", "experiments", "seed", "prescreen"]), st.integers(1, 5)))
def test_a_mapping_is_its_keys_one_by_one(values: dict[str, int]) -> None:
    whole = [f"search={json.dumps(values)}"]
    assert load(FILE, whole) == load(FILE, [f"search.{key}={value}" for key, value in values.items()])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("search.generation=1", "unknown parameter 'search.generation'; valid here: from, strategy, generations"),
        ("nonsense=1", "unknown parameter 'nonsense'"),
        ("llm.writer.colour=red", "unknown parameter 'llm.writer.colour'; valid here: model"),
        ("llm.writer.mix=[{colour: red}]", "unknown parameter 'llm.writer.mix.0.colour'; valid here: model"),
        ("llm.writer.mix=[gpt-4o]", "'llm.writer': `mix` is for models"),
        ("search.generations=many", "'search.generations'"),
        ("search.generations=-1", "'search.generations'"),
        ("problem.x=1", "'problem' is a value"),
        ("search.generations", "expected KEY=VALUE"),
        ("=3", "expected KEY=VALUE"),
        ("harness.sandbox=maybe", "'harness.sandbox'"),
        ("search.generations=[", "not YAML"),
        ("harness.call_timeout_s=.inf", "'harness.call_timeout_s': Input should be a finite number, got inf"),
        ("harness.margin=.nan", "'harness.margin'"),
        ("budget.usd=.inf", "'budget.usd'"),
        ("llm.writer.price={input_usd: .inf, output_usd: 1}", "'llm.writer.price.input_usd'"),
    ],
)
def test_a_wrong_override_is_named(override: str, message: str) -> None:
    with pytest.raises(SetupError) as error:
        load(FILE, [override])
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        (["search.seed=1", "search.seed=x"], {}, "--set search.seed=x: parameter 'search.seed'"),
        (
            ["target=gpu"],
            {},
            "--set target=gpu: parameter 'target': expected auto, cpu, cuda, rocm, model: with a machine",
        ),
        (["target=cpu"], {"target": "gpu"}, "--target gpu: parameter 'target'"),
        (["llm.writer={colour: red}"], {}, "--set llm.writer={colour: red}: unknown parameter 'llm.writer.colour'"),
        (["nonsense.x=1"], {}, "--set nonsense.x=1: unknown parameter 'nonsense'"),
        (["search.seed=1"], {"problem": "12"}, ""),
    ],
)
def test_the_option_that_is_wrong_is_named(overrides: list[str], options: dict[str, str], message: str) -> None:
    if not message:
        assert load(FILE, overrides, options).problem == "12"
        return
    with pytest.raises(SetupError) as error:
        load(FILE, overrides, options)
    assert str(error.value).startswith(message)


def test_the_file_is_named_for_what_no_option_set(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("target: gpu\n")
    with pytest.raises(SetupError, match=rf"^{path}: parameter 'target'"):
        load(path, ["search.seed=1"], {"problem": "identity"})


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [", ""])
def test_a_file_that_is_no_mapping_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(SetupError, match=r"params\.yaml"):
        load(path)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(b"problem: \xff\xfe\x80")
    with pytest.raises(SetupError, match=r"cannot read the parameters in .*params\.yaml"):
        load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"absent\.yaml"):
        load(tmp_path / "absent.yaml")


def test_params_survive_their_own_dump() -> None:
    values: dict[str, Any] = Params().model_dump(by_alias=True)
    assert parse(values) == Params()


def test_more_calls_are_in_flight_with_models_than_with_the_playbook() -> None:
    assert Llm().calls_in_flight(ROLES) == 2 and Llm(concurrency=5).calls_in_flight(ROLES) == 5
    by_model = Llm.model_validate({"writer": {"model": "openai/x"}})
    assert by_model.calls_in_flight(ROLES) == 8 and by_model.calls_in_flight(["distiller"]) == 2
