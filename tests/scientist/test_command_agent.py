"""An agent that is a command: small real programs, which end as they should, whatever they do."""

import os
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import cpu_examples
from kernel_scientist.compilers.request import MOST_SOURCE
from kernel_scientist.records.errors import ModelError, StoppedError
from kernel_scientist.records.evaluation import Evaluation, Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Budget, Llm
from kernel_scientist.scientist.command import program
from kernel_scientist.scientist.command.agent import CommandAgent
from kernel_scientist.scientist.command.folder import MOST_REPORT, MOST_STATEMENT, AgentReport, TaskFolder
from kernel_scientist.scientist.command.program import AgentCommand
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.llm.client import LlmClient
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.response_cache import ResponseCache
from kernel_scientist.scientist.playbook.agent import RuleBasedAgent
from kernel_scientist.scientist.proposals import Draft, ExperimentTask, Lessons, missing, own_ideas
from tests.sandbox.test_confine import ended, running

LIMIT_S = 120.0
WAIT_S = 60
ADDRESS = "http://127.0.0.1:1/mcp"
EDIT = "text = open('kernel.py').read(); open('kernel.py', 'w').write(text + 'WIDTH = 32\\n')\n"


class Made:
    """An agent whose command is a Python program in a file, and the example of fp8 GEMM on a CPU."""

    def __init__(self, folder: Path, text: str, limit_s: float = LIMIT_S) -> None:
        self.file = folder / "agent.py"
        self.file.write_text(f"import os, sys\n{text}")
        self.stopped = threading.Event()
        client = LlmClient(Llm(), ResponseCache(folder), LlmBudget(Budget()), "c", threading.Event())
        assignment, self.population = cpu_examples.fp8()
        command = AgentCommand(f"{sys.executable} -S {self.file} {{task}}", limit_s)
        others, scribe = RuleBasedAgent(assignment), LlmAgent(assignment, client)
        self.agent = CommandAgent(command, scribe, others, ADDRESS, self.stopped)
        best = self.population.best()
        assert best is not None
        self.base = best.kernel

    def task(self, name: str = "k00077") -> ExperimentTask:
        (plan, *_) = own_ideas(3).plans
        return ExperimentTask(name=name, base=self.base.name, reference=self.base.name, experiment=plan)

    def write(self, name: str = "k00077") -> Draft:
        return self.agent.write(self.population, self.task(name), Lessons())


REPORT = "open('report.md', 'w').write('# Wider rows\\n\\nExpected gain: 3 to 12.5 %\\n\\nI did so.')\n"
LOOKS = """
task = open(os.environ['KERNEL_SCIENTIST_TASK']).read()
assert sys.argv[1] == os.environ['KERNEL_SCIENTIST_TASK'] and os.path.dirname(sys.argv[1]) == os.getcwd()
assert open('kernel.py').read() == open('base.py').read() and '127.0.0.1:1/mcp' in open('.mcp.json').read()
assert not any(name.startswith(('PREFECT_', 'MLFLOW_')) for name in os.environ)
print(task.splitlines()[0])
"""


def test_an_edit_becomes_a_kernel_with_its_hypothesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///secret.db")
    made = Made(tmp_path, LOOKS + EDIT + REPORT)
    draft = made.write()
    assert draft.source == made.base.source + "WIDTH = 32\n" and not draft.declined and not draft.unreadable
    assert draft.experiment is not None and draft.experiment.title == "own idea 3.1: Wider rows"
    assert draft.experiment.uplift == (3.0, 12.5) and draft.experiment.description.endswith("I did so.")
    assert draft.author.model == made.agent.command.line
    assert f"# Implement one experiment on {made.base.name}\n[status 0" in draft.transcript
    again = made.write("k00078")  # the first one is in progress
    assert again.declined == "the agent handed in a kernel that was tried already: Wider rows"


def test_an_unchanged_base_is_an_attempt_without_a_kernel(tmp_path: Path) -> None:
    draft = Made(tmp_path, "print('nothing to do')").write()
    assert draft.declined == "the agent left the base unchanged" and missing(draft.source)
    assert draft.experiment is not None and draft.experiment.title == "own idea 3.1"
    said = "open('kernel.py', 'a').write('# a comment')\nopen('report.md', 'w').write('It is at its floor')"
    assert Made(tmp_path, said).write().declined == "the agent left the base unchanged: It is at its floor"


