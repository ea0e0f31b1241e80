"""Records of a store that commit 5fcf22c wrote: one campaign on problem identity, with seven kernels (`old_store/`)."""

import json
from pathlib import Path

import pytest

from kernel_scientist.population.entry import beats
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import REFERENCE, Kernel, LlmCall
from kernel_scientist.scientist.proposals import Lessons
from kernel_scientist.tracking import artifacts, old_records, snapshots
from tests.trials import trial

STORE = Path(__file__).parent / "old_store"
FILES = sorted(STORE.glob("k*.json"))


def population() -> Population:
    trials = [
        Trial(
            kernel=Kernel(name=file.stem, language="cpp", source=f"# {file.stem}"),
            evaluation=Evaluation.model_validate(old_records.evaluation(file.read_text())),
        )
        for file in FILES
    ]
    return Population(tuple(trials))


def test_the_incumbent_is_the_champion_of_the_old_version() -> None:
    best = population().best()
    assert best is not None and best.kernel.name == "k00004"  # as the campaign's tag `champion` says


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_times_ratios_and_decisions_are_kept(file: Path) -> None:
    old, new = json.loads(file.read_text()), Evaluation.model_validate(old_records.evaluation(file.read_text()))
    assert [t.time_us for t in new.timings] == [t["time_us"] for t in old["timings"]]
    for before, after in zip(old["speedups"], new.speedups, strict=True):
        faster = before["interval"][0] > 1 + before["margin"] and before["seen"][0] > 1
        assert after.ratio == before["ratio"] and after.stages == before["looks"] and after.cases == {}
        assert after.faster == faster


def test_a_ratio_of_host_wall_times_below_one_still_decides() -> None:
    trial = population().get("k00005")
    assert not beats(trial, REFERENCE)  # its own interval, [1.043, 1.140], is above 1; that of host wall times is not


def test_todays_records_pass_unchanged() -> None:
    text = Evaluation.model_validate(old_records.evaluation(FILES[0].read_text())).model_dump_json()
    assert old_records.evaluation(text) == json.loads(text)


def test_findings_are_read() -> None:
    lessons = Lessons.model_validate(old_records.lessons((STORE / "findings.json").read_text()))
    assert lessons.findings[0].retracted == "2026-11-23" and not lessons.findings[1].retracted


def test_metrics_have_todays_names() -> None:
    assert old_records.metrics({"spent_s": 3.0, "kernels": 2.0}) == {"elapsed_s": 3.0, "kernels": 2.0}


def test_model_calls_are_read_under_their_old_names(tmp_path: Path) -> None:
    call = LlmCall(
        role="writer",
        call_key="write/k00001/0",
        model="m",
        key="a",
        prompt="b",
        input_tokens=1,
        output_tokens=2,
        usd=0.1,
        seconds=1,
    )
    old = {"place" if name == "call_key" else name: value for name, value in call.model_dump().items()}
    (tmp_path / "source").mkdir()
    (tmp_path / "source/kernel.py").write_text("# k00001")
    (tmp_path / "asks.json").write_text(json.dumps([old]))
    (tmp_path / "evaluation.json").write_text(FILES[0].read_text())
    tags = {"kernel": "k00001", "language": "cpp", "generation": "0"}
    assert artifacts.read(tmp_path, tags).kernel.llm_calls == (call,)


def test_a_snapshot_with_other_fields_is_read_from_its_records() -> None:
    chain = (
        trial("k00001", 1.0),
        trial("k00002", 9.0, {"k00001": (1.1, 1.3)}, base="k00001"),
        trial("k00003", None, base="k00002"),
    )
    written = Population(chain)
    head, *lines = snapshots.dump(written, [t.kernel.name for t in chain]).splitlines()
    old = json.loads(head) | {"fields": ["name", "score", "time_us"]}
    rows = [json.dumps(["a name", 1.0, None, json.loads(line)[-1]]) for line in lines]
    for text in ("\n".join((head, *lines)), "\n".join((json.dumps(old), *rows))):
        read = Population()
        assert snapshots.load(text, read) == old["time_ms"] and tuple(read) == chain
        assert read.entries() == written.entries() and read.incumbent() == "k00002"
        assert read.estimate("k00002") == written.estimate("k00002")
