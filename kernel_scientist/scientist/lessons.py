"""The findings of a campaign: short statements that later prompts include."""

import time
from collections.abc import Collection, Mapping, Sequence

from kernel_scientist.records.base import Record
from kernel_scientist.records.kernel import LlmCall

MAX_CHARACTERS = 1000
"""Length of one finding."""


class Lesson(Record):
    """One finding: short, dated, with the kernels that support it."""

    name: str
    text: str
    kernels: tuple[str, ...]
    date: str
    runs: tuple[str, ...] = ()
    """Ids of the MLflow runs of those kernels."""
    retracted: str = ""
    """Date on which a later measurement contradicted the finding."""


class Lessons(Record):
    """All findings of a campaign, oldest first."""

    findings: tuple[Lesson, ...] = ()
    generation: int = 0
    """The last generation that the findings cover."""
    llm_calls: tuple[LlmCall, ...] = ()
    """The model calls of the latest summary."""

    def latest(self, count: int) -> list[Lesson]:
        """Return at most `count` valid findings, newest first."""
        return [f for f in reversed(self.findings) if not f.retracted][:count]

    def with_run_ids(self, run_ids: Mapping[str, str]) -> "Lessons":
        """Return the findings, new ones with the run ids of their kernels; `run_ids` maps kernel names to run ids."""
        findings = tuple(
            f if f.runs else f.model_copy(update={"runs": tuple(run_ids[k] for k in f.kernels if k in run_ids)})
            for f in self.findings
        )
        return self.model_copy(update={"findings": findings})

    def updated(
        self,
        new: Sequence[tuple[str, Sequence[str]]],
        retracted: Collection[str],
        llm_calls: tuple[LlmCall, ...] = (),
    ) -> "Lessons":
        """Return the findings with new ones (text, kernels) added and those named in `retracted` marked."""
        today = time.strftime("%Y-%m-%d")
        old = [
            f.model_copy(update={"retracted": today}) if f.name in retracted and not f.retracted else f
            for f in self.findings
        ]
        texts = {f.text for f in old}
        added = [
            Lesson(name=f"f{len(old) + i:03d}", text=text[:MAX_CHARACTERS], kernels=tuple(kernels), date=today)
            for i, (text, kernels) in enumerate([n for n in new if n[0] not in texts], start=1)
        ]
        return Lessons(findings=(*old, *added), llm_calls=llm_calls)
