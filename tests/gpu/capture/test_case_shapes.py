"""A case's inputs are described without their values, once for all threads and processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.gpu.capture import case_shapes

PROBLEM = problems.find("identity")
CASE = PROBLEM.profile("full").benchmarks[0]


def test_threads_describe_a_case_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: case_shapes.described(PROBLEM, CASE), range(16)))
    first, second = found[0]["items"]
    assert first == second == {"kind": "tensor", "dtype": "float16", "shape": [1024], "stride": [1], "first": 0}
    assert all(one == found[0] for one in found) and len(list(tmp_path.rglob("*.json"))) == 1


def test_a_kept_description_is_that_of_the_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SCIENTIST_CACHE", str(tmp_path))
    other = CASE.model_copy(update={"sizes": {"size": 77}})
    shapes = [case_shapes.described(PROBLEM, case)["items"][0]["shape"] for case in (CASE, other, CASE)]
    assert shapes == [[1024], [77], [1024]]
