"""The campaigns of an MLflow experiment: which there are, which was the latest, whether one can be resumed."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kernel_scientist.records import environment
from kernel_scientist.records.errors import SetupError
from kernel_scientist.tracking import campaign_params, local_store, owner, run_content
from kernel_scientist.tracking.campaign_run import ENDED, WITHOUT_A_WORD, CampaignRun
from kernel_scientist.tracking.experiment import MlflowExperiment
from kernel_scientist.tracking.run_content import CAMPAIGN, KIND, SUITE
from kernel_scientist.tracking.subject import Subject, named

PAGE = 50
"""Campaigns that are read at a time."""


class CampaignIndex(MlflowExperiment):
    """An experiment's campaigns: the parent runs of its kernels."""

    def latest(
        self, campaign: str | None = None, suite: str = "", owned_by: str = "", subject: Subject | None = None
    ) -> CampaignRun | None:
        """Return the campaign with this id, else the one started last (of a suite, owner or subject, if given).

        None: there is none.
        """
        wanted = {CAMPAIGN: campaign} if campaign else {SUITE: suite, owner.BELONGS: owned_by}
        found = self._newest({tag: value for tag, value in wanted.items() if value})
        run = next((run for run in found if campaign or subject is None or subject.is_of(run)), None)
        if run is None:
            return None
        known = self._artifact(run.run_id, campaign_params.FILE)
        return replace(run, params=campaign_params.in_force(known, run.params))

    def campaigns(self, subject: Subject, most: int) -> list[CampaignRun]:
        """Return the latest campaigns of a subject, newest first, at most `most`."""
        return list(itertools.islice(filter(subject.is_of, self._newest({})), most))

    def _newest(self, tags: Mapping[str, str]) -> Iterator[CampaignRun]:
        """Yield the campaigns with these tags, newest first."""
        where, token = run_content.with_tags({KIND: "campaign", **tags}), None
        how = {"max_results": PAGE, "order_by": ["attributes.start_time DESC"]}
        while where is not None:
            page = self.client.search_runs([self.experiment_id], where, **how, page_token=token)
            yield from map(CampaignRun.of, page)
            if not (token := page.token):
                return

    def elsewhere(self, campaign: str) -> str:
        """Return the sentence for a campaign that another experiment of this store has; empty if none has it."""
        where = run_content.with_tags({KIND: "campaign", CAMPAIGN: campaign})
        if where is None or (found := self.other(where)) is None:
            return ""
        other, run = found
        there = f"campaign {campaign} is in MLflow experiment {other}"
        return f"{there}, not in {self.experiment}: {named(CampaignRun.of(run))}"

    def recorded(self, campaign: str | None, subject: Subject, suite: str = "") -> CampaignRun | None:
        """Return a campaign that can be resumed, by default the latest of a subject (and of a suite, if given).

        None: there is none.
        On a store that several share it is the latest of this folder and user. Raises SetupError when there is none of
        that name, it used another language, or another process of this host runs it.
        """
        owned_by = "" if suite or local_store.is_own(self.uri) else environment.owner()
        run = self.latest(campaign, suite, owned_by, subject)
        if run is None:
            if campaign is None:
                return None
            absent = f"no campaign {campaign!r} in MLflow experiment {self.experiment} at {self.uri}"
            raise SetupError(self.elsewhere(campaign) or absent)
        if not subject.in_any_language.is_of(run):
            raise SetupError(subject.other(run))
        if (other := run.params.get("language")) != subject.language:
            raise SetupError(f"campaign {run.campaign} is in {other}, not in {subject.language}")
        if run.running and (process := owner.other_process(run.tags.get(owner.TAG))):
            raise SetupError(
                f"campaign {run.campaign} of {owner.words(run.tags)}, is being run by process {process}: wait for its "
                "end, or stop it; `--campaign ID`, for a deployment resume=ID, resumes another"
            )
        return run

    def close_dead(self) -> None:
        """Give the status KILLED to campaigns whose process, on this host, has ended without a word."""
        for run in self._runs(f"tags.{KIND} = 'campaign'", "attributes.status = 'RUNNING'"):
            if owner.is_gone(run.data.tags.get(owner.TAG)):
                self.client.set_tag(run.info.run_id, ENDED, WITHOUT_A_WORD)
                self.client.set_terminated(run.info.run_id, status="KILLED")
