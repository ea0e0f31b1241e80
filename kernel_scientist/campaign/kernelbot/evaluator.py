"""The evaluator whose times are the leaderboard's. What can be found out here is found out here, before a submission:
the source is screened and compiled for the GPU; code for AMD's GPUs is also executed by the machine.
"""

import re
from collections.abc import Sequence

from kernel_scientist.campaign.kernelbot import results
from kernel_scientist.campaign.kernelbot.api import Api, Submission, credentials
from kernel_scientist.campaign.kernelbot.leaderboard import LeaderboardClient, Register
from kernel_scientist.evaluation.predicted import PredictedEvaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Harness, Params
from kernel_scientist.sandbox.failure import KernelFailure, failed
from kernel_scientist.workers.pool import WorkerPool

AS_SUBMISSION = "from reference import ref_kernel\n\n\ndef custom_kernel(data):\n    return ref_kernel(data)\n"
"""The reference as a submission: the leaderboard puts `reference.py` beside it."""
WORD = "stream"
"""The leaderboard answers 500 to a source that contains this word anywhere, in any case."""
MOST_BYTES = 1_000_000
_ARGUMENT = re.compile(r"(<<<[^<>;]*?,[^<>;]*?,[^<>;]*?),\s*[^,<>;]*stream[^,<>;]*(>>>)", re.I)
"""The fourth launch argument: without it a launch goes to the default queue."""
_STATEMENT = re.compile(
    r"^[ \t]*(?:const\s+)?(?:auto|\w*stream_t)\s+\w+\s*=[^;\n]*stream[^;\n]*;[ \t]*\n?", re.I | re.M
)
_INCLUDE = re.compile(r"^[ \t]*#include\s*<[^>\n]*stream[^>\n]*>[ \t]*\n?", re.I | re.M)
_COMMENT = re.compile(r"(//|#(?!\s*(?:include|define|if|endif|pragma))|/\*)[^\n]*", re.I)


