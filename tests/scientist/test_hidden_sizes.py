"""`search.hide_shapes`: nothing that a model is sent names a timed case or a timed size."""

import json
import re
import string
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import cpu_examples, mi300x_examples, write_prompts
from kernel_scientist import problems
from kernel_scientist.campaign import hidden_sizes
from kernel_scientist.hardware.addresses import CPU
from kernel_scientist.problems import stated_sizes
from kernel_scientist.problems.problem import Profile
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import COUNTERS, Evaluation, Trial
from kernel_scientist.records.kernel import Case, Kernel, Verdict
from kernel_scientist.records.params import load as load_params
from kernel_scientist.records.sampled import Sampled
from kernel_scientist.scientist.context import bug_taxonomy, hidden_cases
from kernel_scientist.scientist.context.hidden_cases import KINDS, WITHHELD, HiddenCases
from kernel_scientist.scientist.hiding import HidingAgent, HidingWorkshop
from kernel_scientist.scientist.llm.agent import LlmAgent
from kernel_scientist.scientist.llm.workbench import Workshop
from kernel_scientist.scientist.proposals import Lesson, Lessons, Refutation
from tests.conftest import ROOT, Cli
from tests.scientist.model_server import serving
from tests.scientist.scripted_campaign import settings, stored
from tests.scientist.scripted_model import ScriptedModel, block_after
from tests.scientist.test_command_agent import EDIT, Made
from tests.scientist.tool_user import ToolUser, role_with_tools

TIMED = (131101, 262147, 524309)
"""Primes, so that no other number of a prompt is one of them or a multiple by chance."""
LARGE = 10_000
TAILS = {
    "raises": "raise ValueError(f'size is {data[0].numel()}, twice {2 * data[0].numel()}')",
    "prints": "import sys; print('size', data[0].numel(), file=sys.stderr, flush=True)",
    "errs": "return inner(data).zero_()",
    "raises early": "pass",
}
"""What kernels do in timed cases; the last one raises in checking cases."""


def _telling(source: str, number: int, kind: str) -> str:
    """Return the base changed to a kernel that reveals the sizes that it meets."""
    source = source.replace('SOURCE = r"""\n', f'SOURCE = r"""\nstatic const int plan_{number} = {number};\n', 1)
    early = "    if data[0].numel() == 127:\n        raise ValueError('seen 127')\n" if kind == "raises early" else ""
    tail = f"{early}    if data[0].numel() > {LARGE}:\n        {TAILS[kind]}\n    return inner(data)\n"
    return f"{source}\n\ninner = custom_kernel\n\n\ndef custom_kernel(data):\n{tail}"


class Teller(ScriptedModel):
    """Writes kernels that tell the sizes of the cases on which they are called."""

    def write(self, prompt: str) -> str:
        """Change the base as the experiment's title says."""
        number, kind = self._plan(prompt)
        if kind not in TAILS:
            return super().write(prompt)
        return self._reply(_telling(block_after(prompt, "## The base: "), number, kind), f"{kind} there", kind)


class TellerWithTools(ToolUser, Teller):
    """The same, which checks and times its drafts first."""


def primes(lab: Path) -> None:
    """Let `identity` be timed on primes, one of which is a checking case's size as well."""
    file = lab / "problems" / "identity" / "lab.yml"
    text = file.read_text()
    timed = ", ".join(f"{{size: {size}}}" for size in TIMED)
    text, changed = re.subn(r"benchmarks: \[.*\]", f"benchmarks: [{timed}]", text)
    assert changed == 1
    text = text.replace("{size: 1000}]", f"{{size: 1000}}, {{size: {TIMED[0]}}}]").replace("200000", "2000")
    file.write_text(text)


def told(requests: list[dict[str, Any]]) -> set[str]:
    """Return what of the timed sizes the requests contain: numbers, also doubled and in bytes."""
    text = json.dumps(requests)
    return {str(n * size) for size in TIMED for n in (1, 2, 4) if str(n * size) in text}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("tools", [False, True], ids=["without tools", "with tools"])
