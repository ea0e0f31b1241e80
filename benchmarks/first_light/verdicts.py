"""Steps of first light with the evaluator: one seed, known differences, cheats, hardware counters."""

import time
from typing import Any

from benchmarks.first_light.here import Here
from benchmarks.first_light.outcome import Facts, NotHereError, StepError
from kernel_scientist import problems
from kernel_scientist.evaluation.evaluator import Evaluator
from kernel_scientist.evaluation.timing.plan import TimedSource
from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Kernel, Verdict

LENGTHS_US = (50, 1000)
NOISE_S, CHEATS_S, PROBLEMS_S = 38.0, 62.0, 50.0
"""Seconds after which no further comparison or kernel is begun, and in which all problems that are begun should end."""
STEPS, MORE, GAIN = 1 << 14, 1.03, 1.05
"""Steps of the first loop; how much longer the longer one takes; from which factor on a cheat has gained."""


def seed_passes(here: Here) -> Facts:
    """A seed of `identity` passes the whole evaluator: screened, compiled, checked on all cases, timed."""
    problem, kernel = here.problem("identity"), here.kernel("identity")
    with here.pool() as pool:
        evaluator = Evaluator(problem, "auto", pool.harness, pool)
        evaluation = evaluator.compile(kernel)
        yield _told(evaluation)
        evaluation = evaluator.check(kernel, evaluation)
        yield _told(evaluation)
        evaluation = evaluator.time(kernel, evaluation, [evaluator.reference()], cases=[here.case("identity")])
        yield _told(evaluation)
    if evaluation.verdict is not Verdict.OK or not evaluation.timings:
        raise StepError(f"{kernel.name} is {evaluation.verdict.value}: {evaluation.reason}")


def _told(evaluation: Evaluation) -> dict[str, Any]:
    keys = {"verdict", "reason", "evidence", "labels", "seconds", "sandbox", "timings", "speedups", "clocks"}
    return evaluation.model_dump(mode="json", include=keys)


def known_differences(here: Here) -> Facts:
    """Kernels that take as long as they are told to: the same source, 3 % more, twice as much, each compared anew."""
    from tests.cheats import test_gpu as spinning

    if here.standin:
        raise NotHereError("the stand-in runs no kernel that takes a time of its own choice")
    found: dict[str, list[float]] = {}
    false = missed = runs = 0
    end = time.monotonic() + NOISE_S
    with here.pool(blocks=4, pairs=8) as pool:
        evaluator = Evaluator(here.problem("identity"), "auto", pool.harness, pool)
        first = _timed(evaluator, spinning.spinning(STEPS), [])
        per_us = STEPS / first.timings[0].time_us
        for turn in range(10):
            us = LENGTHS_US[turn % 2]
            if time.monotonic() > end:
                break
            steps = round(us * per_us)
            others = {"twin": steps, "more": round(MORE * steps), "double": 2 * steps}
            evaluation = _timed(evaluator, spinning.spinning(steps), list(others.items()))
            against = {speedup.against: speedup for speedup in evaluation.speedups}
            runs, false = runs + 1, false + against["twin"].faster
            missed += not against["more"].faster
            for name in others:
                found.setdefault(f"{name}, {us} us", []).append(against[name].ratio)
            yield {f"run {turn}": {name: (one.ratio, one.interval) for name, one in against.items()}, "ratios": found}
    yield {"runs": runs, "equal_called_faster": false, "three_percent_missed": missed}
    yield {"note": f"{runs} runs: {false} times the same source was called faster, {missed} times 3 % was missed"}
    if not runs or false:
        raise StepError("the same source was called faster, or nothing was compared in the time")


def _timed(evaluator: Evaluator, source: str, others: list[tuple[str, int]]) -> Evaluation:
    from tests.cheats import test_gpu as spinning

    against = [TimedSource(name=name, source=spinning.spinning(steps)) for name, steps in others]
    kernel = Kernel(name="k", language="triton", source=source)
    evaluator.forgo_noise()
    base = against or [evaluator.reference()]
    return evaluator.time(kernel, evaluator.compile(kernel), base, base[0].name, cases=(spinning.TICK,))


