"""The table of verdicts in docs/evaluation.md names every module that decides one."""

import re

import pytest

from kernel_scientist.records.kernel import Verdict
from tests.conftest import ROOT

DECIDES = r"(?:KernelFailure\(|verdict=|\"verdict\": |verdict = (?:.* else )?)Verdict\.{name}\b"
ELSEWHERE = ("campaign/tuning/", "campaign/kernelbot/", "campaign/targets/", "campaign/bars.py")
"""What tunes, stands beside a champion or takes a leaderboard's answer: none of a kernel that is evaluated here."""


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.OK])
def test_the_table_names_the_modules_that_decide(verdict: Verdict) -> None:
    table = (ROOT / "docs/evaluation.md").read_text()
    (row,) = re.findall(rf"^\| `{verdict.value}` \|.*$", table, re.MULTILINE)
    named = re.findall(r"`([\w/]+(?:\.py|/))`", row.rpartition(" | ")[2])
    pattern = re.compile(DECIDES.replace("{name}", verdict.name))
    package = ROOT / "kernel_scientist"
    deciding = [str(f.relative_to(package)) for f in package.rglob("*.py") if pattern.search(f.read_text())]
    found = [file for file in deciding if not file.startswith(ELSEWHERE)]
    assert found, "somewhere it is decided"
    assert [file for file in found if not file.startswith(tuple(named))] == []
    assert all((package / name).exists() for name in named)
