"""The target `kernelbot`: GPU MODE's leaderboard times kernels. What can be found out here is found out here, before a
submission: the source is screened and compiled for the GPU; code for AMD's GPUs is also executed by the machine.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typing_extensions import override

from kernel_scientist.campaign.kernelbot import results
from kernel_scientist.campaign.kernelbot.api import Api, Submission, credentials
from kernel_scientist.campaign.kernelbot.leaderboard import LeaderboardClient, Register
from kernel_scientist.campaign.kernelbot.submitted_source import AS_SUBMISSION, refusal, submitted
from kernel_scientist.campaign.target import Procedure, Target, TuningSearch
from kernel_scientist.campaign.targets import on_this_host
from kernel_scientist.campaign.transport import Connect
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.hardware.gpus import Gpu
from kernel_scientist.hardware.peaks import roofline_us
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Confirmation, Evaluation
from kernel_scientist.records.kernel import REFERENCE, Case, Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.sandbox.failure import KernelFailure, failed

if TYPE_CHECKING:
    from kernel_scientist.evaluation.predicted import PredictedEvaluator

require = on_this_host.require
toolchain = on_this_host.modelled_toolchain


@contextmanager
def opened(params: Params, problem: Problem, address: Address, connect: Connect | None) -> Generator[Target]:
    """Open the leaderboard of the parameters or else of lab.yml. Raises SetupError."""
    assert address.gpu is not None
    board = params.kernelbot.leaderboard or problem.leaderboard.name
    with on_this_host.workers(params, problem, address) as pool:
        from kernel_scientist.evaluation.predicted import PredictedEvaluator

        if not board:
            raise SetupError(f"problem {problem.name} has no leaderboard in lab.yml; set kernelbot.leaderboard")
        register = Register(environment.root() / "data" / "kernelbot" / "submissions.db")
        client = LeaderboardClient(Api(credentials()), register, board, params.kernelbot)
        client.stopped = pool.stopped
        evaluator = PredictedEvaluator(problem, params.profile, params.harness, pool, address.gpu, by_model=False)
        yield LeaderboardTarget(params, problem, address, evaluator, address.gpu, client)


class SubmissionBuilder:
    """Compiles and checks here what can be, of sources that the leaderboard would take."""

    def __init__(self, evaluator: "PredictedEvaluator", client: LeaderboardClient) -> None:
        self.evaluator, self.client = evaluator, client

    def compile(self, kernel: Kernel) -> Evaluation:
        """Return a failure if the leaderboard would refuse the source; else compile and inspect it for the GPU."""
        if reason := refusal(submitted(kernel.source, self.client.board, self.client.settings)):
            return Evaluation(verdict=Verdict.COMPILE_ERROR, reason=reason)
        return self.evaluator.compile(kernel)

    def check(self, kernel: Kernel, so_far: Evaluation, cases: Sequence[Case] | None = None) -> Evaluation:
        """Execute the kernel here if that is possible; the leaderboard checks it in any case."""
        return so_far if self.evaluator.pool.machine is None else self.evaluator.check(kernel, so_far, cases)


class LeaderboardTarget(Target):
    """Evaluates kernels with the leaderboard: each source is one submission, one after the other."""

    pairs = False

    def __init__(
        self,
        params: Params,
        problem: Problem,
        address: Address,
        evaluator: "PredictedEvaluator",
        gpu: Gpu,
        client: LeaderboardClient,
    ) -> None:
        super().__init__(params, problem, address, evaluator.profile, gpu, evaluator.pool.stopped)
        self.evaluator, self.gpu, self.client, self.settings = evaluator, gpu, client, client.settings
        self.builder = SubmissionBuilder(evaluator, client)

    @override
    def close(self) -> None:
        self.evaluator.pool.close()

    @override
    def time(
        self, kernel: Kernel, so_far: Evaluation, against: Sequence[TimedSource], baseline: str | None = None
    ) -> Evaluation:
        """Submit the kernel for a public benchmark, compare its times with those of the other sources' submissions."""
        return self._evaluated(so_far, kernel, against, "benchmark") if so_far.verdict is Verdict.OK else so_far

    @override
    def tune(self, search: TuningSearch) -> Kernel | None:
        from kernel_scientist.campaign.tuning import model_tuner

        return model_tuner.best(self.evaluator, search, self.params.tuning.predictions)

    @override
    def confirmed(
        self,
        procedure: Procedure,
        kernel: Kernel,
        checked: Evaluation,
        others: Sequence[TimedSource],
        baseline: str | None,
    ) -> Confirmation:
        answer = procedure.approve(f"Submit {kernel.name} to the leaderboard {self.client.board} for ranking?")
        if answer.refusal:
            reason = f"not submitted for ranking: {answer}"
            unranked = checked.model_copy(update={"predictions": ()})  # they are not what counts there
            return Confirmation(confirmed=False, reason=reason, evaluation=unranked)

        def submit() -> Confirmation:
            return self._ranked(kernel, checked, others, baseline)

        done = procedure.time(kernel, submit, f"submit {kernel.name} for ranking")
        told = f"{done.reason}; submission {answer}" if answer.at else done.reason
        return done.model_copy(update={"reason": told})

    def _ranked(
        self, kernel: Kernel, so_far: Evaluation, others: Sequence[TimedSource], baseline: str | None
    ) -> Confirmation:
        """Submit a correct kernel for ranking. Its scores stand in the reason; the times are the public run's."""
        evaluation = self._evaluated(so_far, kernel, others, "leaderboard")
        if evaluation.verdict is not Verdict.OK:
            return Confirmation(confirmed=False, reason=evaluation.reason, evaluation=evaluation)
        scores = ", ".join(f"{v} us {k[7:]}" for k, v in evaluation.environment.items() if k.startswith("ranked_"))
        ranked = f"ranked on {self.client.board}: {scores or 'no score'}"
        faster = baseline is None or ((found := evaluation.speedup_over(baseline)) is not None and found.faster)
        reason = ranked if faster else f"{ranked}; not faster than {baseline}"
        return Confirmation(confirmed=faster and bool(scores), reason=reason, evaluation=evaluation)

    def _evaluated(self, so_far: Evaluation, kernel: Kernel, others: Sequence[TimedSource], mode: str) -> Evaluation:
        try:
            submission = self._submission(kernel.name, kernel.source, mode)
        except KernelFailure as failure:
            return failed(failure, so_far.model_copy(update={"predictions": ()}))
        runner = next((run.runner for run in submission.runs if run.runner), "")
        known = {
            **so_far.environment,
            "leaderboard": f"{self.client.board} on {self.settings.gpu}",
            "submission": str(submission.id),
            "runner": runner or "",
            "compared": "times of separate submissions",
            **{f"ranked_{kind}": f"{us:.6g}" for kind, us in results.ranked(submission).items()},
        }
        found = so_far.model_copy(update={"environment": known})
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
            results.speedup(name, times, theirs, self.params.harness.confidence, self.settings.margin)
            for name, theirs in rivals.items()
            if theirs
        )
        reference = rivals.get(REFERENCE, {})
        beside = {
            other.name: results.speedup(
                REFERENCE, rivals[other.name], reference, self.params.harness.confidence, self.settings.margin
            )
            for other in others
            if other.is_finalist and rivals[other.name] and reference
        }
        update = {"timings": results.timings(times, floors), "speedups": speedups, "beside": beside, "reason": ""}
        return found.model_copy(update=update)

    def _rival(self, other: TimedSource) -> Submission:
        text = AS_SUBMISSION if other.name == REFERENCE else other.source
        return self._submission(other.name, text, "benchmark")

    def _submission(self, name: str, source: str, mode: str) -> Submission:
        return self.client.result(name, submitted(source, self.client.board, self.settings), mode)
