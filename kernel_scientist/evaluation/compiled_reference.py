"""The problem's reference compiled by torch.compile, a second baseline."""

from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.evaluation import Bar
from kernel_scientist.records.kernel import COMPILED, Verdict
from kernel_scientist.sandbox.failure import KernelFailure


def compiled(evaluator: Evaluator) -> tuple[Bar, TimedSource | None]:
    """Compile the reference by torch.compile, and verify an output of each timed case.

    Its worker may start the compiler until it is sealed, because the reference is trusted; later workers get the
    compiled files. If that fails there is no source, and the bar says why.
    """
    driver = evaluator.driver
    source = TimedSource(name=COMPILED, source=evaluator.problem.compiled_source, compiles=True)
    cases = (*evaluator.profile.benchmarks, *evaluator.profile.held_out)
    try:
        with evaluator.pool.worker(compiles=True) as worker:
            driver.load(worker, source.source, cases)
            for case in cases:
                inputs = [driver.inputs.draw(case)]
                _, outputs = driver.row(worker, {0: inputs[0]})
                driver.verify(inputs, outputs)
    except KernelFailure as failure:
        return Bar(name=COMPILED, verdict=failure.verdict, reason=failure.reason), None
    return Bar(name=COMPILED, verdict=Verdict.OK), source
