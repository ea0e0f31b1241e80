"""A key that is twice in a YAML text is refused with both lines, wherever a file or an option comes from."""

import shutil
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.records import params
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.yaml_text import DoubledKeyError, parse_yaml, read_mapping
from kernel_scientist.scientist import knowledge
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", "key 'a' is there twice, in lines 1 and 3"),
        ("a:\n  - {b: 1}\n  - c:\n      d: 1\n      e: 2\n      d: 3\n", "key 'd' is there twice, in lines 4 and 6"),
        ("{a: 1, a: 2}", "key 'a' is there twice, in line 1: remove one"),
    ],
)
def test_both_lines_are_named(text: str, told: str) -> None:
    with pytest.raises(DoubledKeyError, match=told):
        parse_yaml(text)


def test_merged_keys_may_be_overridden() -> None:
    text = "p: {b: &b {<<: &a {x: 0, y: 1}, x: 2}}\nc: {<<: *b, x: 3}\nd: *b\n'1': a\n1: b\n"
    value = {"p": {"b": {"x": 2, "y": 1}}, "c": {"x": 3, "y": 1}, "d": {"x": 2, "y": 1}, "1": "a", 1: "b"}
    assert parse_yaml(text) == value and parse_yaml("") is None


def test_parameters_are_refused(tmp_path: Path) -> None:
    file, text = tmp_path / "params.yaml", (ROOT / "params.yaml").read_text()
    line = text.count("\n") + 1
    file.write_text(f"{text}search:\n  generations: 2\n")
    first = next(number for number, one in enumerate(text.splitlines(), 1) if one.startswith("search:"))
    with pytest.raises(SetupError, match=rf"params\.yaml: key 'search' is there twice, in lines {first} and {line}"):
        params.load(file)
    with pytest.raises(SetupError, match=r"--set .*key 'usd' is there twice"):
        params.load(ROOT / "params.yaml", ["budget={usd: 1, usd: 2}"])


@pytest.mark.parametrize("name", ["task.yml", "lab.yml"])
def test_a_problem_is_refused(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(ROOT / "problems" / "identity", tmp_path / "identity")
    key = next(iter(read_mapping(folder / name)))
    with (folder / name).open("a") as file:
        file.write(f"\n{key}: 1\n")
    with pytest.raises(SetupError, match=rf"{name}: key '{key}' is there twice, in lines \d+ and \d+"):
        problems.load(folder)


def test_a_document_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("---\ntitle: a\ntitle: b\n---\ntext\n")
    with pytest.raises(SetupError, match=r"notes\.md.*key 'title' is there twice, in lines 2 and 3"):
        knowledge.load([tmp_path / "notes.md"])
