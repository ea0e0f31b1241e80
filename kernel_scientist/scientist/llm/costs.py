"""Prices of models, known before a call; a campaign's predicted cost, and its spending, which stays in the budget.

A price comes from the parameters, else from litellm's table; a local model is free. An unknown price is a SetupError,
never zero.
"""

import ipaddress
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import BudgetError, SetupError
from kernel_scientist.records.params import PLAYBOOK, WRITER, Budget, Llm, Model, Params, Rates, Role
from kernel_scientist.scientist.llm.answer import estimated_tokens
from kernel_scientist.scientist.llm.response_cache import ResponseCache

LOCAL_PROVIDERS = ("ollama/", "ollama_chat/", "llamafile/", "lm_studio/", "hosted_vllm/", "vllm/")
MILLION = 1_000_000
TEMPLATE_TOKENS, ROW_TOKENS = 1500, 60
"""Tokens of a prompt without sources and documents, and of one kernel in the selector's table."""
REPLY_TOKENS = {"selector": 200, "designer": 2500, "distiller": 600, "judge": 150}
RESULT_TOKENS = 1000
"""Result of a tool, assumed."""
REPAIRED = 0.4
"""Share of kernels that need a repair: the best value reported in the literature (STARK, table 2)."""


FREE = Rates(input_usd=0.0, output_usd=0.0)


def usd(rates: Rates, input_tokens: int, output_tokens: int) -> float:
    """Return the cost of a call in USD."""
    return (input_tokens * rates.input_usd + output_tokens * rates.output_usd) / MILLION


def price(model: Model) -> Rates:
    """Return a model's price. Raises SetupError if it is unknown."""
    if model.price is not None:
        return model.price
    if _is_local(model):
        return FREE
    import litellm

    litellm.suppress_debug_info = True  # otherwise litellm prints to standard output, which carries our JSON
    try:
        info = litellm.get_model_info(model.model, api_base=model.api_base or None)
        rates = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    except Exception as error:  # litellm raises plain Exception for a model that is not in its table
        raise _unknown(model) from error
    if not rates[0] and not rates[1]:  # litellm's table has 0 for unknown prices
        raise _unknown(model)
    return Rates(input_usd=(rates[0] or 0.0) * MILLION, output_usd=(rates[1] or 0.0) * MILLION)


def campaign_usd(params: Params, problem: Problem, seeds: int, roles: Iterable[str]) -> float:
    """Return the predicted cost of a campaign with these roles in USD: sizes of prompts, and each role's price."""
    files = problem.seeds(params.language)
    source = max((estimated_tokens(f.read_text()) for f in files), default=1000)
    description = problem.description + problem.reference_text
    common, documents = TEMPLATE_TOKENS + estimated_tokens(description), params.knowledge.tokens
    generations, drafts, interval = params.search.generations, params.llm.drafts, params.knowledge.distil_every
    kernels = min(generations * params.search.experiments, max(0, params.budget.kernels - seeds))
    calls: dict[str, tuple[float, int, int]] = {  # number, input tokens, output tokens
        "selector": (generations, TEMPLATE_TOKENS + ROW_TOKENS * (seeds + kernels), REPLY_TOKENS["selector"]),
        "designer": (generations, common + source + documents, REPLY_TOKENS["designer"]),
        "writer": (kernels * drafts, common + 2 * source + documents, source + 300),
        "judge": (kernels if drafts > 1 else 0, common + (1 + drafts) * source, REPLY_TOKENS["judge"]),
        "repairer": (kernels * REPAIRED if params.repair.rounds else 0, common + 2 * source, source + 300),
        "distiller": (generations // interval if interval else 0, TEMPLATE_TOKENS + 1800, REPLY_TOKENS["distiller"]),
    }
    return round(sum(_conversations_usd(params.llm, name, *calls[name]) for name in roles), 4)


def _conversations_usd(llm: Llm, name: str, number: float, input_tokens: int, output_tokens: int) -> float:
    """Return the cost of a role's conversations: one call each, or as many as its tools allow, each with all before."""
    role, more = llm.role(name), llm.calls(name)
    grown = input_tokens + more * (output_tokens + RESULT_TOKENS) // 2
    return number * (1 + more) * _mean_usd(role, grown, output_tokens)


def _mean_usd(role: Role, input_tokens: int, output_tokens: int) -> float:
    """Return the cost of one call of a role: the mean over the models that share its calls."""
    if role.model in (PLAYBOOK, WRITER):
        return 0.0
    weights = sum(model.weight for model in role.models)
    return sum(model.weight * usd(price(model), input_tokens, output_tokens) for model in role.models) / weights


def _is_local(model: Model) -> bool:
    """Whether a model runs locally: a local provider, or an address that is not public."""
    if not model.api_base:
        return model.model.startswith(LOCAL_PROVIDERS)
    host = urlsplit(model.api_base).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".internal", ".localhost"))


def _unknown(model: Model) -> SetupError:
    return SetupError(
        f"llm: the price of {model.model!r} is unknown; check the name, or set the price, for example "
        f"llm.<role>.price={{input_usd: 2.5, output_usd: 10}} (USD per million tokens; 0 for your own model)"
    )


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
