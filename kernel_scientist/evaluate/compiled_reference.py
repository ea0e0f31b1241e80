"""The problem's reference, compiled by torch.compile: a second baseline beside the eager reference.

It is compiled in a worker that may start the compiler until it is sealed, once for each timed case; later workers get
the compiled files. The reference is trusted, so nothing that a model wrote may start a program.
"""

from kernel_scientist.evaluate.evaluator import Evaluator
from kernel_scientist.evaluate.timing.plan import TimedSource
from kernel_scientist.records.evaluation import Bar
from kernel_scientist.records.kernel import COMPILED, Verdict
from kernel_scientist.sandbox.failure import KernelFailure


def compiled(evaluator: Evaluator) -> tuple[Bar, TimedSource | None]:
    """Compile the reference for all timed cases and verify an output of each; return no source if that fails.

    The bar's reason says why: what torch.compile cannot compile has no time.
    """
    source = TimedSource(name=COMPILED, source=evaluator.problem.compiled_source, compiles=True)
    cases = (*evaluator.profile.benchmarks, *evaluator.profile.held_out)
    driver = evaluator.driver
    try:
        with evaluator.pool.worker(compiles=True) as worker:
            driver.load(worker, source.source, cases)
            for case in cases:
                inputs = [driver.inputs.draw(case)]
                _, outputs = driver.row(worker, {0: inputs[0]})
                driver.verify(worker, inputs, outputs)
    except KernelFailure as failure:
        return Bar(name=COMPILED, verdict=failure.verdict, reason=failure.reason), None
    return Bar(name=COMPILED, verdict=Verdict.OK), source
