"""A control for the terminal: what was compared, each problem, each pair, what was used, what the tests say."""

from collections.abc import Iterator, Mapping, Sequence

from kernel_scientist.records import factors
from kernel_scientist.records.control_result import ControlProblem, ControlResult, SignFlipTest
from kernel_scientist.records.text import number_of
from kernel_scientist.report.comparison import SIDES, speed
from kernel_scientist.report.output import Table

FREEDOM = "over problems, Student's t with"


def shown(result: ControlResult) -> Iterator[str | Table]:
    """Yield the result of a control."""
    yield f"control {result.control}: first / second, {result.times or 'no'} times"
    for name, own in zip(SIDES, result.overrides, strict=True):
        yield f"- {name}: {', '.join(own) or 'the parameters as they are'}"
    yield _budget(result)
    yield _table([_problem(one) for one in result.problems], "problems")
    yield _table([row for one in result.problems for row in _pairs(one)], "pairs, at each campaign's end")
    used = [{"side": name, **dict(one)} for name, one in zip(SIDES, result.used, strict=True)]
    yield _table(used, "used by all campaigns of a side")
    without = [one for one in result.campaigns if not one.campaign]
    rows = [{"problem": one.problem, "side": one.side, "seed": one.seed, "reason": one.stopped} for one in without]
    if rows:
        yield _table(rows, "campaigns without a result")
    freedom = f"{FREEDOM} {result.freedom} degree{'s' * (result.freedom != 1)} of freedom"
    told = f"{factors.factor(result.ratio, result.interval)} ({freedom})" if result.interval else result.interval_why
    yield f"first / second over problems: {told}"
    yield from (_test(one) for one in (result.over_problems, result.over_pairs))
    yield f"conclusion: {result.conclusion}"


def _table(rows: Sequence[Mapping[str, object]], title: str) -> Table:
    return Table({column: column for row in rows for column in row}, rows, title)


def _budget(result: ControlResult) -> str:
    limits = result.budget
    parts = [number_of(limits.kernels, "kernel")]
    parts += ["no limit of tokens" if limits.tokens is None else f"{limits.tokens} tokens"]
    parts += [] if limits.usd is None else [f"{limits.usd:g} USD"]
    common = f"every campaign tried {result.common_kernels} kernels and used {result.common_tokens} tokens or more"
    return f"budget of each campaign: {', '.join(parts)}, {limits.minutes:g} minutes; {common}"


def _problem(one: ControlProblem) -> dict[str, object]:
    found = one.comparison
    ratio = speed(one.ratio, found.interval, found.by_model) if found and one.ratio else ""
    missing = f"{number_of(one.missing, 'pair')} without both results" if one.missing else ""
    return {
        "problem": one.problem,
        "pairs": one.pairs,
        "first / second": ratio,
        "remark": "; ".join(filter(None, (one.reason, missing if one.pairs else ""))),
    }


def _pairs(one: ControlProblem) -> Iterator[dict[str, object]]:
    found = one.comparison
    for pair in found.pairs if found else ():
        yield {
            "problem": one.problem,
            "first": f"{pair.first.kernel or ''} of {pair.first.campaign}",
            "second": f"{pair.second.kernel or ''} of {pair.second.campaign}",
            "first / second": speed(pair.ratio, pair.interval, bool(found and found.by_model)),
        }


def _test(one: SignFlipTest) -> str:
    count = number_of(one.count, one.unit)
    if one.p is None:
        return f"sign-flip test over {count}: p cannot be below {one.least:.3g}, so it cannot reach 5 %"
    return f"sign-flip test over {count}, two-sided: p = {one.p:.4f}"