def test_a_command_that_fails_says_how_and_is_not_tried_again(tmp_path: Path) -> None:
    made = Made(tmp_path, "print('please log in')\nsys.exit(1)")
    with pytest.raises(ModelError) as failed:
        made.write()
    assert not failed.value.may_pass
    assert str(failed.value) == "no model replies: the agent fails, its command ended with status 1: please log in"
    draft = Made(tmp_path, EDIT + "sys.exit(1)").write()  # it did its work before
    assert draft.source.endswith("WIDTH = 32\n") and draft.report == "its command ended with status 1"


GARBAGE = {
    "bytes": "open('kernel.py', 'wb').write(b'\\xff\\x00\\xfe garbage')",
    "removed": "os.remove('kernel.py')",
    "link": "os.remove('kernel.py'); os.symlink('/etc/passwd', 'kernel.py')",
    "pipe": "os.remove('kernel.py'); os.mkfifo('kernel.py')",
    "folder": "os.remove('kernel.py'); os.mkdir('kernel.py')",
    "empty": "open('kernel.py', 'w').write(' \\n')",
    "large": f"open('kernel.py', 'w').write('#' * ({MOST_SOURCE} + 1))",
    "locked": "os.mkdir('locked'); os.mkdir('locked/in'); os.chmod('locked', 0); os.remove('kernel.py')",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_text_that_does_not_compile_or_no_kernel(tmp_path: Path, kind: str) -> None:
    draft = Made(tmp_path, GARBAGE[kind]).write()
    if kind == "bytes":
        assert draft.source == "\ufffd\ufffd\ufffd garbage" and not draft.unreadable
    else:
        assert draft.unreadable and "kernel.py was gone" in missing(draft.source)


def test_one_that_hangs_is_ended_and_what_it_has_written_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = f"{400000 + os.getpid()}.5"

    def clock() -> float:
        """Is past the limit once the program hangs, however long its start took."""
        return time.monotonic() + (LIMIT_S if running(f"sleep\0{seconds}") else 0)

    monkeypatch.setattr(program, "time", SimpleNamespace(monotonic=clock))
    hangs = (
        f"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{seconds}'])\nsubprocess.run(['sleep', '{seconds}'])"
    )
    draft = Made(tmp_path, hangs).write()
    assert draft.declined.startswith("the agent left the base unchanged, its command was ended at its limit, after")
    assert ended(seconds) and "[ended at its limit" in draft.transcript
    assert Made(tmp_path, EDIT + hangs).write().source.endswith("WIDTH = 32\n")


def test_what_it_leaves_running_ends_with_it(tmp_path: Path) -> None:
    seconds = f"{500000 + os.getpid()}.5"
    Made(tmp_path, f"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{seconds}'])\n{EDIT}").write()
    assert ended(seconds)


def test_the_end_of_the_campaign_ends_it(tmp_path: Path) -> None:
    seconds = f"{600000 + os.getpid()}.5"
    made = Made(tmp_path, f"import subprocess\nsubprocess.run(['sleep', '{seconds}'])")

    def stop() -> None:
        deadline = time.monotonic() + WAIT_S
        while not running(f"sleep\0{seconds}") and time.monotonic() < deadline:
            time.sleep(0.02)
        made.stopped.set()

    threading.Thread(target=stop).start()
    with pytest.raises(StoppedError):
        made.write()
    assert ended(seconds)


def test_only_the_end_of_what_it_prints_is_kept(tmp_path: Path) -> None:
    draft = Made(tmp_path, "print('begin' + 'x' * 3_000_000 + 'end')").write()
    assert len(draft.transcript) < 1.1 * program.MOST_PRINTED and "xend\n[status 0" in draft.transcript


def test_it_writes_in_its_folder_only(tmp_path: Path) -> None:
    (outside := tmp_path / "outside").mkdir()
    tries = f"\nfor path in ('{outside}/file', '{Path.home()}/of-an-agent', '{tmp_path}/agent.py'):\n"
    tries += "    try:\n        open(path, 'w').write('x')\n    except OSError as error:\n        print(error)\n"
    made = Made(tmp_path, tries + EDIT)
    before = made.file.read_text()
    assert made.write().source.endswith("WIDTH = 32\n")
    assert not [*outside.iterdir()] and not (Path.home() / "of-an-agent").exists() and made.file.read_text() == before


FAILED = "assert 'Verdict **compile_error**' in (task := open('TASK.md').read()) and 'no such width' in task\n"


def test_it_repairs_what_it_wrote(tmp_path: Path) -> None:
    made = Made(tmp_path, FAILED + "assert open('kernel.py').read() != open('base.py').read()\n" + EDIT + REPORT)
    kernel = Kernel(name="k00077", language="cpp", source=made.base.source + "WIDTH = 31\n", base=made.base.name)
    kernel = kernel.model_copy(update={"experiment": made.task().experiment})
    failed = Trial(kernel=kernel, evaluation=Evaluation(verdict=Verdict.COMPILE_ERROR, reason="no such width"))
    draft = made.agent.repair(made.population, made.task(), failed, Lessons())
    assert draft is not None and draft.source == kernel.source + "WIDTH = 32\n" and draft.critique == "Wider rows"
    noted = draft.noted(kernel)
    assert noted.authors["repairer"].model == made.agent.command.line and noted.transcript == draft.transcript
    idle = Made(tmp_path, "")
    unchanged = idle.agent.repair(idle.population, idle.task(), failed, Lessons())
    assert unchanged is not None and unchanged.source == kernel.source


@given(st.text())
def test_any_report_has_a_short_hypothesis_on_one_line_and_an_ordered_gain(text: str) -> None:
    report = AgentReport(text)
    assert len(report.statement) <= MOST_STATEMENT and report.statement == " ".join(report.statement.split())
    assert report.statement.isprintable() and report.uplift[0] <= report.uplift[1]
    experiment = report.experiment(own_ideas(1).plans[0])
    assert experiment.title.startswith("own idea 1.1")


NUMBERS = st.integers(-99999, 99999).map(lambda value: value / 100)


@given(NUMBERS, NUMBERS, st.sampled_from(["", "- ", "**"]), st.text(max_size=40))
def test_an_expected_gain_is_read_wherever_its_line_stands(low: float, high: float, mark: str, more: str) -> None:
    text = f"{more.replace('gain', '')}\n{mark}Expected gain: {low:.2f} to {high:.2f} %\nbelow"
    assert AgentReport(text).uplift == (min(low, high), max(low, high))


GAINS = {
    "Expected gain: 5–20 %": (5, 20),  # noqa: RUF001
    "Expected gain: 5—20%": (5, 20),
    "Expected gain: -5 to +10 %": (-5, 10),
    "Expected gain: ~5 to 20 %": (5, 20),
    "`Expected gain: 5 to 20 %`": (5, 20),
    "**Expected gain:** `5 % - 20 %`": (5, 20),
    "Expected gain: 10 %": (10, 10),
    "Expected gain: none": (0, 0),
    "Expected gain:\n7 to 8 %": (0, 0),
    "Expected gain: 1234567 %": (0, 0),
}


@pytest.mark.parametrize("line", GAINS)
def test_ways_to_write_an_expected_gain(line: str) -> None:
    assert AgentReport(f"An idea\n{line}\n").uplift == GAINS[line]


def test_lines_without_words_are_no_hypothesis() -> None:
    assert AgentReport("---\n\n# Wider rows\n---\n").statement == "Wider rows"
    assert AgentReport("\n" * MOST_REPORT).uplift == (0, 0)  # at once: no match crosses lines


@given(st.binary(max_size=2000))
def test_any_bytes_are_text_at_the_door(content: bytes) -> None:
    with TaskFolder.made("k00001", "task", "kernel", "base", "") as folder:
        (folder.path / "kernel.py").write_bytes(content)
        text = folder.kernel()
    assert text is None or (text.strip() and "\0" not in text and text.encode())
    assert (text is None) == (not content.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").strip())
    assert not folder.path.exists()
