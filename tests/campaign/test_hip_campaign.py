"""A campaign of HIP kernels for the MI300X, which is not here: scripted model over HTTP, real compiler and machine."""

import json
import re
from pathlib import Path

import pytest

from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.population.entry import score
from kernel_scientist.records.kernel import Verdict
from tests.conftest import Cli
from tests.scientist.model_server import ModelServer
from tests.scientist.scripted_campaign import settings, stored
from tests.scientist.scripted_model import ScriptedModel, block_after

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(isinstance(hip.find(), str), reason=str(hip.find())),
]
GUARDED = "if (i < size) out[i] = x[i];"
EXCHANGE = (
    "__shared__ unsigned short part[LANES]; part[threadIdx.x] = i < size ? x[i] : 0; "
    "if (i < size) out[i] = part[threadIdx.x ^ 64];"
)
FAULTS = {
    "compile error": f"this is no C++; {GUARDED}",
    "wrong": "if (i < size) out[i] = x[i] ^ (i == 3);",
    "bounds": "if (i < size) out[i] = x[i + 1];",
    "race": EXCHANGE,
    "unset": "unsigned short kept; if (i > 0) kept = x[i < size ? i : 0]; if (i < size && kept < 40000) out[i] = x[i];",
    "endless": f"volatile int* flag = (volatile int*)out; {GUARDED} while (size > 0 && flag[0] == flag[0]) ;",
}
KINDS = ("good", "compile error", "wrong", "bounds", "race", "good", "unset", "endless", "good", "good", "race", "good")


class HipModel(ScriptedModel):
    """Writes HIP kernels; repairs what the repairer's prompt names with its line."""

    def __init__(self) -> None:
        super().__init__(KINDS)
        self.repairs: list[str] = []

    def select(self, prompt: str) -> str:
        """Take the last kernel that is right, and the first."""
        right = re.findall(r"^\| *(k\d+) *\|.*\| *ok\b", prompt, re.M)
        return json.dumps({"base": right[-1], "reference": right[0], "rationale": "the last, and the first"})

    def write(self, prompt: str) -> str:
        """Change the seed's loop as the experiment's title says; a good kernel is a faster one."""
        number, kind = self._plan(prompt)
        base = block_after(prompt, "## The base: ")
        source = base.replace(
            "constexpr int LANES = ", f"constexpr int plan_{number} = {number};\nconstexpr int LANES = "
        )
        assert GUARDED in source and source != base
        return self._reply(source.replace(GUARDED, FAULTS.get(kind, GUARDED)), f"carried out plan {number}", kind)

    def repair(self, prompt: str) -> str:
        """Put the right line back."""
        self.repairs.append(prompt)
        _, kind = self._plan(prompt)
        source = block_after(prompt, "## The kernel that failed")
        source = source.replace(FAULTS[kind], GUARDED)
        return "CRITIQUE: something was off\n\n" + self._reply(source, "repaired", kind)


def test_twelve_kernels_from_the_naive_one(lab: Path, cli_here: Cli, prefect_api: str) -> None:
    script = HipModel()
    server = ModelServer(script)
    more = ("language=hip", "target=model:mi300x", "search.generations=4", "harness.call_timeout_s=60")
    more += ("harness.import_timeout_s=60", "tuning.predictions=3")
    try:
        arguments = settings(server, *more)
        done = cli_here("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
    finally:
        server.close()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    parent, _, store = stored(lab, target="model-mi300x")
    population = store.population(parent)
    kernels = [trial for trial in population if trial.kernel.base]
    assert len(kernels) >= 12 and found["kernels"] == len(population) >= 13

    ok = [trial for trial in population if trial.evaluation.verdict is Verdict.OK]
    assert len(ok) >= 10, [(t.kernel.title, t.evaluation.verdict, t.evaluation.reason) for t in population]
    for trial in ok:
        assert "for races and uninitialised reads" in trial.evaluation.coverage
        assert len(trial.evaluation.predictions) == 7 and trial.evaluation.by_model
    best = population.best()
    assert best is not None and best.kernel.name == found["champion"] and score(best) == max(map(score, ok))

    told = "\n".join(script.repairs)
    for words in ("this is no C", "out-of-bounds read of input 0", "write race of LDS", "differ"):
        assert words in told, words
    failed = next(
        one for one in (block_after(p, "## The kernel that failed") for p in script.repairs) if EXCHANGE in one
    )
    line = next(n for n, text in enumerate(failed.splitlines(), 1) if EXCHANGE in text)
    assert re.search(rf"write race of LDS in copy_kernel, line {line} ", told)

    champion = (lab / "champions/identity/hip-model-mi300x/kernel.py").read_text()
    assert champion.startswith("#!POPCORN leaderboard amd-identity\n#!POPCORN gpu MI300\n") and GUARDED in champion
