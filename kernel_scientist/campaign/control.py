"""A control: two ways of searching at equal budget, on several problems with repeats, as campaigns that run in pairs.

The two campaigns of a pair have one `search.seed` and run one after the other; which is first alternates, so that a
drift of the machine favours neither. Each starts from the seeds and has a store of replies of its own: a reply that
another campaign paid for would be tokens that this one did not spend. A control that is started again skips campaigns
that have a result and resumes those that it had begun.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kernel_scientist import problems
from kernel_scientist.campaign import (
    campaign_process,
    comparing,
    control_sides,
    control_summary,
    hidden_sizes,
    preflight,
)
from kernel_scientist.campaign.campaign_process import folder_of, label
from kernel_scientist.records import environment
from kernel_scientist.records.campaign_result import CampaignResult
from kernel_scientist.records.comparison_result import ComparisonResult
from kernel_scientist.records.control_result import ControlCampaign, ControlProblem, ControlResult, Side
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Params, load

progress = logging.getLogger("kernel_scientist.progress")
SIDES: tuple[Side, Side] = ("first", "second")
SETTINGS, RESULT, COMPARISON = "sides.json", "result.json", "comparison.json"
"""Files: the parameters of both sides; a campaign's result that stands; a problem's comparison."""


@dataclass(frozen=True)
class ControlRun:
    """One campaign that a control is to run."""

    place: Path
    side: Side
    seed: int


@dataclass(frozen=True)
class Control:
    """The problems, sides and repeats of a control, and its folder."""

    name: str
    places: tuple[Path, ...]
    overrides: tuple[tuple[str, ...], tuple[str, ...]]
    """Of the first and of the second side: they follow `common`."""
    repeats: int
    common: tuple[str, ...] = ()
    """Overrides of both sides."""
    params_file: str | None = None

    @staticmethod
    def of(
        name: str,
        paths: Sequence[str],
        first: Sequence[str],
        second: Sequence[str],
        repeats: int,
        common: Sequence[str] = (),
        params_file: str | None = None,
    ) -> "Control":
        """Return the control of the problems at and below some paths. Raises SetupError for what cannot be compared."""
        campaign_process.folder("control", name)
        if repeats < 1:
            raise SetupError(f"a control needs at least one repeat, and --repeats is {repeats}")
        places = tuple(problems.below(paths))
        if twice := next((one for one in places if [label(other) for other in places].count(label(one)) > 1), None):
            raise SetupError(f"two problems are called {label(twice)}: put them into two controls")
        control = Control(name, places, (tuple(first), tuple(second)), repeats, tuple(common), params_file)
        control_sides.require(*control.params, (*common, *first, *second))
        control.require_same()
        control.require_pairs()
        return control

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return campaign_process.folder("control", self.name)

    @property
    def params(self) -> tuple[Params, Params]:
        """The parameters of both sides. Raises SetupError."""
        first, second = (load(self.params_file, (*self.common, *own)) for own in self.overrides)
        return first, second

    @property
    def _settings(self) -> str:
        return "\n".join(control_sides.settled(one).model_dump_json(by_alias=True) for one in self.params)

    def require_same(self) -> None:
        """Raise SetupError if a control of this name was begun with other parameters."""
        file = self.folder / SETTINGS
        if file.exists() and file.read_text() != self._settings:
            raise SetupError(f"control {self.name} was begun with other parameters: give this one another --name")

    def require_pairs(self) -> None:
        """Raise SetupError, before anything is paid, if a side cannot run on a problem, or pairs could not be timed."""
        for place in self.places:
            for own in self.overrides:
                params = load(self.params_file, (*self.common, *own, f"problem={place}"))
                problem, address = preflight.resolve(params)
                hidden_sizes.require(params, problem, address)
                if reason := address.why_not_paired:
                    raise SetupError(f"{reason}: run the control there")

    def begin(self) -> None:
        """Make the folder, the name by which the campaigns are found again, and note the parameters."""
        campaign_process.begin(self.folder)
        environment.keep(self.folder / SETTINGS, self._settings)

    def runs(self) -> tuple[ControlRun, ...]:
        """Return the campaigns in the order in which they run: repeat by repeat, within it problem by problem."""
        found = list[ControlRun]()
        for seed in range(1, self.repeats + 1):
            for number, place in enumerate(self.places):
                order = SIDES if (seed + number) % 2 else SIDES[::-1]
                found += [ControlRun(place, side, seed) for side in order]
        return tuple(found)

    def run(self, one: ControlRun, api: str | None = None) -> ControlCampaign:
        """Run or resume a campaign. One that has no result says why. `api`: as for `campaign_process.run`."""
        own = folder_of(self.folder, one.place) / f"{one.side}-{one.seed}"
        known = ControlCampaign(problem=label(one.place), side=one.side, seed=one.seed)
        if (kept := _result(own / RESULT)) is None:
            place_of = f"campaign {self.runs().index(one) + 1} of {len(self.runs())}"
            log = own / campaign_process.LOG
            progress.info("%s, %s side on %s, whose log is %s", place_of, one.side, known.problem, log)
            last = campaign_process.run(own, self.settings(one, own), self.params_file, api)
            kept = _result(own / campaign_process.METRICS)
            if kept is None or not campaign_process.is_decided(kept):
                return known.model_copy(update={"stopped": (kept.stopped or kept.why if kept else last)[:500]})
            environment.keep(own / RESULT, kept.model_dump_json(indent=1))
        found = ("campaign", "kernels", "tokens", "usd", "stopped")
        return known.model_copy(update={name: getattr(kept, name) for name in found})

    def settings(self, one: ControlRun, own: Path) -> list[str]:
        """Return the overrides of a campaign whose folder is `own`; the last ones hold."""
        tag = f"{campaign_process.tag(self.folder, own.parent)}-{one.side}-{one.seed}"
        fixed = (f"problem={one.place}", f"search.seed={one.seed}", "search.from=seeds", f"tracking.suite={tag}")
        return [*self.common, *self.overrides[SIDES.index(one.side)], *fixed, f"llm.replies={own / 'replies'}"]

    def result(self, campaigns: Sequence[ControlCampaign]) -> ControlResult:
        """Return how the sides compare on each problem and over all. The incumbents of new pairs are timed now."""
        found = [self._compared(place, campaigns) for place in self.places]
        return control_summary.summary(self.name, self.overrides, self.repeats, self.params[0].budget, found, campaigns)

    def _compared(self, place: Path, campaigns: Sequence[ControlCampaign]) -> ControlProblem:
        """Compare the pairs of one problem of which both campaigns have a result."""
        here = [one for one in campaigns if one.problem == label(place)]
        named = {(one.side, one.seed): one.campaign for one in here if one.campaign}
        seeds = [seed for seed in range(1, self.repeats + 1) if all((side, seed) in named for side in SIDES)]
        first, second = ([named[side, seed] for seed in seeds] for side in SIDES)
        if not seeds:
            why = next((one.stopped for one in here if not one.campaign), "")
            return control_summary.of_problem(label(place), self.repeats, why or "no pair has both results")
        file = folder_of(self.folder, place) / COMPARISON
        if (known := _kept(file)) is None or [list(side.campaigns) for side in known.sides] != [first, second]:
            params = load(self.params_file, (*self.common, *self.overrides[0], f"problem={place}"))
            try:
                known = comparing.compare_campaigns(params, first, second, at_end=True)
            except SetupError as error:
                return control_summary.of_problem(label(place), self.repeats, str(error))
            if not known.untimed:
                environment.keep(file, known.model_dump_json(indent=1))
        return control_summary.of_problem(label(place), self.repeats, "", known)


def _result(file: Path) -> CampaignResult | None:
    """Return the result of a campaign in a file; None if there is none, or one of another version of this program."""
    try:
        return CampaignResult.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _kept(file: Path) -> ComparisonResult | None:
    """Return the comparison in a file, as `_result` does."""
    try:
        return ComparisonResult.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
