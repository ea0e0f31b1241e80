"""Training data from campaigns: every (parent, experiment, child, verdict, timings) with an ordinal reward.

The reward follows PerfRL (arXiv 2312.05657): grades of correctness first, then gain; RRHF needs such ranks within one
prompt.
"""

import math
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from kernel_scientist.campaign import results
from kernel_scientist.population.entry import beats
from kernel_scientist.population.lineage import Population
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Kernel, Verdict
from kernel_scientist.records.params import Params
from kernel_scientist.tracking.access import read_campaign

GRADES = {
    Verdict.REJECTED: -1,
    Verdict.COMPILE_ERROR: 0,
    Verdict.CRASHED: 1,
    Verdict.TIMEOUT: 1,
    Verdict.INCORRECT: 2,
    Verdict.NO_CHANGE: 2,
    Verdict.COMPILED: 2,
    Verdict.OK: 3,
}
"""Lowest for tampering; then by progress: compiles, completes, is correct. `FASTER` is for a kernel that the
test found faster than its parent. Kernels with other verdicts (`infrastructure`, `declined`, `absent`) are no
examples."""
FASTER = 4

_SECRET = re.compile(
    r"""(?x) \b(?: sk-[\w-]{16,} | hf_\w{16,} | gh[opsu]_\w{20,} | github_pat_\w{20,} | AKIA[0-9A-Z]{16}
    | AIza[\w-]{30,} | xox[abp]-[\w-]{10,} | eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,} ) | (?i:bearer)\s+[\w.~+/-]{16,}=*
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?-----END\ [A-Z ]*PRIVATE\ KEY-----""",
    re.S,
)
_NAMED = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.I)
LEAST_SECRET = 8
"""Values shorter than this are not treated as secrets, whatever the variable's name."""


def of_campaign(params: Params, campaign: str | None) -> list[dict[str, Any]]:
    """Return the examples of a recorded campaign, the latest by default. Raises SetupError when there are none."""
    recorded = read_campaign(params, campaign)
    name = recorded.run.campaign
    found = list(examples(recorded.population, name, recorded.problem, recorded.target))
    if not found:
        raise SetupError(
            f"campaign {name} of {recorded.problem} on {recorded.target} has no kernel that is an example: name "
            "another campaign, or another problem with --set problem=NAME"
        )
    return found


def examples(population: Population, campaign: str, problem: str, target: str) -> Iterator[dict[str, Any]]:
    """Yield one example per version of a kernel: first the versions that failed, then the recorded one.

    A version that failed holds the source of the next one as `repaired_by`, so repairs are training pairs as well.
    """
    scrub = partial(_scrubbed, secrets=_secrets())
    for trial in population:
        kernel, experiment = trial.kernel, trial.kernel.experiment
        if experiment is None or kernel.base is None or trial.evaluation.verdict not in GRADES:
            continue
        parent = population.get(kernel.base).kernel
        common = {
            "campaign": campaign,
            "problem": problem,
            "target": target,
            "language": kernel.language,
            "parent": {"kernel": parent.name, "source": parent.source},
            "experiment": experiment.model_dump(mode="json"),
            "authors": {role: author.model for role, author in kernel.authors.items()},
        }
        sources = [a.source for a in kernel.attempts] + [kernel.source]
        for attempt, repaired in zip(kernel.attempts, sources[1:], strict=True):
            if attempt.verdict not in GRADES:
                continue
            child = {"kernel": kernel.name, "source": attempt.source}
            outcome = {**attempt.model_dump(mode="json", exclude={"source"}), "reward": GRADES[attempt.verdict]}
            yield scrub({**common, "child": child, **outcome, "repaired_by": repaired})
        child = {"kernel": kernel.name, "source": kernel.source, "report": kernel.report}
        yield scrub({**common, "child": child, **_outcome(trial, parent)})


def _outcome(trial: Trial, parent: Kernel) -> dict[str, Any]:
    evaluation = trial.evaluation
    over_parent = evaluation.speedup_over(parent.name)
    predicted = {"case", "machine", "time_us", "limited_by"}
    return {
        **evaluation.model_dump(mode="json", include={"verdict", "reason", "labels"}),
        "timings": [one.model_dump(mode="json") for one in results.cases(evaluation.timings, {})],
        "predictions": [p.model_dump(include=predicted) for p in evaluation.predictions],
        "speedups": [results.of_speedup(one).model_dump(mode="json") for one in evaluation.speedups],
        "log2_over_parent": round(math.log2(over_parent.ratio), 4) if over_parent else None,
        "log2_over_parent_interval": [round(math.log2(bound), 4) for bound in over_parent.interval]
        if over_parent and over_parent.known
        else None,
        "reward": FASTER if beats(trial, parent.name) else GRADES[evaluation.verdict],
    }


def _secrets() -> list[str]:
    """Return the values of environment variables whose names sound secret, longest first."""
    return sorted({v for k, v in os.environ.items() if _NAMED.search(k) and len(v) >= LEAST_SECRET}, key=len)[::-1]


def _scrubbed(value: Any, secrets: Sequence[str]) -> Any:
    """Return the same JSON value without secrets, and without strings that look like keys."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[secret]")
        return _SECRET.sub("[secret]", value)
    if isinstance(value, dict):
        return {key: _scrubbed(field, secrets) for key, field in cast(dict[str, Any], value).items()}
    return [_scrubbed(item, secrets) for item in cast(list[Any], value)] if isinstance(value, list) else value
