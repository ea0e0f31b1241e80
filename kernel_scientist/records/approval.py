"""A person's decision about a champion: to promote, register or submit it."""

from kernel_scientist.records.base import Record


class Approval(Record):
    """Who decided, when, and what; the default is that nobody had to be asked."""

    refusal: str = ""
    """Why it may not be done, in a sentence; empty if it may."""
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
