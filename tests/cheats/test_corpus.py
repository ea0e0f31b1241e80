"""The corpus itself: headers, coverage of the catalogue, honest kernels. The evaluator is tried elsewhere."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.evaluation.screen.screening import screen
from kernel_scientist.gpu.capture import inspect
from kernel_scientist.hardware import gpus
from kernel_scientist.records.kernel import Case, Verdict
from tests.cheats import corpus, on_a_gpu
from tests.conftest import ROOT

LAST = {"A": 14, "B": 9, "C": 12, "D": 14, "E": 6}  # E7, a weak baseline, is no kernel
CATALOGUE = [f"{family}{i + 1}" for family, last in LAST.items() for i in range(last)]
NOT_ON_A_CPU = {
    "A4": "a property of a task (its answer is constant), not of a kernel; none of the three problems is one",
    "B9": "persisting cache windows and access policies are a GPU's; C12 has the CPU's attack on the flush",
    "C1": "a CPU has no streams; threads that nobody joins (C3) are the same trick",
    "D4": "a CPU kernel's device memory is host memory: D5",
}
ON_A_GPU = {
    *("A1", "A2", "A3", "A6", "A12", "A13", "A14", "B1", "B2", "B3", "B5", "B6", "B8", "B9", "C1", "C2", "C3"),
    *("C6", "C8", "C12", "D4", "D13", "E1", "E2", "E4"),
}
"""What is another thing on a GPU; of the rest the CPU's corpus says all."""
COMPILED = ("block_by_heuristics", "keeps_the_compiled_kernel", "two_kernels")
"""Honest kernels for GPUs, few enough to be compiled in a moment."""
SMALL = {
    "identity": [{"size": n} for n in (1, 127, 4099)],
    "rmsnorm": [{"rows": 1, "cols": 128}, {"rows": 33, "cols": 577}],
    "fp8-blockwise-gemm": [{"m": 64, "n": 192, "k": 256}],
}
RUN = """
import json, sys
from pathlib import Path
from types import ModuleType
from kernel_scientist import problems
from kernel_scientist.records.kernel import Case

jobs = json.load(sys.stdin)
wrong = {}
for job in jobs:
    problem = problems.load(Path(job["folder"]))
    path = Path(job["name"] + ".py")
    path.write_text(job["source"])
    module = ModuleType(job["name"])
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(job["source"], str(path), "exec"), module.__dict__)
    for sizes in job["cases"]:
        for seed in (1, 2, 1):
            data = problem.generate(Case(sizes=sizes, seed=seed))
            pristine = problem.generate(Case(sizes=sizes, seed=seed))
            good, message = problem.check(pristine, module.custom_kernel(data))
            if not good:
                wrong[job["name"]] = f"{sizes}: {message}"
Path("wrong.json").write_text(json.dumps(wrong))
"""


@pytest.mark.parametrize(("within", "cheats", "honest"), [(corpus.FOLDER, 90, 24), (corpus.GPU, 45, 12)])
def test_headers_are_read(within: Path, cheats: int, honest: int) -> None:
    fixtures = corpus.load(within)
    assert len([f for f in fixtures if f.cheat]) >= cheats and len([f for f in fixtures if not f.cheat]) >= honest
    assert len({f.name for f in fixtures}) == len(fixtures)
    for fixture in fixtures:
        assert fixture.expect and Verdict.INFRASTRUCTURE not in fixture.expect
        assert fixture.source.isprintable() or fixture.source.isascii() or "look_alikes" in fixture.name
        if not fixture.cheat:
            assert fixture.expect == {Verdict.OK} and fixture.label is None
        elif fixture.expect == {Verdict.OK}:
            assert fixture.label or not fixture.gains, f"{fixture.name} asks nothing of the evaluator"


def test_every_cheat_is_covered() -> None:
    covered = {f.family for f in [*corpus.load(), *corpus.beyond()] if f.family}
    assert set(CATALOGUE) - covered == set(NOT_ON_A_CPU)
    assert covered <= set(CATALOGUE)


@pytest.mark.parametrize("fixture", corpus.beyond(), ids=lambda f: f.name)
def test_cheats_outside_the_threat_model_are_rejected_as_tampering(fixture: corpus.Fixture) -> None:
    assert any(finding.tampering for finding in screen(fixture.source))
    assert f"| {fixture.name} |" in (corpus.BEYOND / "README.md").read_text()


def test_what_only_a_gpu_has_is_covered_there() -> None:
    covered = {f.family for f in corpus.load(corpus.GPU) if f.family}
    assert covered == ON_A_GPU and covered <= set(CATALOGUE)
    assert set(NOT_ON_A_CPU) - covered == {"A4"}


def test_what_stops_a_gpus_cheat_is_said() -> None:
    for fixture in corpus.load(corpus.GPU):
        assert bool(on_a_gpu.stopped_by(fixture)) == bool(fixture.cheat), fixture.name
    assert on_a_gpu.PAGE.read_text() == on_a_gpu.page(), "run `python -m tests.cheats.on_a_gpu`"


@pytest.mark.parametrize(
    ("within", "work"), [(corpus.FOLDER, corpus.HONEST_WORK), (corpus.GPU, corpus.GPU_HONEST_WORK)]
)
def test_honest_work_is_honest(within: Path, work: dict[str, tuple[str, ...]]) -> None:
    fixtures = {f.name: f for f in corpus.load(within)}
    for problem, names in work.items():
        for name in names:
            assert fixtures[name].problem == problem and not fixtures[name].cheat
    assert {f.problem for f in fixtures.values()} == set(work)


