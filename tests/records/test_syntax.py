"""Several threads parse Python files at the same time."""

import ast
import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernel_scientist.records.syntax import parsed

TEXT = Path(ast.__file__).read_text()


@pytest.fixture
def _busy() -> Iterator[None]:
    """Collections that run Python code, often, and threads that give way at every chance."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()

    def seen(*_: object) -> int:
        return sum(range(50))

    gc.callbacks.append(seen)
    gc.set_threshold(50)
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)
    gc.callbacks.remove(seen)


@pytest.mark.usefixtures("_busy")
def test_threads_parse_at_the_same_time() -> None:
    """Python 3.11 alone ends such a call with SystemError: AST constructor recursion depth mismatch."""

    def deep(depth: int) -> ast.Module:
        return deep(depth - 1) if depth else parsed(TEXT)

    with ThreadPoolExecutor(3) as threads:
        trees = list(threads.map(deep, [0, 10, 20] * 4))
    assert len({len(tree.body) for tree in trees}) == 1