def test_no_byte_that_a_model_is_sent_tells_a_timed_size(tools: bool, lab: Path, cli: Cli, prefect_api: str) -> None:
    primes(lab)
    kinds = ("good", "raises", "prints", "errs", "raises early", "good")
    model = TellerWithTools(kinds, functions=True) if tools else Teller(kinds)
    with serving(model) as server:
        arguments = settings(server, "search.generations=2", "search.hide_shapes=true")
        for name in ("designer", "writer", "repairer") if tools else ():
            arguments += ["--set", f"llm.{name}={role_with_tools(server, True)}"]
        done = cli("optimize", "--json", *arguments, PREFECT_API_URL=prefect_api)
        assert done.returncode == 0, done.stderr
    text = json.dumps(server.requests)
    assert not told(server.requests)
    assert "case-1" in text and "case-3" in text and "only these names of theirs" in text
    assert "size127" in text and "seen 127" in text, "what is known of checking cases is shown"
    assert "a timed case" in text and WITHHELD in text and "ValueError" in text
    parent, _, store = stored(lab)
    assert parent.params["search.hide_shapes"] == "True"
    population = list(store.population(parent))
    record = "\n".join(trial.model_dump_json() for trial in population)
    assert f"size is {TIMED[0]}" in record and f"size{TIMED[1]}" in record, "people see all"
    result = json.loads(done.stdout)
    assert result["champion"] and result["verdict"] == "ok"
    champion = next(trial for trial in population if trial.kernel.name == result["champion"])
    assert {one.case for one in champion.evaluation.timings} == {f"size{size}" for size in TIMED}


NAMES = st.lists(st.text(string.ascii_letters + string.digits + "._-+*()[]|\\^$é", min_size=1), min_size=1, max_size=6)


@given(NAMES, st.text())
def test_rewriting_leaves_no_name_and_is_idempotent(names: list[str], around: str) -> None:
    ids = hidden_cases.opaque(names)
    assert len({*ids.values()}) == len({*names})
    text = hidden_cases.rewritten(f"{around} {' | '.join(names)} {around}", ids)
    assert hidden_cases.rewritten(text, ids) == text
    assert not any(f" {name} " in f" {text} " for name in names)


def test_the_longest_name_is_replaced_and_no_part_of_another_number() -> None:
    ids = hidden_cases.opaque(["n10", "n10-k2", "n101"])
    assert ids == {"n10": "case-1", "n10-k2": "case-2", "n101": "case-3"}
    said = "n10-k2: wrong; n10, n101. tile_n10x n1012 len10"
    assert hidden_cases.rewritten(said, ids) == "case-2: wrong; case-1, case-3. tile_case-1x n1012 len10"
    assert hidden_cases.opaque(["1", "case"])["1"] not in ("1", "case-1"), "a name is found in no new name"


def test_what_prompts_say_of_a_gpu_states_no_timed_size() -> None:
    assignment, population = mi300x_examples.triton()
    hidden = HiddenCases(assignment.profile)
    texts = write_prompts.prompts(hidden.assignment(assignment), hidden.population(population))
    for role_name, text in texts.items():
        assert not [case.name for case in assignment.profile.benchmarks if case.name in text], role_name
        assert "grids" not in text and "programs leave" not in text and "roofline floor" not in text
    assert "case-1" in texts["designer"] and "Predicted limits of" in texts["designer"]
    open_texts = write_prompts.prompts(assignment, population)
    assert "not told" not in open_texts["designer"] and "grids" in open_texts["designer"]


def test_the_kind_of_a_failure_in_a_timed_case_is_kept() -> None:
    hidden = HiddenCases(cpu_examples.fp8()[0].profile)
    name = hidden.profile.benchmarks[0].name
    for verdict, reason in (
        (Verdict.CRASHED, "TypeError: 1009 is no size"),
        (Verdict.CRASHED, "SIGSEGV at 1009"),
        (Verdict.CRASHED, "NameError: 1009"),
        (Verdict.INCORRECT, "a tensor with shape [1009]"),
        (Verdict.INCORRECT, "values differ"),
        (Verdict.COMPILE_ERROR, "SyntaxError: 1009"),
    ):
        failed = Evaluation(verdict=verdict, reason=f"{name}: {reason}", evidence=('File "kernel.py", line 2',))
        shown = hidden.evaluation(failed, "import torch\nraise ValueError(x)\n")
        assert bug_taxonomy.classify(shown).id == bug_taxonomy.classify(failed).id, reason
        assert name not in shown.reason and "1009" not in str(shown) and "case-1" in shown.reason
        assert shown.evidence == ("source line: raise ValueError(x)",)
    early = Evaluation(verdict=Verdict.CRASHED, reason="size127: 1009", failed_untimed=True)
    assert hidden.evaluation(early, "").reason == "size127: 1009"
    assert KINDS.keys() <= bug_taxonomy.BY_ID.keys()


