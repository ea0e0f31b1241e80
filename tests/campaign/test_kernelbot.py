"""The leaderboard's client against a server with its API: every state and fault; nothing is sent twice or lost."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.campaign.kernelbot import results
from kernel_scientist.campaign.kernelbot.api import Api, Credentials, Submission, loads
from kernel_scientist.campaign.kernelbot.leaderboard import LeaderboardClient, Register
from kernel_scientist.campaign.kernelbot.submitted_source import lines_with_word, refusal, without_word
from kernel_scientist.problems import load
from kernel_scientist.records.errors import InfrastructureError, SetupError
from kernel_scientist.records.kernel import Verdict
from kernel_scientist.records.param_sections import Kernelbot
from kernel_scientist.sandbox.failure import KernelFailure
from tests.campaign.kernelbot_server import CLI_ID, SECRET_SEED, Board, serving
from tests.conftest import ROOT, Cli

QUICK = Kernelbot(poll_s=0.01, settle_s=0.1)
CASES = load(ROOT / "problems/identity").profile("full").benchmarks
SEED = ROOT / "problems/identity/seeds/triton_tiled.py"
QUICK_CALL = ("--set", "kernelbot.poll_s=0.05", "--set", "kernelbot.settle_s=0.5")


def leaderboard(board: Board, folder: Path, settings: Kernelbot = QUICK) -> LeaderboardClient:
    return LeaderboardClient(
        Api(Credentials(board.address, CLI_ID)), Register(folder / "s.db"), "amd-identity", settings
    )


@pytest.mark.parametrize("events", [False, True])
def test_a_source_is_submitted_once_and_its_times_are_the_public_benchmarks(tmp_path: Path, events: bool) -> None:
    with serving(Board(polls=2)) as board:
        settings = QUICK.model_copy(update={"events": events})
        found = leaderboard(board, tmp_path, settings).result("k1", "# us: 50\n", "leaderboard")
        again = leaderboard(board, tmp_path, settings).result("another name", "# us: 50\n", "leaderboard")
    assert found == again and len(board.accepted) == 1 and board.accepted[0]["code"] == "# us: 50\n"
    times = results.benchmarks(found, CASES)
    assert [times[case.name].mean_us for case in CASES] == pytest.approx([50 * (1 + i / 10) for i in range(7)])
    assert results.ranked(found) == pytest.approx({"public": 50.0, "secret": 55.0})
    assert str(SECRET_SEED).encode() not in (tmp_path / "s.db").read_bytes()
    assert CLI_ID not in repr(Credentials("u", CLI_ID))


@pytest.mark.parametrize(
    ("outcome", "verdict", "words"),
    [
        ("succeeded", Verdict.OK, ""),
        ("failed test", Verdict.INCORRECT, "mismatch at 7"),
        ("failed crash", Verdict.CRASHED, "the runner says why"),
        ("timed_out", Verdict.TIMEOUT, "time limit"),
        ("hacked", Verdict.REJECTED, "hack"),
        ("succeeded secret", Verdict.INCORRECT, "secret seed"),
    ],
)
def test_every_state_has_its_verdict(tmp_path: Path, outcome: str, verdict: Verdict, words: str) -> None:
    with serving(Board()) as board:
        found = leaderboard(board, tmp_path).result("k1", f"# outcome: {outcome}\n", "leaderboard")
    assert results.verdict(found)[0] is verdict and words in results.verdict(found)[1]


def test_a_submission_that_the_leaderboard_did_not_run_is_sent_again(tmp_path: Path) -> None:
    with serving(Board()) as board:
        for times in (1, 2):
            with pytest.raises(InfrastructureError, match="without a run"):
                leaderboard(board, tmp_path).result("k1", "# outcome: failed\n", "benchmark")
            assert len(board.accepted) == times


def test_refusals_name_their_cause(tmp_path: Path) -> None:
    with serving(Board()) as board:
        with pytest.raises(KernelFailure, match="forbidden import"):
            leaderboard(board, tmp_path).result("k1", "# outcome: refused\n", "test")
        with pytest.raises(SetupError, match="unknown user"):
            LeaderboardClient(Api(Credentials(board.address, "x")), Register(tmp_path / "s.db"), "amd-identity", QUICK)
        with pytest.raises(SetupError, match="unknown leaderboard"):
            LeaderboardClient(
                Api(Credentials(board.address, CLI_ID)), Register(tmp_path / "s.db"), "amd-nothing", QUICK
            )
        with pytest.raises(SetupError, match="it has: MI300, MI250"):
            leaderboard(board, tmp_path, QUICK.model_copy(update={"gpu": "B200"}))
    assert not board.accepted


LOOP = """
import sys
from pathlib import Path
from tests.campaign.test_kernelbot import *
board = Board(address=sys.argv[1])
one = leaderboard(board, Path(sys.argv[2]))
for number in range(int(sys.argv[3])):
    found = one.result(f"k{number}", f"# kernel {number}\\n# us: {number + 1}\\n", "benchmark")
    print(number, found.id, results.benchmarks(found, CASES)["size1024"].mean_us, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("events", "many"), [(False, 200), (True, 40)])
