"""A person's decision about a champion, to promote, register or submit it, and what becomes of the champion."""

from typing import NamedTuple

from kernel_scientist.records.base import Record


class Approval(Record):
    """Who decided, when, and what; the default is that nobody had to be asked."""

    refusal: str = ""
    """Why the person, or that nobody answered, forbids it, in a sentence; empty if it may be done."""
    by: str = ""
    """The name that the person gave. A Prefect server of your own does not know who its users are."""
    at: str = ""
    """When the answer was seen, in UTC (ISO 8601); empty if nobody was asked."""
    comment: str = ""
    """What the person wrote."""

    def __str__(self) -> str:
        """Return the decision in a sentence, as it is recorded; empty if nobody was asked."""
        if not self.at:
            return self.refusal
        who = self.by or "a person who gave no name"
        comment = f": {self.comment}" if self.comment else ""
        return f"{'refused' if self.refusal else 'approved'} by {who}, {self.at}{comment}"


class Promotion(NamedTuple):
    """What becomes of a campaign's champion."""

    promoted: bool
    """Whether it becomes the standing one."""
    registered: bool
    """Whether it becomes a version of its registered model."""
    reason: str
    """Why it becomes the standing one, or does not, in a sentence."""

    def after(self, answer: Approval, overtaken: bool) -> "Promotion":
        """Return what becomes of it once a person has answered. A refusal forbids both.

        `overtaken`: whether another champion was promoted meanwhile, with which this one was not compared.
        """
        if answer.refusal:
            return Promotion(False, False, f"not promoted: {answer.refusal}")
        if overtaken and self.promoted:
            reason = "not promoted: another champion was promoted while this one waited for approval"
            return self._replace(promoted=False, reason=reason)
        return self