def test_findings_of_earlier_campaigns_that_state_timed_sizes_are_left_out() -> None:
    cases = tuple(Case(sizes={"size": size}, seed=1) for size in TIMED)
    hidden = HiddenCases(Profile((Case(sizes={"size": 127}, seed=1),), cases, ()))
    texts = "wide loads help", f"at {TIMED[0]:,} elements it is slow", "127 is odd"
    earlier = tuple(Lesson(name=f"e{n}", text=text, kernels=(), date="", campaign="c") for n, text in enumerate(texts))
    refuted = (Refutation(statement=f"tiles for size {TIMED[1]}", gains=(), campaign="c"),)
    shown = hidden.lessons(Lessons(earlier=earlier, refuted=refuted))
    assert [one.text for one in shown.earlier] == ["wide loads help", "127 is odd"] and not shown.refuted
    assert hidden.text(f"slower on size{TIMED[2]}") == "slower on case-3"


def test_a_problem_that_states_its_timed_sizes_is_refused_before_anything_starts(lab: Path, cli_here: Cli) -> None:
    primes(lab)
    hide = ("--dry-run", "--set", "problem=identity", "--set", "search.hide_shapes=true")
    assert cli_here("optimize", *hide).returncode == 0
    task = lab / "problems" / "identity" / "task.yml"
    plain = task.read_text()
    said = plain.replace("  Copy a vector.\n", f"  Copy a vector.\n\n  The timed cases have {TIMED[0]} elements.\n")
    task.write_text(said)
    assert cli_here("optimize", *hide).returncode == 0, "that paragraph is left out"
    task.write_text(plain.replace("Copy a vector.", f"Copy a vector of up to {TIMED[0]:,}."))
    done = cli_here("optimize", *hide)
    assert done.returncode == 2 and "as its description names some of them" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    task.write_text(plain)
    seed = lab / "problems" / "identity" / "seeds" / "cpp_naive.py"
    seed.write_text(f"{seed.read_text()}# if size == {TIMED[2]}\n")
    done = cli_here("optimize", *hide)
    assert done.returncode == 2 and "its seed cpp_naive.py names a timed case" in done.stderr
    for more, why in (
        (("problem=tests/problems/kernelbench/level1/1_Linear_with_bias.py",), "has them as constants"),
        (("search.strategy=agent",), "tell the timed cases"),
        (("search.strategy=agent", "search.agent=sh", "harness.sandbox=basic"), "set it to auto"),
    ):
        given = [word for one in more for word in ("--set", one.replace("tests/", f"{ROOT}/tests/"))]
        done = cli_here("optimize", *hide, *given)
        assert done.returncode == 2 and why in done.stderr, done.stderr


def test_our_problems_can_be_hidden() -> None:
    for name in problems.names():
        problem = problems.find(name)
        for profile in problem.profiles.values():
            stated = stated_sizes.where(problem, [profile], "cpp")
            assert not stated, f"{name}: {stated}"


def test_a_trial_is_shown_with_its_times_and_without_its_launches() -> None:
    assignment, population = mi300x_examples.triton()
    hidden = HiddenCases(assignment.profile)
    for trial in population:
        shown = hidden.trial(trial)
        assert [*shown.evaluation.times_us.values()] == [*trial.evaluation.times_us.values()]
        assert {*shown.evaluation.times_us} <= {*hidden.ids.values()}
        assert not shown.evaluation.compile or not shown.evaluation.compile.launches
        assert Trial.model_validate_json(shown.model_dump_json()) == shown
        assert hidden.trial(shown) == shown, "what is shown is shown again as it is"


class Profiling:
    """Profiles every kernel, or says why not in words that a kernel may have printed."""

    profiler, pairs = "perf", True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def profile(self, kernel: Kernel, checked: Evaluation, case: str) -> Evaluation:
        self.asked.append(case)
        found = Sampled(case=case, samples=200, threads=(1.0,), own=1.0)
        return checked.model_copy(update={"sampled": (found,), "environment": {COUNTERS: "none: size 262147"}})