def test_submissions_with_faults_and_three_kills_arrive_once(tmp_path: Path, events: bool, many: int) -> None:
    rng, done = Random(3), ""
    loop = LOOP.replace("Path(sys.argv[2]))", f"Path(sys.argv[2]), QUICK.model_copy(update={{'events': {events}}}))")
    with serving(Board(faults=Random(4))) as board:
        command = [sys.executable, "-c", loop, board.address, str(tmp_path), str(many)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        for _ in range(3):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
            assert process.stdout is not None
            line, last = "", rng.randrange(many // 2)
            while not line.startswith(f"{last} "):
                line = process.stdout.readline()
                assert line
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(rng.uniform(0, 0.3))  # anywhere within a submission
            process.kill()
            process.wait()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT).stdout
    codes = Counter(entry["code"] for entry in board.accepted)
    assert len(codes) == many and set(codes.values()) == {1}
    rows = [line.split() for line in done.splitlines()]
    assert [int(row[0]) for row in rows] == list(range(many))
    assert [float(row[2]) for row in rows] == pytest.approx([number + 1 for number in range(many)])


@pytest.mark.slow
def test_a_kernel_is_evaluated_and_confirmed_by_the_leaderboard(lab: Path, cli: Cli, tmp_path: Path) -> None:
    faster, slow = tmp_path / "faster.py", tmp_path / "slow.py"
    faster.write_text(f"# us: 40\n{SEED.read_text()}")
    slow.write_text(f"# us: 80\n{SEED.read_text()}")
    arguments = ("--problem", "identity", "--target", "kernelbot", "--json", *QUICK_CALL)
    with serving(Board()) as board:
        own = {"POPCORN_API_URL": board.address, "POPCORN_CLI_ID": CLI_ID}
        done = cli("evaluate", str(faster), "--against", str(slow), *arguments, **own)
        assert done.returncode == 0, done.stdout
        result = json.loads(done.stdout)
        confirmed = cli("validate", str(faster), "--against", str(slow), *arguments, **own)
        sent = len(board.accepted)
        asked = cli("validate", str(slow), *arguments, "--set", "validate.approval=true", **own)
        assert asked.returncode == 1 and len(board.accepted) == sent
        assert "not submitted for ranking: nobody can be asked without" in json.loads(asked.stdout)["why"]
    assert result["speedup"]["ratio"] == pytest.approx(2.0) and result["speedup"]["faster"]
    assert result["cases"][0]["time_us"] == pytest.approx(40) and len(result["cases"]) == 7
    assert result["environment"]["compared"] == "times of separate submissions"
    assert [entry["mode"] for entry in board.accepted] == ["benchmark"] * 3 + ["leaderboard"]
    assert all(entry["code"].startswith("#!POPCORN leaderboard amd-identity") for entry in board.accepted)
    assert "ref_kernel" in board.accepted[1]["code"]
    assert confirmed.returncode == 0, confirmed.stderr
    assert "ranked on amd-identity: 40 us public, 44 us secret" in json.loads(confirmed.stdout)["why"]
    texts = done.stdout + done.stderr + confirmed.stdout + confirmed.stderr
    assert CLI_ID not in texts and str(SECRET_SEED) not in texts


@pytest.mark.slow
def test_the_refused_word_is_named_before_a_submission(lab: Path, cli: Cli, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text(f"{SEED.read_text()}\n# on the current stream\n")
    arguments = ("evaluate", str(kernel), "--problem", "identity", "--target", "kernelbot", *QUICK_CALL)
    with serving(Board()) as board:
        own = {"POPCORN_API_URL": board.address, "POPCORN_CLI_ID": CLI_ID}
        done = cli(*arguments, **own)
        assert done.returncode == 1 and "word `stream`" in done.stdout and "kernelbot.rewrite=true" in done.stdout
        assert not board.accepted
        rewritten = cli(*arguments, "--set", "kernelbot.rewrite=true", **own)
        assert rewritten.returncode == 0, rewritten.stderr
    assert board.accepted and "# on the current queue" in board.accepted[0]["code"]
    done = cli(*arguments, POPCORN_CLI_ID="", HOME=str(tmp_path))
    assert done.returncode == 2 and "popcorn register" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_a_campaign_with_the_leaderboard_as_judge(lab: Path, cli: Cli, prefect_api: str) -> None:
    changes = ("problem=identity", "language=triton", "target=kernelbot", "budget.kernels=4", "search.generations=1")
    arguments = [x for change in changes for x in ("--set", change)]
    with serving(Board()) as board:
        own = {"POPCORN_API_URL": board.address, "POPCORN_CLI_ID": CLI_ID, "PREFECT_API_URL": prefect_api}
        done = cli("optimize", "--json", *arguments, *QUICK_CALL, **own)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["kernels"] == 4 and result["verdicts"]["infrastructure"] == 0 and "ranked on" in result["why"]
    assert len({(entry["code"], entry["mode"]) for entry in board.accepted}) == len(board.accepted)
    champion = Path(result["source"]).read_text()
    assert champion.startswith("#!POPCORN leaderboard amd-identity")
    assert "kernel_scientist" not in champion


HIP = """
#include <hip/hip_runtime.h>
#include <ATen/hip/HIPStream.h>
// runs on the current stream
void run(torch::Tensor x) {
    hipStream_t stream = at::hip::getCurrentHIPStream();
    copy<<<blocks, 256, 0, stream>>>(x.data_ptr());
}
"""


def test_a_launch_is_rewritten_to_the_default_queue() -> None:
    text = without_word(HIP)
    assert text is not None and "<<<blocks, 256, 0>>>(x.data_ptr());" in text and "// runs on the current queue" in text
    assert lines_with_word(HIP) == [3, 4, 6, 7] and "line 3, 4, 6, 7" in refusal(HIP)
    assert without_word("int streams = 2;") is None and "use another word" in refusal("int streams = 2;")


@given(st.text(alphabet="stream STREAM/#*<>,;=\n\tab0", max_size=120))
def test_a_rewritten_source_has_no_word_and_other_sources_do_not_change(text: str) -> None:
    rewritten = without_word(text)
    assert rewritten is None or not lines_with_word(rewritten)
    if not re.search("stream", text, re.I):
        assert rewritten == text


KEYS = st.sampled_from(["secret_seed", "id", "runs", "result", "job", "score", "status"])
ANSWERS = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(ANSWERS)
def test_an_answer_of_any_shape_is_read_or_refused_and_holds_no_secret(value: object) -> None:
    read = loads(json.dumps(value))
    assert "secret_seed" not in json.dumps(read)
    with contextlib.suppress(ValueError):
        results.verdict(Submission.model_validate({"id": 1, "runs": read}))
