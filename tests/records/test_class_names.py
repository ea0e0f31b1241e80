"""One class name, one meaning."""

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
