"""One class name, one meaning; one name of a test file, one file."""

import ast
from collections import defaultdict

from tests.conftest import ROOT

FOLDERS = ("kernel_scientist", "flows", "tasks", "benchmarks")


def test_no_class_name_is_defined_twice() -> None:
    """Private classes, and those inside of classes and functions, count like all others."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_test_files_have_one_name() -> None:
    """The folders of tests are no packages: pytest imports a file by its name alone, and refuses a second one."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert [name for name in set(names) if names.count(name) > 1] == []
