"""YAML texts: the one loader of files and parameters. A key that is there twice is an error, with both lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from kernel_scientist.records.base import read_text
from kernel_scientist.records.errors import SetupError

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, where PyYAML has it, is ten times as fast."""


class DoubledKeyError(yaml.YAMLError):
    """A mapping has one key twice; the earlier value would be lost."""


def parse_yaml(text: str, kind: Any = LOADER) -> object:
    """Return the value of a YAML text, read by this kind of loader. Raises yaml.YAMLError."""
    loader = kind(text)
    try:
        if (root := loader.get_single_node()) is None:
            return None
        for mapping in _mappings(root):
            _require_single_keys(mapping)
        return loader.construct_document(root)
    finally:
        loader.dispose()


def read_mapping(path: Path, what: str = "") -> dict[str, Any]:
    """Return a YAML file's mapping. Raises SetupError if it cannot be read or is not a mapping.

    `what`: name of the content in messages, such as `the parameters in `.
    """
    try:
        value = parse_yaml(read_text(path, what))
    except DoubledKeyError as error:
        raise SetupError(f"{path}: {error}") from error
    except yaml.YAMLError as error:
        raise SetupError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise SetupError(f"{path} must hold a mapping, not {type(value).__name__}")
    return cast(dict[str, Any], value)


def _mappings(root: yaml.Node) -> Iterator[yaml.MappingNode]:
    """Yield the mappings of a document, each once: several places may refer to one."""
    seen, nodes = set[int](), [root]
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            nodes += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value


def _require_single_keys(mapping: yaml.MappingNode) -> None:
    """Raise DoubledKeyError if a mapping has a key twice."""
    lines = dict[tuple[str, str], int]()
    for key, _ in mapping.value:
        if isinstance(key, yaml.ScalarNode):
            line = key.start_mark.line + 1
            if first := lines.get((key.tag, key.value)):
                where = f"line {line}" if first == line else f"lines {first} and {line}"
                raise DoubledKeyError(f"key {key.value!r} is there twice, in {where}: remove one of them")
            lines[key.tag, key.value] = line
