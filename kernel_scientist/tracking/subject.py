"""What a campaign is about. It tells apart the campaigns of an MLflow experiment that several problems share."""

import re
from dataclasses import dataclass, replace

from kernel_scientist.records.names import slug
from kernel_scientist.tracking.campaign_run import CampaignRun

PROBLEM, LANGUAGE, TARGET = "problem", "language", "target"
"""Tags of a campaign's run."""
_ID = re.compile(r"(.+)-\d{8}-\d{6}(?:-\w+)?")
"""A campaign's id: problem and target, date and time, a mark."""


@dataclass(frozen=True)
class Subject:
    """A problem, a language and a target."""

    problem: str
    """Its name."""
    language: str
    """Empty: any."""
    target: str
    """The resolved target's name."""

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags of a campaign's run."""
        return {PROBLEM: self.problem, LANGUAGE: self.language, TARGET: self.target}

    @property
    def in_any_language(self) -> "Subject":
        """Return the same problem and target."""
        return replace(self, language="")

    def is_of(self, run: CampaignRun) -> bool:
        """Whether a campaign is about it. Of one without the tags, of an older version, the id and the params tell."""
        if self.language and run.params.get("language", self.language) != self.language:
            return False
        if PROBLEM in run.tags:
            return (run.tags[PROBLEM], run.tags[TARGET]) == (self.problem, self.target)
        dated = _ID.fullmatch(run.campaign)
        return dated is None or dated[1] == f"{slug(self.problem)}-{self.target}"

    def other(self, run: CampaignRun) -> str:
        """Return the sentence for a campaign that is about another problem or target."""
        dated = _ID.fullmatch(run.campaign)
        before = f"{run.tags[PROBLEM]} on {run.tags[TARGET]}" if PROBLEM in run.tags else dated and dated[1]
        return f"campaign {run.campaign} is of {before}, not of {self.problem} on {self.target}: {named(run)}"


def named(run: CampaignRun) -> str:
    """Return what a command lacks that is to find a campaign."""
    known = {name: run.tags.get(name) or run.params.get(name) for name in (PROBLEM, TARGET)}
    own = " ".join(f"--set {name}={value}" for name, value in known.items() if value)
    return f"add {own}" if own else "name its problem by --set problem=NAME"
