"""What an agent may ask about problems and about one kernel. The answers are JSON; sources come as texts."""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_scientist import api
from kernel_scientist.agents import withheld
from kernel_scientist.compilers.source import language_of
from kernel_scientist.problems import find, names
from kernel_scientist.problems.kernelbench import PRECISIONS
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.evaluation import COUNTERS
from kernel_scientist.records.params import load
from kernel_scientist.records.results import EvaluationResult

Json = dict[str, Any]
VERDICT = ("problem", "target", "verdict", "reason", "coverage", "labels", "evidence")
TIMES = ("geomean_us", "cases", "speedup")
INSIDE = ("predicted", "sampled", "counters", "compile", "clocks")
OF_COMPILE = ("ok", "compiler", "code_bytes", "instructions", "hot_loop", "findings", "missed", "objects")
"""Fields of a compile report that an agent gets."""


@dataclass(frozen=True)
class Settings:
    """The options --set and --params with which the server was started; they apply to every call."""

    overrides: tuple[str, ...] = ()
    params_file: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings as arguments of `kernel_scientist.api`."""
        return {"overrides": self.overrides, "params_file": self.params_file}

    def with_overrides(self, more: Sequence[str]) -> "Settings":
        """Return the settings with others after them."""
        return Settings((*self.overrides, *more), self.params_file)


@contextmanager
def written(*sources: str | None) -> Generator[list[Path | None]]:
    """Write sources to files for the duration of a call; None stays None. Error messages do not name their folder."""
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        files = [Path(folder) / f"kernel{number or ''}.py" for number in range(len(sources))]
        for file, source in zip(files, sources, strict=True):
            if source is not None:
                file.write_bytes(source.encode(errors="surrogatepass"))
        try:
            yield [file if source is not None else None for file, source in zip(files, sources, strict=True)]
        except SetupError as error:
            raise SetupError(str(error).replace(f"{folder}/", "")) from error


def is_listed(problem: str) -> bool:
    """Whether a problem is one below `problems/`: an agent may not have other files loaded."""
    name, _, precision = problem.rpartition("@")
    known = names()
    return problem in known or (name in known and precision in PRECISIONS)


def require_listed(problem: str) -> None:
    """Raise SetupError for a problem that is not listed."""
    if not is_listed(problem):
        raise SetupError(f"unknown problem {problem!r}; known: {', '.join(names())}")


def problems(_: Settings) -> Json:
    """List the problems."""
    return {"problems": [row.model_dump(mode="json", exclude_defaults=True) for row in api.list_problems()]}


def problem(_: Settings, problem: str, seed: str = "") -> Json:
    """Describe a problem: text, reference, public cases, seeds; with `seed` the source of that seed only.

    What was assumed about it is left out, as it says by what rule the held-out cases are made.
    """
    if seed:
        files = {file.name: file for file in sorted((find(problem).folder / "seeds").glob("*.py"))}
        if (file := files.get(seed)) is None:
            raise SetupError(f"problem {problem} has no seed {seed!r}; its seeds: {', '.join(files) or 'none'}")
        return {"problem": problem, "seed": seed, "source": file.read_text()}
    shown = api.describe_problem(problem).model_dump(mode="json", exclude_defaults=True, exclude={"folder", "assumed"})
    return {**shown, "reference": find(problem).reference_text}


def evaluate(
    settings: Settings, problem: str, source: str, target: str | None = None, against: str | None = None
) -> Json:
    """Compile, check and time a kernel beside the reference and another one."""
    with written(source, against) as (file, other):
        assert file is not None
        result = api.evaluate(file, problem, target, other, **settings.arguments)
    return _told(result, *VERDICT, *TIMES)


def check(settings: Settings, problem: str, source: str, target: str | None = None) -> Json:
    """Compile a kernel and compare its outputs on every checking case."""
    with written(source) as (file,):
        assert file is not None
        return _told(api.check(file, problem, target, **settings.arguments), *VERDICT)


def profile(settings: Settings, problem: str, source: str, target: str | None = None, case: str = "") -> Json:
    """Check a kernel and profile its calls on a timed case: what its code is and where the time goes."""
    with written(source) as (file,):
        assert file is not None
        result = api.profile_kernel(file, problem, target, case, **settings.arguments)
    found = _told(result, *VERDICT, *TIMES, *INSIDE)
    why = result.environment.get(COUNTERS, "")
    return found | ({"unprofiled": why} if why.startswith("none") else {})


def compile(settings: Settings, problem: str, source: str, machine: str = "mi300x") -> Json:
    """Compile a kernel: C++ for this CPU, others for a GPU that need not be present. Nothing is checked."""
    with written(source) as (file,):
        assert file is not None
        if language_of(source) == "cpp":
            return _told(api.check(file, problem, "cpu", False, **settings.arguments), *VERDICT, "compile")
        found = api.compile(file, problem, machine, lines=False, **settings.arguments).model_dump(mode="json")
        return {key: value for key, value in found.items() if value or key == "ok"}


def compare(settings: Settings, first: list[str], second: list[str], recorded: bool = False) -> Json:
    """Compare campaigns at equal budget."""
    from kernel_scientist.tracking import found

    params = load(settings.params_file, settings.overrides)
    known = found.find(params.tracking.uri, first[0]) if first else None
    if known is None:
        raise SetupError(f"there is no campaign {first[0] if first else ''!r} in the MLflow store")
    subject = [f"{key}={known.run.params[key]}" for key in ("problem", "language", "target")]
    result = api.compare(first, second, recorded, **settings.with_overrides(subject).arguments)
    return {"problem": known.run.params["problem"], **result.model_dump(mode="json")}


def _told(result: EvaluationResult, *fields: str) -> Json:
    """Return fields of a result, without what is empty."""
    told = {key: value for key, value in result.model_dump(mode="json", include={*fields}).items() if value}
    if report := told.get("compile"):
        told["compile"] = {key: report[key] for key in OF_COMPILE if report.get(key)}
    return {"problem": result.problem, "verdict": result.verdict.value, **told}


def without_held_out(answer: Json) -> Json:
    """Return an answer without what it tells of held-out cases of its problem."""
    name = answer.get("problem")
    if not isinstance(name, str):
        return answer
    try:
        hidden = withheld.names(find(name))
    except SetupError:  # it cannot be loaded here, so nothing was evaluated
        hidden = frozenset[str]()
    return withheld.without(answer, hidden)
