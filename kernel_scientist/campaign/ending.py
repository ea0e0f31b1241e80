"""How a campaign ended: why, after how long, and the command that goes on with it."""

import re
import shlex
from dataclasses import replace

from kernel_scientist.records import overrides
from kernel_scientist.records.base import Record
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import load
from kernel_scientist.tracking import campaign_params
from kernel_scientist.tracking.campaign_run import ENDED, ENDED_S, WITHOUT_A_WORD, CampaignRun
from kernel_scientist.tracking.mlflow_store import MlflowStore

NOTHING_MORE = "nothing more to try"
ALL_DONE = "all generations are done"
COMPLETE = (NOTHING_MORE, ALL_DONE)
"""Beginnings of the reasons of a campaign that did all it was to do."""
BUDGET = re.compile(r"\bbudget\.(?:kernels|minutes|usd|tokens)\b")
"""A budget that a reason names."""


class Ending(Record):
    """How a campaign ended."""

    why: str = ""
    """Why, in a few words; empty while it runs, and of campaigns of older versions."""
    ended_s: float = 0.0
    """The campaign's wall time in seconds when its search ended; 0 if its process ended without a word."""
    resume: str = ""
    """The command that goes on; empty if it did all that it was to do."""

    @property
    def words(self) -> str:
        """Return why it ended and how to go on; empty if that is not known."""
        after = f" after {self.ended_s / 60:.1f} min" if self.ended_s else ""
        return f"it ended{after}: {self.why}{self.resume and f'; `{self.resume}` goes on'}" if self.why else ""


def of(run: CampaignRun) -> Ending:
    """Return how a recorded campaign ended."""
    if not (why := run.tags.get(ENDED, "")):
        return Ending()
    ended_s = 0.0 if why == WITHOUT_A_WORD else run.metrics.get(ENDED_S, 0.0)  # that of an earlier session
    return Ending(why=why, ended_s=ended_s, resume=command(run, why))


def noted(run: CampaignRun, why: str, ended_s: float) -> CampaignRun:
    """Return a campaign's run with why it ended, and its wall time in seconds when its search ended."""
    return replace(run, tags=run.tags | {ENDED: why}, metrics=run.metrics | {ENDED_S: ended_s})


def record(store: MlflowStore, run: CampaignRun) -> None:
    """Record how a campaign ended, which its `run` says."""
    store.note(run, ENDED, run.tags[ENDED])
    store.log_curve(run, [(0, {ENDED_S: run.metrics[ENDED_S]})])


def command(run: CampaignRun, why: str = "") -> str:
    """Return the command that resumes a campaign with its parameters, as far as they differ from params.yaml,
    and with its problem.

    `why`: why it ended. A budget that was spent is doubled. Empty for a campaign that did all that it was to do,
    and for one whose kernels a client of the MCP server writes, which goes on with it.
    """
    submitted = run.params.get("search.strategy") == "agent" and not run.params.get("search.agent")
    if why.startswith(COMPLETE) or submitted:
        return ""
    try:
        usual = campaign_params.texts(load(None).model_dump(by_alias=True))
    except SetupError:  # somebody edits params.yaml: the command names all parameters
        usual = {}
    # the problem always: params.yaml may have named another one for this campaign alone, as `make run PROBLEM=` does
    changed = {key: text for key, text in run.params.items() if key == "problem" or usual.get(key) != text}
    if (spent := BUDGET.search(why)) and (limit := run.params.get(spent[0])):
        changed[spent[0]] = f"{2 * float(limit):g}"
    settings = [part for key, text in sorted(changed.items()) for part in ("--set", overrides.of(key, text))]
    return shlex.join(["kernel-scientist", "optimize", "--campaign", run.campaign, *settings])