@pytest.mark.parametrize("within", [corpus.FOLDER, corpus.GPU])
def test_a_file_is_named_after_its_cheat(within: Path) -> None:
    for fixture in corpus.load(within):
        if fixture.family:
            number = f"{fixture.family[0].lower()}{int(fixture.family[1:]):02d}_"
            assert fixture.name.startswith(number), fixture.name


@pytest.mark.parametrize("within", [corpus.FOLDER, corpus.GPU])
def test_no_file_names_this_machine(within: Path) -> None:
    for fixture in corpus.load(within):
        for word in (str(ROOT), str(Path.home()) + "/"):
            assert word not in fixture.source, fixture.name


def test_every_rendered_source_is_a_submission() -> None:
    fixtures = [*corpus.load(), *corpus.load(corpus.GPU), *corpus.beyond()]
    for fixture in fixtures:
        names = {name for node in ast.parse(fixture.source).body for name in _defined(node)}
        assert "custom_kernel" in names or "exec(" in fixture.source, fixture.name
        assert not re.search(r"^# (include|variant):|\$VARIANT", fixture.source, re.MULTILINE), fixture.name
    for part in [*corpus.load(), *corpus.beyond()], corpus.load(corpus.GPU):
        assert len({f.name for f in part}) == len({f.source for f in part}) == len(part)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef) else []


def test_a_file_with_variants_is_a_kernel_for_each(tmp_path: Path) -> None:
    (tmp_path / "honest").mkdir()
    file = tmp_path / "honest" / "copies.py"
    header = "# variant: one | copies once | 1\n# variant: two | copies twice | 2\n# problem: identity\n# expect: ok\n"
    file.write_text(f"{header}\n# include: copy\nTIMES = $VARIANT\n")
    one, two = corpus.load(tmp_path)
    assert (one.name, two.name) == ("one", "two") and two.source.startswith("# honest: copies twice\n# problem: ")
    assert two.source.endswith('"])\nTIMES = 2\n') and "int64_t size" in two.source
    for text, words in [("# include: lost\n", "no part is named 'lost'"), ("$VARIANT", "needs `$VARIANT` and")]:
        file.write_text(f"# honest: x\n# problem: identity\n# expect: ok\n{text}")
        with pytest.raises(corpus.HeaderError, match=f"copies.py.*{re.escape(words)}"):
            corpus.load(tmp_path)


@pytest.mark.parametrize("name", COMPILED)
def test_honest_kernels_for_gpus_compile(name: str) -> None:
    fixture = next(f for f in corpus.load(corpus.GPU) if f.name == name)
    sizes = {"size": 1000} if fixture.problem == "identity" else {"rows": 8, "cols": 1000}
    cases = (Case(sizes=sizes, seed=1),)
    found = inspect.inspect(fixture.source, problems.find(fixture.problem), cases, gpus.MI300X, 60)
    assert found.report.ok and not found.report.missed, (name, found.report.log, found.report.missed)
    assert {code.arch for code in found.report.objects} == {"gfx942"}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("# problem: identity\n# expect: ok", "no `# cheat: ...`"),
        ("# cheat: B1 x\n# expect: ok", "no `# problem: ...`"),
        ("# cheat: B1 x\n# problem: identity", "no `# expect: ...`"),
        ("# cheat: memo\n# problem: identity\n# expect: ok", "begins with no entry"),
        ("# cheat: B1 x\n# problem: sorting\n# expect: ok", "'sorting' is none of"),
        ("# cheat: B1 x\n# problem: identity\n# expect: fine", "'fine' is not a valid Verdict"),
        ("# cheat: B1 x\n# problem: identity\n# expect: ok\n# gains: no", "neither true nor false"),
        ("# cheat: B1 x\n# problem: identity\n# expect: ok\n# case: 9", "the benchmarks are 0, 1, 2"),
        ("# cheat: B1 x\n# problem: identity\n# expect: rejected\n# gains: false", "only where `ok` is expected"),
        ("# cheat: B1 x\n# cheat: B2 y\n# problem: identity\n# expect: ok", "cheat twice"),
        ("# kind: B1 x\n# problem: identity\n# expect: ok", "unknown key 'kind'"),
    ],
)
def test_a_malformed_header_is_named(header: str, words: str) -> None:
    with pytest.raises(corpus.HeaderError, match=r"k\.py") as error:
        corpus.parse(corpus.FOLDER / "kernels" / "k.py", header + "\n\npass\n")
    assert words in str(error.value)


def test_honest_kernels_are_right(tmp_path: Path) -> None:
    honest = [f for f in corpus.load() if not f.cheat]
    assert _wrong({f.name: (f, f.source) for f in honest}, tmp_path) == {}


def _wrong(jobs: dict[str, tuple[corpus.Fixture, str]], folder: Path) -> dict[str, str]:
    """Run kernels on small inputs in one plain process without the evaluator; return what was wrong, by name."""
    given = [
        {"name": name, "source": source, "folder": str(ROOT / "problems" / f.problem), "cases": SMALL[f.problem]}
        for name, (f, source) in jobs.items()
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**_environment(), "PYTHONPATH": str(ROOT)},
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    wrong: dict[str, str] = json.loads((folder / "wrong.json").read_text())
    return wrong


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "KERNEL_SCIENTIST_CACHE", "LD_LIBRARY_PATH")}


def test_a_part_of_the_corpus_holds_every_kind() -> None:
    fixtures = corpus.load(corpus.GPU)
    order = corpus.spread(fixtures)
    assert sorted(f.name for f in order) == sorted(f.name for f in fixtures)
    kinds = {f.family for f in fixtures}
    assert {f.family for f in order[: len(kinds)]} == kinds
