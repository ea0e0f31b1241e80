"""What a call costs, known before it is made: from the parameters, else litellm's table; a local model costs nothing.

A price that nobody knows is not zero: it is a SetupError until it is set by hand.
"""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Model

LOCAL_PROVIDERS = ("ollama/", "ollama_chat/", "llamafile/", "lm_studio/", "hosted_vllm/", "vllm/")
MILLION = 1_000_000


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
    """Return a model's price. Raises SetupError when nobody knows it."""
    if model.price is not None:
        return Price(model.price.input_usd, model.price.output_usd)
    if is_local(model):
        return FREE
    import litellm

    litellm.suppress_debug_info = True  # else it prints a list of providers on standard output, where our JSON goes
    try:
        info = litellm.get_model_info(model.model, api_base=model.api_base or None)
        rates = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    except Exception as error:  # litellm raises plain Exception for a model that is not in its table
        raise _unknown(model) from error
    if not rates[0] and not rates[1]:  # its table says 0 for what it has no price of
        raise _unknown(model)
    return Price((rates[0] or 0.0) * MILLION, (rates[1] or 0.0) * MILLION)


def is_local(model: Model) -> bool:
    """Whether a model runs on a machine of one's own: a local provider, or an address that is not public."""
    if not model.api_base:
        return model.model.startswith(LOCAL_PROVIDERS)
    host = urlsplit(model.api_base).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".internal", ".localhost"))


def _unknown(model: Model) -> SetupError:
    return SetupError(
        f"llm: the price of {model.model!r} is not known; set it, such as "
        f"llm.<role>.price={{input_usd: 2.5, output_usd: 10}} (USD per million tokens; 0 for a model of your own)"
    )
