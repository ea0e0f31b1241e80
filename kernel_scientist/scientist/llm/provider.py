"""A model's provider: whether name and address make sense, and whether its list of models has the model.

The list costs nothing. What it does not show is no reason to refuse a model: many servers have no list, or accept names
that are not in it.
"""

import difflib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import httpx

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.params import Model

WAIT_S = 5.0
"""Longest time for a connection, and for the list."""
MOST_BYTES = 16 << 20
SHOWN = 5
"""How many of a server's models a message names."""
OLLAMA = ("ollama", "ollama_chat")
LISTING = ("openai", "custom_openai", "text-completion-openai", "hosted_vllm", "litellm_proxy")
"""Providers whose servers list their models as OpenAI does."""
LENIENT = ("llamacpp", "sglang", "organization_owner")
"""What `owned_by` is in the lists of llama.cpp, SGLang and LM Studio, which answer to any name."""
REFUSED = (401, 403)
ABSENT = 404


@dataclass(frozen=True)
class ModelList:
    """Where a provider lists its models."""

    name: str
    """The model's name there."""
    base: str
    path: str
    """Of the list below `base`; empty: only whether a server answers can be known."""
    key_env: str = ""
    """Variable that holds the key."""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = True
    """Whether the server accepts no other names."""


def require(model: Model) -> None:
    """Raise SetupError if a model's name or address cannot be right. Nothing is asked."""
    if model.api_base and not _is_address(model.api_base):
        raise SetupError(
            f"llm: {shown(model.api_base)!r}, the api_base of {model.model!r}, is no address: it begins with http:// "
            "or https:// and a host"
        )
    if _provider(model) is None:
        raise SetupError(f"llm: {_no_provider(model)}")


def refusal(model: Model) -> str:
    """Return why a model cannot be called, as its provider's list of models shows; empty if nothing speaks against it.

    A key is sent to its own endpoint only, and is in no message.
    """
    if model.api_base and not _is_address(model.api_base):
        return f"no server can be at {shown(model.api_base)}; correct api_base"
    listing = _listing(model)
    if listing is None:
        return ""
    key = os.environ.get(listing.key_env, "") if listing.key_env else ""
    if key != key.strip() or not key.isascii() or not key.isprintable():
        return f"the key in the variable {listing.key_env} has a space, a line break or a character outside ASCII"
    try:
        status, body = _get(listing)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        return _unreachable(model, listing, error)
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError):  # it is slow, or a proxy is of another kind
        return ""
    if status in REFUSED and listing.path and b"scope" not in body.lower():  # a key may be for calls alone
        return _key_refused(model, listing, status)
    if status == ABSENT and listing.path == "/models" and (better := _with_version(listing)):
        return f"nothing is at {shown(listing.base)}, but a list of models at {shown(better)}: write that as api_base"
    return _lacking(model, listing, body) if status == 200 and listing.is_complete else ""


def shown(address: str) -> str:
    """Return an address without what may be secret in it: a user's name, a password, a query."""
    scheme, mark, rest = address.partition("://") if "://" in address else ("", "", address)
    return scheme + mark + rest.partition("?")[0].rpartition("@")[2]


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number
        return False


def _provider(model: Model) -> tuple[str, str, str] | None:
    """Return a model's name at its provider, the provider, and its address as far as litellm knows it."""
    import litellm

    litellm.suppress_debug_info = True  # otherwise litellm prints to standard output, which carries our JSON
    try:
        name, provider, _, base = litellm.get_llm_provider(model.model, api_base=model.api_base or None)
    except Exception:  # litellm raises several kinds for a name without a known provider
        return None
    return name, provider, str(base or "")


def _no_provider(model: Model) -> str:
    import litellm

    begun, mark, rest = model.model.partition("/")
    known = [str(getattr(one, "value", one)) for one in litellm.provider_list] if mark else litellm.model_list
    near = difflib.get_close_matches(begun, known, n=1, cutoff=0.75)
    ask = f"did you mean {near[0]}{mark}{rest}?" if near else "write it as provider/model, for example openai/gpt-4o"
    if model.api_base:
        ask = f"for a server with OpenAI's protocol write openai/{model.model}"
    return f"no provider of the model {model.model!r} is known: {ask}"


