"""The command line: a wrong call gives one sentence and exit code 2."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_scientist import problems
from kernel_scientist.campaign import preflight
from kernel_scientist.cli import SECTIONS, main
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Llm, Params
from kernel_scientist.sandbox import device_queue
from kernel_scientist.tracking.mlflow_store import MlflowStore
from tests.conftest import ROOT, Cli, lab_environment, without_progress
from tests.scientist.model_server import Response, serving

MISTAKES = {
    "unknown problem": (["optimize", "--set", "problem=nope"], "unknown problem 'nope'; known: attention-prefill"),
    "unknown parameter": (["optimize", "--set", "search.generation=3"], "unknown parameter 'search.generation'"),
    "wrong type": (["optimize", "--set", "search.generations=lots"], "'search.generations'"),
    "unknown profile": (["optimize", "--set", "profile=huge"], "no profile 'huge'"),
    "no such GPU": (["optimize", "--set", "target=rocm", "--set", "language=triton"], "finds no such GPU"),
    "a model that is not there": (["optimize", "--set", "llm.writer.model=gpt-9", "--dry-run"], "gpt-9"),
    "a misspelt model": (["optimize", "--set", "llm.writer.model=gtp-4o"], "'gtp-4o' is known: did you mean gpt-4o?"),
    "a misspelt provider": (["optimize", "--set", "llm.writer.model=anthropc/claude"], "did you mean anthropic/claude"),
    "no address": (
        ["optimize", "--set", "llm.writer={model: openai/q, api_base: 'ht!tp//x'}"],
        "'ht!tp//x', the api_base of 'openai/q', is no address",
    ),
    "not evaluated here": (["evaluate", "hip.py"], "hip kernels are only inspected here: they need target=rocm"),
    "no such file": (["evaluate", "absent.py"], "cannot read kernel absent.py"),
    "no regular file": (["evaluate", "/dev/null"], "cannot read kernel /dev/null: it is no regular file"),
    "nothing in the file": (["evaluate", "nothing.py"], "cannot read kernel nothing.py: it is empty"),
    "nothing to compile": (["compile", "nothing.py"], "cannot read kernel nothing.py: it is empty"),
    "no text": (["validate", "binary.py"], "cannot read kernel binary.py: it is not text (byte 1 is not UTF-8)"),
    "no text to compile": (["compile", "zeros.py"], "cannot read kernel zeros.py: it is not text (it has zero bytes)"),
    "no text to compare with": (["evaluate", "good.py", "--against", "binary.py"], "kernel binary.py: it is not text"),
    "no parameters": (["optimize", "--params", "nothing.py"], "cannot read the parameters in nothing.py: it is empty"),
    "no problem's text": (["problems", "show", "binary.py"], "/binary.py: it is not text"),
    "a folder": (["evaluate", "problems"], "cannot read kernel problems: it is no regular file"),
    "kernel without custom_kernel": (["evaluate", "empty.py"], "empty.py defines no custom_kernel(data)"),
    "an empty file name": (["evaluate", ""], "'FILE' is empty"),
    "an empty problem": (["evaluate", "good.py", "--problem", ""], "'--problem' is empty"),
    "an empty target": (["validate", "good.py", "--target", ""], "'--target' is empty"),
    "an empty other": (["evaluate", "good.py", "--against", ""], "'--against' is empty"),
    "an empty params": (["optimize", "--params", ""], "'--params' is empty"),
    "an empty campaign to resume": (["optimize", "--campaign", ""], "'--campaign' is empty"),
    "an empty campaign to report": (["report", ""], "'[CAMPAIGN]' is empty"),
    "one port for two servers": (["ui", "--prefect-port", "4200", "--mlflow-port", "4200"], "cannot have port 4200"),
    "a zero byte": (["optimize", "--dry-run", "--set", r'problem="a\0b"'], "parameter 'problem' has a zero byte"),
    "half a character": (
        ["optimize", "--dry-run", "--set", r'llm.writer={model: "openai/\uD800"}'],
        "parameter 'llm.writer.model' has a zero byte or a lone surrogate",
    ),
    "a language that no leaderboard times": (
        ["optimize", "--dry-run", "--set", "target=kernelbot"],
        "target 'kernelbot' times triton and hip kernels, not cpp",
    ),
    "a port that is none": (["ui", "--prefect-port", "70000"], "70000 is not in the range"),
    "a limit that is none": (["problems", "admit", "problems", "--limit", "nan"], "'nan' is not a valid integer"),
    "wrong target": (
        ["evaluate", "good.py", "--target", "gpu"],
        "--target gpu: parameter 'target': expected auto, cpu, cuda, rocm, model: with a machine",
    ),
    "problem of another type": (["evaluate", "good.py", "--problem", "12"], "unknown problem '12'"),
    "another without": (
        ["evaluate", "good.py", "--problem", "identity", "--against", "empty.py"],
        "empty.py defines no custom_kernel",
    ),
    "no such params": (["optimize", "--params", "absent.yaml"], "cannot read the parameters in absent.yaml"),
    "nothing to report": (["report", "--set", "problem=identity"], "no campaign"),
    "unknown campaign": (["report", "never-was", "--set", "problem=identity"], "no campaign never-was"),
    "a campaign named twice": (["compare", "a,b", "b", "--set", "problem=identity"], "campaign b is named twice"),
    "an empty campaign": (["compare", "a,", "b", "--set", "problem=identity"], "a campaign's name is empty"),
    "no such folder": (["cases", "--set", "problem=identity", "--out", "/proc/nope"], "cannot write /proc/nope"),
    "figures that cannot be written": (["validate", "good.py", "--metrics", "/proc/x"], "cannot write /proc/x"),
    "a folder as a file": (["optimize", "--metrics", "problems"], "problems: it is a folder"),
    "a file as a folder": (["compile", "good.py", "--asm", "empty.py"], "empty.py: it is a file"),
    "a page below a file": (["report", "--out", "empty.py/x.html"], "empty.py/x.html: Not a directory"),
    "training data nowhere": (["export", "--out", "/proc/nope/x.jsonl"], "cannot write /proc/nope/x.jsonl"),
    "times that are none": (["calibrate", "--from", "binary.py"], "cannot read the times in binary.py: it is not text"),
    "a suite outside its folder": (["suite", "problems/identity", "--name", "x/../y"], "which 'x/../y' cannot be"),
    "a suite of no campaigns": (["suite", "problems/identity", "--name", "x", "--jobs", "0"], "0 is not in the range"),
    "a suite's store": (
        ["suite", "problems/identity", "--name", "x", "--set", "tracking.uri=bogus://x"],
        "MLflow store 'bogus://x': expected",
    ),
    "a control of equal sides": (
        ["control", "problems/identity", "--name", "x", "--second", "search.strategy=scientist"],
        "the two sides have the same parameters",
    ),
    "a control of two budgets": (
        ["control", "problems/identity", "--name", "x", "--second", "budget.kernels=3"],
        "the sides differ in budget.kernels (100 and 3), which limits a campaign",
    ),
    "a control with an unknown key": (
        ["control", "problems/identity", "--name", "x", "--second", "search.stategy=fsr"],
        "unknown parameter 'search.stategy'",
    ),
    "a control without repeats": (
        ["control", "problems/identity", "--name", "x", "--second", "search.strategy=fsr", "--repeats", "0"],
        "at least one repeat",
    ),
    "unknown problem to show": (["problems", "show", "nope"], "unknown problem 'nope'"),
    "no store of MLflow's": (["optimize", "--set", "tracking.uri=bogus://x"], "MLflow store 'bogus://x': expected"),
    "a campaign that is not there": (
        ["optimize", "--campaign", "nosuch", "--set", "problem=identity"],
        "no campaign 'nosuch' in MLflow experiment identity-cpu",
    ),
    "bad store": (["optimize", "--set", "tracking.uri=ftp-ish"], "expected sqlite:///PATH"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_sentence_and_exit_code_2(name: str, cli_here: Cli, lab: Path) -> None:
    _mistake(name, cli_here, lab)


@pytest.mark.parametrize("name", ["unknown problem", "kernel without custom_kernel", "bad store"])
def test_a_process_ends_with_that_code_and_prints_nothing_else(name: str, cli: Cli, lab: Path) -> None:
    _mistake(name, cli, lab)


def _mistake(name: str, cli: Cli, lab: Path) -> None:
    (lab / "empty.py").write_text("x = 1\n")
    (lab / "nothing.py").write_text(" \n")
    (lab / "binary.py").write_bytes(bytes(range(255, 0, -1)))
    (lab / "zeros.py").write_bytes(b"x = 1\0\0\n")
    (lab / "good.py").write_text("def custom_kernel(data):\n    return data[1].copy_(data[0])\n")
    (lab / "hip.py").write_text("SOURCE = '#include <hip/hip_runtime.h>'\ndef custom_kernel(data):\n    return data\n")
    arguments, message = MISTAKES[name]
    done = cli(*arguments)
    _one_sentence(done.returncode, done.stderr, message)
    assert done.stdout == ""


def test_an_unreachable_mlflow_is_named_at_once(cli: Cli) -> None:
    done = cli("optimize", "--set", "problem=identity", MLFLOW_TRACKING_URI="http://127.0.0.1:9", timeout=30)
    _one_sentence(done.returncode, done.stderr, "no MLflow server answers at http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("role", "message"),
    [
        (
            "model: anthropic/claude-3-7-sonnet-20250219",
            "needs a key in the variable ANTHROPIC_API_KEY, which",
        ),
        (
            "model: openai/gpt-4o, api_key_env: LAB_KEY",
            "openai/gpt-4o needs a key in the variable LAB_KEY",
        ),
        ("model: openai/x, api_base: 'http://127.0.0.1:9/v1'", "no server answers at http://127.0.0.1:9/v1"),
        ("model: openai/x, api_base: 'http://127.0.0.1:9/v1', fallbacks: [openai/gpt-4o]", "no server answers at"),
    ],
)
def test_a_model_that_cannot_be_called_is_named_before_anything_starts(
    role: str, message: str, cli_here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LAB_KEY"):
        monkeypatch.delenv(name, raising=False)
    price = "price: {input_usd: 0, output_usd: 0}"
    done = cli_here("optimize", "--set", "problem=identity", "--set", f"llm.writer={{{role}, {price}}}")
    _one_sentence(done.returncode, done.stderr, message)
    assert "llm.writer: " in done.stderr


def test_a_fallback_that_cannot_be_called_is_a_warning(cli_here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = ("--set", "problem=identity", "--set", "llm.writer={model: playbook, fallbacks: [openai/gpt-4o]}")
    said = "warning: llm.writer: openai/gpt-4o needs a key in the variable OPENAI_API_KEY, which is not set"
    planned = cli_here("optimize", "--dry-run", *settings)
    assert planned.returncode == 0 and said in planned.stderr
    stopped = cli_here("optimize", *settings, "--set", "budget.kernels=1")
    assert stopped.stderr.count(said) == 1, stopped.stderr


def test_a_campaign_whose_replies_are_to_be_used_has_some(cli_here: Cli) -> None:
    settings = ("--set", "problem=identity", "--set", "llm.replay=nosuch", "--set", "llm.writer.model=openai/gpt-4o")
    message = "llm.replay: no replies of a campaign nosuch are kept in "
    refused = cli_here("optimize", *settings)
    _one_sentence(refused.returncode, refused.stderr, message)
    planned = cli_here("optimize", "--dry-run", *settings)
    _one_sentence(planned.returncode, planned.stderr, message)


@pytest.mark.parametrize("command", ["evaluate", "optimize"])
def test_a_folder_of_locks_that_cannot_be_written_is_named_at_once(
    command: str, cli_here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "locks").touch()
    monkeypatch.setattr(device_queue, "FOLDER", tmp_path / "locks")
    seed = [str(ROOT / "problems/identity/seeds/cpp_blocked.py")] if command == "evaluate" else []
    refused = cli_here(command, *seed, "--set", "problem=identity")
    _one_sentence(refused.returncode, refused.stderr, f"cannot write to {tmp_path}/locks, the folder of this host's")


def test_a_dry_run_says_that_a_cpu_does_not_time_triton(cli_here: Cli) -> None:
    settings = ("--set", "problem=softmax", "--set", "language=triton", "--set")
    assert "only a GPU times them" in cli_here("optimize", "--dry-run", *settings, "target=cpu").stdout
    assert "only a GPU times them" not in cli_here("optimize", "--dry-run", *settings, "target=model:mi300x").stdout


@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_key_is_none(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", blank)
    with pytest.raises(SetupError, match="needs a key in the variable OPENAI_API_KEY"):
        preflight.models(Params(llm=Llm.model_validate({"writer": {"model": "openai/gpt-4o"}})))


def test_a_key_in_a_variable_of_ones_own_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("LAB_KEY", "secret")
    llm = Llm.model_validate({"writer": {"model": "openai/gpt-4o", "api_key_env": "LAB_KEY"}})
    with serving(lambda body, number: Response()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        preflight.models(Params(llm=llm))
        assert [(path, headers["authorization"]) for path, headers in server.asked] == [("/v1/models", "Bearer secret")]


def test_a_dry_run_and_a_start_refuse_a_model_that_its_server_has_not(cli_here: Cli) -> None:
    with serving(lambda body, number: Response()) as server:
        server.listed = Response('{"data": [{"id": "qwen3", "owned_by": "vllm"}]}')
        settings = ("--set", "problem=identity", "--set")
        wrong = f"llm.writer={{model: openai/qwen33, api_base: '{server.address}'}}"
        right = wrong.replace("qwen33", "qwen3")
        sentence = f"llm.writer: the server at {server.address} has no model 'qwen33'; it has qwen3"
        refused = cli_here("optimize", *settings, wrong)
        _one_sentence(refused.returncode, refused.stderr, sentence)
        planned = cli_here("optimize", "--dry-run", *settings, wrong)
        assert "kernels:" in planned.stdout
        _one_sentence(planned.returncode, planned.stderr, sentence)
        done = cli_here("optimize", "--dry-run", *settings, right)
        assert done.returncode == 0 and not done.stderr and not server.requests, done.stderr


def test_an_unreachable_prefect_is_named_at_once(cli: Cli) -> None:
    seed = str(ROOT / "problems/identity/seeds/cpp_naive.py")
    done = cli("evaluate", seed, "--problem", "identity", PREFECT_API_URL="http://127.0.0.1:9/api", timeout=30)
    _one_sentence(done.returncode, done.stderr, "no Prefect server answers at http://127.0.0.1:9/api")


def test_a_missing_compiler_is_named(cli: Cli, tmp_path: Path) -> None:
    done = cli("optimize", "--set", "problem=identity", PATH=str(tmp_path))
    _one_sentence(done.returncode, done.stderr, "g++ is not on PATH; install it")


@pytest.mark.parametrize("call", [("evaluate", str(ROOT / "problems/identity/seeds/cpp_naive.py")), ("optimize",)])
def test_a_cache_that_cannot_be_written_is_named(call: tuple[str, ...], cli_here: Cli) -> None:
    done = cli_here(*call, KERNEL_SCIENTIST_CACHE="/proc/nope")
    _one_sentence(done.returncode, done.stderr, "cannot write to /proc/nope")


@pytest.mark.parametrize(
    "call",
    [
        ("compile", str(ROOT / "problems/identity/seeds/triton_naive.py"), "--no-lines"),
        ("problems", "show", "identity"),
    ],
)
def test_a_cache_that_other_commands_cannot_write_is_named(call: tuple[str, ...], cli_here: Cli) -> None:
    done = cli_here(*call, KERNEL_SCIENTIST_CACHE="/sys/nope")
    _one_sentence(done.returncode, done.stderr, "/sys/nope")


def test_a_full_disk_behind_standard_output_is_named(lab: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kernel_scientist", "problems", "list"],
            cwd=lab,
            env=lab_environment(lab),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    _one_sentence(done.returncode, done.stderr, "No space left on device")


def test_a_seed_without_custom_kernel_is_named(cli: Cli, lab: Path) -> None:
    (lab / "problems/identity/seeds/cpp_broken.py").write_text("def kernel(data):\n    return data\n")
    done = cli("optimize", "--set", "problem=identity")
    _one_sentence(done.returncode, done.stderr, "cpp_broken.py defines no custom_kernel(data)")


def test_an_error_that_a_library_makes_of_ctrl_c_is_a_stop(cli_here: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def imported(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise TypeError("a schema cannot be made") from error

    monkeypatch.setattr("kernel_scientist.api.optimize", imported)
    done = cli_here("optimize")
    assert done.returncode == 130 and "stopped before the campaign began" in done.stderr


def test_a_port_in_use_is_named(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cli("ui", "--prefect-port", str(_free_port()), "--mlflow-port", str(port))
    _one_sentence(done.returncode, done.stderr, f"port {port} for the MLflow server is not available")


@pytest.mark.parametrize("command", ["evaluate", "optimize"])
def test_a_stop_before_the_campaign_began_has_nothing_to_go_on_with(
    command: str, cli_here: Cli, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"kernel_scientist.api.{command}", stopped)
    done = cli_here(*((command, "kernel.py") if command == "evaluate" else (command,)))
    assert done.returncode == 130 and without_progress(done.stderr)[0].startswith("stopped")
    assert ("before the campaign began: nothing was recorded" in done.stderr) == (command == "optimize")


def test_an_unknown_option_is_exit_code_2(cli: Cli) -> None:
    assert cli("optimize", "--generations", "3").returncode == 2
    assert cli("optimise").returncode == 2


def test_a_seed_of_another_problem_than_params_names_asks_for_the_problem(cli: Cli) -> None:
    told = cli("evaluate", "problems/rmsnorm/seeds/cpp_blocked.py", "--set", "target=cpu")
    assert told.returncode == 2, told.stderr
    assert "cpp_blocked.py is a seed of rmsnorm" in told.stderr and "add --problem rmsnorm" in told.stderr, told.stderr
    assert "Traceback" not in told.stderr


def test_help_lists_every_command_once_in_a_section(cli_here: Cli) -> None:
    text = cli_here("--help").stdout
    assert [*SECTIONS] == [title for title in re.findall(r"^(\w[\w ]+):$", text, re.M) if title != "Options"]
    for name in main.commands:
        assert len(re.findall(rf"^  {name} ", text, re.M)) == 1, name


def test_help_imports_nothing_heavy(cli: Cli) -> None:
    done = cli("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0 and "--set search.generations=10" in done.stdout
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert not imported & {"torch", "mlflow", "prefect", "litellm", "pydantic", "numpy"}


@pytest.mark.parametrize(
    "command",
    [
        "optimize",
        "evaluate",
        "validate",
        "problems",
        "report",
        "watch",
        "doctor",
        "ui",
        "cases",
        "baseline",
        "compare",
        "control",
        "export",
    ],
)
def test_the_help_of_every_command_has_an_example(command: str, cli_here: Cli) -> None:
    done = cli_here(command, "--help")
    assert done.returncode == 0 and "Example: kernel-scientist" in done.stdout


def test_a_dry_run_prints_the_plan_and_does_nothing(cli: Cli, lab: Path) -> None:
    shutil.rmtree(lab / "mlruns")
    done = cli("optimize", "--dry-run", "--json", "--set", "search.generations=2")
    plan = json.loads(done.stdout)
    assert done.returncode == 0 and plan["kernels"] == 2 + 2 * 3 and plan["usd"] == 0
    assert not (lab / "mlruns").exists()


def test_a_dry_run_tries_what_the_start_would(cli_here: Cli, lab: Path) -> None:
    (lab / "mlruns" / "mlflow.db").write_text("no database")
    (lab / "replies").write_text("no folder")
    unusable = ("knowledge.paths=[knowledge/absent.md]", "llm.replies=replies", "validate.approval=true")
    settings = [word for value in unusable for word in ("--set", value)]
    done = cli_here("optimize", "--dry-run", "--json", *settings, PREFECT_API_URL="")
    assert done.returncode == 2 and json.loads(done.stdout)["usd"] == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for words in ("mlflow.db cannot be used", "absent.md", f"cannot write to {lab}/replies", "validate.approval needs"):
        assert any(words in line for line in warned), warned
    refused = cli_here("optimize", *settings, PREFECT_API_URL="")
    assert refused.returncode == 2 and not (lab / ".prefect").exists()


def test_an_export_without_examples_names_its_campaign_and_makes_nothing(cli_here: Cli, lab: Path) -> None:
    store = MlflowStore(f"sqlite:///{lab}/mlruns/mlflow.db", "identity-cpu")
    begun = store.start(
        "identity-cpu-20260101-000000-abcd", {"language": "cpp"}, problems.load(lab / "problems/identity")
    )
    for problem, words in (
        ("identity", f"campaign {begun.campaign} of identity on cpu has no kernel"),
        ("softmax", "no"),
    ):
        done = cli_here("export", "--set", f"problem={problem}", "--out", "new/folder/x.jsonl")
        _one_sentence(done.returncode, done.stderr, words)
        assert "--set problem=NAME" in done.stderr and not (lab / "new").exists()
    assert "no campaign of softmax on cpu" in done.stderr


def test_problems_are_listed_and_shown(cli_here: Cli) -> None:
    names = [row["problem"] for row in json.loads(cli_here("problems", "list", "--json").stdout)]
    assert names == problems.names() and {"identity", "softmax", "moe"} <= {*names}
    shown = json.loads(cli_here("problems", "show", "fp8-blockwise-gemm", "--json").stdout)
    assert len([r for r in shown["profiles"]["full"] if r["use"] == "benchmarks"]) == 18


def test_doctor_lists_the_capabilities_of_this_machine(cli: Cli) -> None:
    done = cli("doctor", "--json")
    rows = {row["what"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 0 and rows["g++"]["ok"] and rows["torch"]["ok"] and rows["files hidden"]["ok"]
    assert rows["model targets"]["ok"] and "gfx942" in rows["model targets"]["detail"]
    said = done.stderr.splitlines()  # of the first second nothing is shown
    assert not without_progress(done.stderr) and "looking at the MLflow store ..." in said and len(said) > 3


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _one_sentence(code: int, stderr: str, message: str) -> None:
    lines = without_progress(stderr)
    assert code == 2, stderr
    assert len(lines) == 1 and lines[0].startswith("error: ") and message in lines[0], stderr
    assert os.linesep not in lines[0]


def test_the_process_ends_with_the_exit_code_after_its_threads_and_other_handlers() -> None:
    program = "import atexit, sys, threading; from kernel_scientist.__main__ import run; "
    program += "threading.Timer(2, atexit.register, [print, 'a handler']).start(); "
    program += "sys.argv = ['kernel-scientist', 'evaluate', 'absent.py']; run()"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "a handler\n")
    assert "cannot read kernel absent.py" in done.stderr
