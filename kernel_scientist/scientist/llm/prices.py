"""Prices of models, known before a call, and the predicted cost of a campaign.

A price comes from the parameters, else from litellm's table; a local model is free. An unknown price is a SetupError,
never zero.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import PLAYBOOK, WRITER, Model, Params
from kernel_scientist.scientist.llm.endpoint import estimated_tokens

LOCAL_PROVIDERS = ("ollama/", "ollama_chat/", "llamafile/", "lm_studio/", "hosted_vllm/", "vllm/")
MILLION = 1_000_000
TEMPLATE_TOKENS, ROW_TOKENS = 1500, 60
"""Tokens of a prompt without sources and documents, and of one kernel in the selector's table."""
REPLY_TOKENS = {"selector": 200, "designer": 2500, "distiller": 600, "judge": 150}
REPAIRED = 0.4
"""Share of kernels that need a repair: the best value reported in the literature (STARK, table 2)."""


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    input_usd: float
    output_usd: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """Return the cost of a call in USD."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / MILLION


FREE = Price(0.0, 0.0)


def price(model: Model) -> Price:
    """Return a model's price. Raises SetupError if it is unknown."""
    if model.price is not None:
        return Price(model.price.input_usd, model.price.output_usd)
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
    return Price((rates[0] or 0.0) * MILLION, (rates[1] or 0.0) * MILLION)


def campaign_usd(params: Params, problem: Problem, seeds: int) -> float:
    """Return the predicted cost of a campaign in USD, from the sizes of its prompts and each role's price."""
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
    models = {role: params.llm.role(role) for role in calls}
    costs = [
        n * price(models[r]).of(i, o) for r, (n, i, o) in calls.items() if models[r].model not in (PLAYBOOK, WRITER)
    ]
    return round(sum(costs), 4)


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
        f"llm: the price of {model.model!r} is unknown; set it, for example "
        f"llm.<role>.price={{input_usd: 2.5, output_usd: 10}} (USD per million tokens; 0 for your own model)"
    )