def _listing(model: Model) -> ModelList | None:
    """Return where a model's provider lists its models; None where nothing can be asked."""
    if (found := _provider(model)) is None:
        return None
    name, provider, base = found
    if provider in OLLAMA:
        base = base or _first("OLLAMA_API_BASE") or "http://localhost:11434"
        return ModelList(name, base, "/api/tags", model.api_key_env, _bearer(model.api_key_env))
    if provider == "openai" and not model.api_base:
        key_env = model.api_key_env or "OPENAI_API_KEY"
        base = _first("OPENAI_BASE_URL", "OPENAI_API_BASE") or "https://api.openai.com/v1"
        return ModelList(name.removeprefix("responses/"), base, "/models", key_env, _bearer(key_env))
    if provider == "anthropic" and not model.api_base:
        key_env = model.api_key_env or "ANTHROPIC_API_KEY"
        headers = {"x-api-key": os.environ.get(key_env, ""), "anthropic-version": "2023-06-01"}
        base = _first("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        # it has other names for its models than its list has
        return ModelList(name, base.removesuffix("/v1"), "/v1/models", key_env, headers, is_complete=False)
    if provider in LISTING and model.api_base:
        return ModelList(name, base, "/models", model.api_key_env, _bearer(model.api_key_env))
    return ModelList(name, base, "") if _is_address(base) else None


def _first(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def _bearer(key_env: str) -> dict[str, str]:
    """Return the header with a key, as litellm sends it: a server without a key gets the word none."""
    return {"Authorization": f"Bearer {(os.environ.get(key_env, '') if key_env else '') or 'none'}"}


def _get(listing: ModelList) -> tuple[int, bytes]:
    """Return status and body of the list; an empty body for one that does not end in time. Raises httpx's errors.

    No redirection is followed: the key is for this address.
    """
    deadline, body = time.monotonic() + WAIT_S, bytearray()
    address = listing.base.rstrip("/") + listing.path
    with (
        httpx.Client(timeout=WAIT_S, headers=listing.headers, follow_redirects=False) as client,
        client.stream("GET", address) as answer,
    ):
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > MOST_BYTES or time.monotonic() > deadline:
                return answer.status_code, b""
        return answer.status_code, bytes(body)


def _with_version(listing: ModelList) -> str:
    """Return the address with `/v1` if the server lists its models there and takes no calls here; else nothing."""
    if (base := listing.base.rstrip("/")).endswith("/v1"):
        return ""
    better = f"{base}/v1"
    try:
        calls, models = replace(listing, path="/chat/completions"), replace(listing, base=better)
        return better if _get(calls)[0] == ABSENT and _get(models)[0] == 200 else ""
    except (httpx.HTTPError, ValueError):
        return ""


def _unreachable(model: Model, listing: ModelList, error: Exception) -> str:
    if "CERTIFICATE" in str(error).upper():  # litellm may have been set to accept it
        return ""
    why = f"no connection within {WAIT_S:g} s" if isinstance(error, httpx.ConnectTimeout) else str(error)
    local = listing.path == "/api/tags"
    ask = "start it, or correct api_base" if model.api_base else "start it" if local else "is the network there?"
    return f"no server answers at {shown(listing.base)} ({why}); {ask}"


def _key_refused(model: Model, listing: ModelList, status: int) -> str:
    where = f"the server at {shown(listing.base)}"
    if listing.key_env:
        return f"{where} refuses the key in the variable {listing.key_env} (status {status}) for {model.model}"
    return f"{where} refuses {model.model} without a key (status {status}): set api_key_env to the key's variable"


def _lacking(model: Model, listing: ModelList, body: bytes) -> str:
    """Return that a list lacks the model; empty if it has it, cannot be read, or may be incomplete."""
    try:
        record: Any = json.loads(body)
    except ValueError:
        return ""
    rows = (record.get("data") or record.get("models")) if isinstance(record, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or record.get("has_more"):
        return ""
    names = [name for row in rows if isinstance(name := row.get("id") or row.get("name"), str) and name]
    own = listing.name.casefold()
    accepted = {own, f"{own}:latest", own.partition(":")[0]}  # Ollama's tags, OpenRouter's variants
    if not names or any("*" in name for name in names) or not accepted.isdisjoint(map(str.casefold, names)):
        return ""
    owners = [(row.get("owned_by"), row.get("id")) for row in rows if row.get("owned_by")]
    if any(owner in (*LENIENT, name) for owner, name in owners) or any(row.get("parent") for row in rows):
        return ""  # a server of one model that answers to any name, or one with adapters, which may load others
    near = difflib.get_close_matches(listing.name, names, n=SHOWN, cutoff=0.5)
    first = [*near, *(name for name in sorted(names) if name not in near)][:SHOWN]
    more = f" and {len(names) - len(first)} more" if len(names) > len(first) else ""
    return f"the server at {shown(listing.base)} has no model {listing.name!r}; it has {', '.join(first)}{more}"