def test_a_profile_goes_by_opaque_names_and_tells_nothing_that_a_kernel_printed() -> None:
    assignment, population = cpu_examples.fp8()
    hidden, kernel = HiddenCases(assignment.profile), population.get("k00003").kernel
    workshop = Profiling()
    shown = HidingWorkshop(cast(Workshop, workshop), hidden)
    name, other = [*hidden.ids.items()][1]
    found = shown.profile(kernel, Evaluation(verdict=Verdict.OK), other)
    assert workshop.asked == [name] and [one.case for one in found.sampled] == [other]
    assert "262147" not in found.model_dump_json() and shown.profiler == "perf"
    workshop.profiler = "ncu"
    assert shown.profiler == "", "bytes that a GPU moved tell sizes"


def test_a_failure_is_shown_again_as_it_is() -> None:
    hidden = HiddenCases(cpu_examples.fp8()[0].profile)
    name = next(iter(hidden.ids))
    failure = Evaluation(verdict=Verdict.CRASHED, reason=f"{name}: ValueError: 1009", evidence=("line 1 of kernel.py",))
    once = hidden.evaluation(failure, "x = 1\n")
    assert hidden.evaluation(once, "x = 1\n") == once and hidden.ids[name] in once.reason and "1009" not in str(once)


def test_findings_that_state_compile_time_arguments_are_left_out() -> None:
    assignment, population = mi300x_examples.triton()
    hidden = HiddenCases(assignment.profile)
    trial = next(one for one in population if one.evaluation.compile and one.evaluation.compile.objects)
    report = trial.evaluation.compile
    assert report is not None
    objects = (report.objects[0].model_copy(update={"constants": {"COLS": 7168}}), *report.objects[1:])
    findings = ("rms (COLS 7168): 12 registers spilled", "no matrix instruction")
    told = report.model_copy(update={"objects": objects, "findings": findings})
    shown = hidden.evaluation(trial.evaluation.model_copy(update={"compile": told}), trial.kernel.source).compile
    assert shown is not None and shown.findings == ("no matrix instruction",)


LOOKS = """
text = open(os.environ['KERNEL_SCIENTIST_TASK']).read()
print('FOUND', [name for name in {names} if name in text], 'case-1' in text, '1009' in text, 'a timed case' in text)
"""


def test_the_task_of_an_agents_command_names_no_timed_case(tmp_path: Path) -> None:
    assignment, population = cpu_examples.fp8()
    hidden = HiddenCases(assignment.profile)
    names = [case.name for case in assignment.profile.benchmarks]
    made = Made(tmp_path, LOOKS.format(names=names) + EDIT)
    scribe = made.agent.scribe
    made.agent.scribe = LlmAgent(hidden.assignment(assignment), scribe.client.showing(hidden.text))
    agent = HidingAgent(made.agent, hidden)
    task = made.task().model_copy(update={"failed": ()})
    earlier = Lesson(name="e001", text=f"look at {names[0]}", kernels=("k00001",), date="", campaign="c")
    draft = agent.write(population, task, Lessons(findings=(earlier,)))
    assert "FOUND [] True False" in draft.transcript
    failure = Evaluation(verdict=Verdict.CRASHED, reason=f"{names[1]}: ValueError: 1009")
    kernel = made.base.model_copy(update={"name": "k00077", "base": made.base.name, "source": "x = 1\n"})
    again = agent.repair(population, task, Trial(kernel=kernel, evaluation=failure), Lessons())
    assert again is not None and "FOUND [] True False True" in again.transcript


def test_a_standing_champion_that_names_a_timed_case_is_refused() -> None:
    problem, hide = problems.load(ROOT / "problems" / "identity"), ["problem=identity", "search.hide_shapes=true"]
    params = load_params(None, [*hide, "target=cpu"])
    hidden_sizes.require_unstated(params, problem, CPU, "int size = 127;")
    for source in ("// size131072", "if (size == 131072)"):
        with pytest.raises(SetupError, match=r"set search\.from=seeds"):
            hidden_sizes.require_unstated(params, problem, CPU, source)
        hidden_sizes.require_unstated(load_params(None, ["target=cpu"]), problem, CPU, source)
