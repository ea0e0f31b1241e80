"""What a campaign has spent on models, and the stop before the call that could pass its budget."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from kernel_scientist.records.errors import BudgetError
from kernel_scientist.records.params import Budget
from kernel_scientist.scientist.llm.reply_store import Archive


@dataclass
class Bill:
    """One call: first the most that it can come to, then what it came to."""

    usd: float
    tokens: int


class Ledger:
    """Thread-safe. What is under way counts with the most that it can come to."""

    def __init__(self, budget: Budget, usd: float = 0.0, tokens: int = 0) -> None:
        self.budget, self.usd, self.tokens = budget, usd, tokens
        self._open: list[Bill] = []
        self._lock = threading.Lock()

    @staticmethod
    def of(archive: Archive, budget: Budget, campaign: str) -> "Ledger":
        """Return the ledger of a campaign, with what it has spent in earlier sittings."""
        paid = archive.paid_by(campaign)
        return Ledger(budget, sum(r.usd for r in paid), sum(r.input_tokens + r.output_tokens for r in paid))

    @contextmanager
    def call(self, most_usd: float, most_tokens: int) -> Generator[Bill]:
        """Reserve a call; its bill is to be set to what it came to. Raises BudgetError when it could pass the budget.

        A call that fails with its bill untouched is booked with nothing: nobody is charged for an answer that did not
        come.
        """
        bill = Bill(most_usd, most_tokens)
        with self._lock:
            self._require(bill)
            self._open.append(bill)
        paid = Bill(0.0, 0)
        try:
            yield paid
        finally:
            with self._lock:
                self._open.remove(bill)
                self.usd += paid.usd
                self.tokens += paid.tokens

    def spent(self) -> str | None:
        """Return which budget is spent already, or None."""
        with self._lock:
            if self.budget.usd is not None and self.usd >= self.budget.usd and self.usd > 0:
                return "the budget of money is spent (budget.usd)"
            if self.budget.tokens is not None and self.tokens >= self.budget.tokens:
                return "the budget of tokens is spent (budget.tokens)"
        return None

    def _require(self, bill: Bill) -> None:
        usd = self.usd + sum(b.usd for b in self._open) + bill.usd
        tokens = self.tokens + sum(b.tokens for b in self._open) + bill.tokens
        if self.budget.usd is not None and usd > self.budget.usd and bill.usd > 0:
            raise BudgetError(f"the next call could bring it to {usd:.4f} USD, above budget.usd {self.budget.usd:g}")
        if self.budget.tokens is not None and tokens > self.budget.tokens:
            raise BudgetError(
                f"the next call could bring it to {tokens} tokens, above budget.tokens {self.budget.tokens}"
            )