class KernelbotEvaluator(PredictedEvaluator):
    """Evaluates kernels with the leaderboard: each source is one submission, one after the other."""

    def __init__(
        self,
        problem: Problem,
        profile: str,
        harness: Harness,
        pool: WorkerPool,
        gpu: Gpu,
        leaderboard: LeaderboardClient,
    ) -> None:
        super().__init__(problem, profile, harness, pool, gpu)
        self.leaderboard, self.settings = leaderboard, leaderboard.settings
        leaderboard.stopped = pool.stopped

    @staticmethod
    def connected(params: Params, problem: Problem, pool: WorkerPool, gpu: Gpu) -> "KernelbotEvaluator":
        """Return the evaluator for the leaderboard of the parameters or else of lab.yml. Raises SetupError."""
        board = params.kernelbot.leaderboard or problem.leaderboard.name
        if not board:
            raise SetupError(f"problem {problem.name} has no leaderboard in lab.yml; set kernelbot.leaderboard")
        register = Register(environment.root() / "data" / "kernelbot" / "submissions.db")
        leaderboard = LeaderboardClient(Api(credentials()), register, board, params.kernelbot)
        return KernelbotEvaluator(problem, params.profile, params.harness, pool, gpu, leaderboard)

    def is_timed(self, kernel: Kernel) -> bool:
        """Whether a kernel can be timed: any can."""
        return True

    def compile(self, kernel: Kernel) -> Evaluation:
        """Return a failure if the leaderboard would refuse the source; else compile and inspect it for the GPU."""
        if reason := refusal(self._submitted(kernel.source)):
            return Evaluation(verdict=Verdict.COMPILE_ERROR, reason=reason)
        found = super().compile(kernel)
        return found.model_copy(update={"by_model": False})

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Execute the kernel here if that is possible; the leaderboard checks it in any case."""
        return so_far if self.pool.machine is None else super().check(kernel, so_far, cases)

    def time(
        self,
        kernel: Kernel,
        so_far: Evaluation,
        against: Sequence[TimedSource],
        baseline: str | None = None,
        cases: Sequence[Case] | None = None,
    ) -> Evaluation:
        """Submit the kernel for a public benchmark, compare its times with those of the other sources' submissions."""
        if so_far.verdict is not Verdict.OK:
            return so_far
        return self._evaluated(so_far, kernel, against, "benchmark")

    def confirm(
        self, kernel: Kernel, so_far: Evaluation, others: Sequence[TimedSource], baseline: str | None
    ) -> Confirmation:
        """Submit a correct kernel for ranking. Its scores stand in the reason; the times are the public run's."""
        evaluation = self._evaluated(so_far, kernel, others, "leaderboard")
        if evaluation.verdict is not Verdict.OK:
            return Confirmation(confirmed=False, reason=evaluation.reason, evaluation=evaluation)
        scores = ", ".join(f"{v} us {k[7:]}" for k, v in evaluation.environment.items() if k.startswith("ranked_"))
        ranked = f"ranked on {self.leaderboard.board}: {scores or 'no score'}"
        faster = baseline is None or ((found := evaluation.speedup_over(baseline)) is not None and found.faster)
        reason = ranked if faster else f"{ranked}; not faster than {baseline}"
        return Confirmation(confirmed=faster and bool(scores), reason=reason, evaluation=evaluation)

    def _evaluated(self, so_far: Evaluation, kernel: Kernel, others: Sequence[TimedSource], mode: str) -> Evaluation:
        try:
            submission = self.leaderboard.result(kernel.name, self._submitted(kernel.source), mode)
        except KernelFailure as failure:
            return failed(failure, so_far.model_copy(update={"by_model": False, "predictions": ()}))
        runner = next((run.runner for run in submission.runs if run.runner), "")
        known = {
            **so_far.environment,
            "leaderboard": f"{self.leaderboard.board} on {self.settings.gpu}",
            "submission": str(submission.id),
            "runner": runner or "",
            "compared": "times of separate submissions",
            **{f"ranked_{kind}": f"{us:.6g}" for kind, us in results.ranked(submission).items()},
        }
        found = so_far.model_copy(update={"environment": known, "by_model": False})
        verdict, reason = results.verdict(submission)
        if verdict is not Verdict.OK:
            return found.model_copy(update={"verdict": verdict, "reason": reason, "predictions": ()})
        cases = self.profile.benchmarks
        times = results.benchmarks(submission, cases)
        if not times:
            reason = f"submission {submission.id} has no benchmark times of this problem's {len(cases)} timed cases"
            return found.model_copy(update={"verdict": Verdict.INFRASTRUCTURE, "reason": reason, "predictions": ()})
        floors = {case.name: roofline_us(self.problem.work(case), self.gpu) for case in cases}
        rivals = {other.name: results.benchmarks(self._rival(other), cases) for other in others}
        speedups = tuple(
            results.speedup(name, times, theirs, self.harness.confidence, self.settings.margin)
            for name, theirs in rivals.items()
            if theirs
        )
        reference = rivals.get(REFERENCE, {})
        beside = {
            other.name: results.speedup(
                REFERENCE, rivals[other.name], reference, self.harness.confidence, self.settings.margin
            )
            for other in others
            if other.is_finalist and rivals[other.name] and reference
        }
        update = {"timings": results.timings(times, floors), "speedups": speedups, "beside": beside, "reason": ""}
        return found.model_copy(update=update)

    def _rival(self, other: TimedSource) -> Submission:
        text = AS_SUBMISSION if other.name == REFERENCE else other.source
        return self.leaderboard.result(other.name, self._submitted(text), "benchmark")

    def _submitted(self, text: str) -> str:
        """Return a kernel's source as it is submitted: with the leaderboard's header, rewritten if that is wanted."""
        if self.settings.rewrite:
            text = without_word(text) or text
        header = f"#!POPCORN leaderboard {self.leaderboard.board}\n#!POPCORN gpus {self.settings.gpu}\n"
        return text if text.startswith("#!POPCORN") else header + text


def lines_with_word(source: str) -> list[int]:
    """Return the numbers of the lines that contain the refused word."""
    return [number for number, line in enumerate(source.splitlines(), start=1) if WORD in line.lower()]


def without_word(source: str) -> str | None:
    """Return a source that launches on the default queue and does not contain the word; None if that takes a person.

    Launch arguments, declarations of the queue, includes and comments are rewritten, nothing else.
    """
    text = _ARGUMENT.sub(r"\1\2", source)
    text = _STATEMENT.sub("", _INCLUDE.sub("", text))
    text = _COMMENT.sub(lambda match: re.sub(WORD, "queue", match[0], flags=re.I), text)
    return None if lines_with_word(text) else text


def refusal(source: str) -> str:
    """Return why the leaderboard would refuse a source; empty if it would not."""
    if numbers := lines_with_word(source):
        where = ", ".join(map(str, numbers[:8]))
        offer = "set kernelbot.rewrite=true to launch on the default queue instead"
        offer = offer if without_word(source) is not None else "launch on the default queue and use another word"
        return f"the leaderboard refuses sources with the word `{WORD}`, comments included (line {where}): {offer}"
    if len(source.encode()) > MOST_BYTES:
        return f"the leaderboard refuses files over {MOST_BYTES:,} bytes"
    return ""
