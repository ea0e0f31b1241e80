"""A campaign's spending on models, and the check before each call that it stays within the budget."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from kernel_scientist.records.errors import BudgetError
from kernel_scientist.records.params import Budget
from kernel_scientist.scientist.llm.response_cache import ResponseCache


@dataclass
class Cost:
    """Cost of one call."""

    usd: float
    tokens: int


class LlmBudget:
    """Money and tokens spent so far, and their limits. Thread-safe; a running call counts with its largest cost."""

    def __init__(self, limits: Budget, usd: float = 0.0, tokens: int = 0) -> None:
        self.limits, self.usd, self.tokens = limits, usd, tokens
        self._reserved: list[Cost] = []
        self._lock = threading.Lock()

    @staticmethod
    def of(cache: ResponseCache, limits: Budget, campaign: str) -> "LlmBudget":
        """Return the budget of a campaign, with its spending before it was resumed."""
        paid = cache.spending(campaign)
        return LlmBudget(limits, sum(row.usd for row in paid), sum(row.tokens for row in paid))

    @contextmanager
    def call(self, most_usd: float, most_tokens: int) -> Generator[Cost]:
        """Reserve the largest cost of a call, and book the actual one, which the caller writes into the yielded record.

        Raises BudgetError if the call could exceed the budget. A call without a reply costs nothing.
        """
        largest, actual = Cost(most_usd, most_tokens), Cost(0.0, 0)
        with self._lock:
            self._require(largest)
            self._reserved.append(largest)
        try:
            yield actual
        finally:
            with self._lock:
                self._reserved.remove(largest)
                self.usd += actual.usd
                self.tokens += actual.tokens

    def exhausted(self) -> str | None:
        """Return which budget is spent, or None."""
        limits = self.limits
        with self._lock:
            if limits.usd is not None and self.usd >= limits.usd and self.usd > 0:
                return "the budget of money is spent (budget.usd)"
            if limits.tokens is not None and self.tokens >= limits.tokens:
                return "the budget of tokens is spent (budget.tokens)"
        return None

    def _require(self, cost: Cost) -> None:
        limits = self.limits
        usd = self.usd + sum(c.usd for c in self._reserved) + cost.usd
        tokens = self.tokens + sum(c.tokens for c in self._reserved) + cost.tokens
        if limits.usd is not None and usd > limits.usd and cost.usd > 0:
            raise BudgetError(f"the next call could raise the cost to {usd:.4f} USD, above budget.usd {limits.usd:g}")
        if limits.tokens is not None and tokens > limits.tokens:
            raise BudgetError(f"the next call could raise it to {tokens} tokens, above budget.tokens {limits.tokens}")