def cheats_fail(here: Here) -> Facts:
    """One cheat of each family, then the second ones, and honest kernels, as far as the time reaches."""
    if here.standin:
        raise NotHereError("the corpus is written in Triton for a GPU")
    from tests.cheats import corpus
    from tests.cheats import test_gpu as suite

    fixtures, end = corpus.spread(corpus.load(corpus.GPU)), time.monotonic() + CHEATS_S
    wrong, tried = list[str](), 0
    with here.pool(build_timeout_s=30, gpu_warmup_s=0.2, blocks=4, call_timeout_s=10) as pool:
        for fixture in fixtures:
            if time.monotonic() > end:
                break
            problem, case = fixture.problem, suite.CASES[fixture.problem]
            evaluator = Evaluator(here.problem(problem), "auto", pool.harness, pool)
            evaluator.forgo_noise()
            honest = [TimedSource(name=name, source=suite.SOURCES[name]) for name in corpus.GPU_HONEST_WORK[problem]]
            evaluation = suite.evaluated(evaluator, fixture.source, honest, case)
            ratios = {speedup.against: speedup.ratio for speedup in evaluation.speedups}
            gained = not fixture.gains and all(ratios[source.name] > GAIN for source in honest if ratios)
            good = evaluation.verdict in fixture.expect and not (evaluation.verdict is Verdict.OK and gained)
            tried, wrong = tried + 1, wrong + ([] if good else [fixture.name])
            words = {"verdict": evaluation.verdict.value, "as_expected": good, "reason": evaluation.reason[:300]}
            clocks = [clock.model_dump(mode="json") for clock in evaluation.clocks]
            yield {fixture.name: {**words, "cheat": fixture.cheat, "faster_than": ratios, "clocks": clocks}}
    yield {"tried": tried, "of": len(fixtures), "not_as_expected": wrong}
    yield {"note": f"{tried - len(wrong)} of {tried} ended as they should, {len(fixtures)} are known"}
    if wrong:
        raise StepError(f"not as expected: {', '.join(wrong)}")


def problems_are_evaluated(here: Here) -> Facts:
    """The fastest Triton seed of every problem, on all its cases: verdict, speedup, and the seconds it takes."""
    verdicts: list[str] = []
    end, longest_s = time.monotonic() + PROBLEMS_S, 0.0
    with here.pool(build_timeout_s=60) as pool:
        for name in ("rmsnorm", *(name for name in problems.names() if name != "rmsnorm")):
            if time.monotonic() + longest_s > end:
                break
            start, kernel = time.monotonic(), here.kernel(name)
            evaluator = Evaluator(here.problem(name), "auto", pool.harness, pool)
            evaluator.forgo_noise()
            try:
                evaluation = evaluator.check(kernel, evaluator.compile(kernel))
                evaluation = evaluator.time(kernel, evaluation, [evaluator.reference()])
            except Exception as error:  # the other problems are wanted, whatever this is
                yield {name: f"{type(error).__name__}: {error}"[:600]}
                verdicts.append("failed")
                continue
            longest_s = max(longest_s, time.monotonic() - start)
            verdicts.append(evaluation.verdict.value)
            yield {name: {"kernel": kernel.name, "all_s": time.monotonic() - start, **_told(evaluation)}}
    right = sum(verdict == Verdict.OK.value for verdict in verdicts)
    yield {"note": f"{right} of {len(verdicts)} problems' seeds are ok"}
    if right < len(verdicts):
        raise StepError(f"{len(verdicts) - right} of {len(verdicts)} seeds are not ok")


def counters_are_read(here: Here) -> Facts:
    """The vendor's profiler reads hardware counters of a seed, confined as in a campaign."""
    if here.standin:
        raise NotHereError("a profiler counts on a GPU")
    from kernel_scientist.profile import counting

    kernel, refusal = here.kernel("identity"), ""
    for sandbox in ("auto", "none"):
        with here.pool(counters_timeout_s=35, sandbox=sandbox) as pool:
            evaluator = Evaluator(here.problem("identity"), "auto", pool.harness, pool)
            found = counting.count(evaluator, kernel, Evaluation(verdict=Verdict.OK))
        said = found.environment.get(counting.KEY, "")
        yield {
            f"sandbox {sandbox}": {"counters": [one.model_dump(mode="json") for one in found.counters], "said": said}
        }
        if found.counters and not refusal:
            yield {"note": said}
            return
        refusal = refusal or said
        if found.counters:
            raise StepError(f"it counts only without a sandbox: {refusal}")
    raise StepError(refusal)
