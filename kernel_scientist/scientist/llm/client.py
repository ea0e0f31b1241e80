"""The LLM client: sends a prompt, parses the reply, asks for a correction if it cannot be parsed.

request -> response cache? -> price, budget -> call with retries -> response cache -> parse -> (correction -> request)
"""

import copy
import functools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from pydantic import BaseModel

from kernel_scientist.records import disk
from kernel_scientist.records.errors import NO_REPLY, BudgetError, ModelError, SetupError, StoppedError
from kernel_scientist.records.kernel import LlmCall
from kernel_scientist.records.params import PLAYBOOK, Llm, Model
from kernel_scientist.scientist.llm import answer, costs, endpoint
from kernel_scientist.scientist.llm.answer import CUT_OFF, REFUSAL, WITHHELD, ModelOutput
from kernel_scientist.scientist.llm.calls_in_flight import CallsInFlight
from kernel_scientist.scientist.llm.costs import LlmBudget
from kernel_scientist.scientist.llm.failures import CallError, CircuitBreaker, delay_s
from kernel_scientist.scientist.llm.parsing import ParsedReply, ReplyError, split
from kernel_scientist.scientist.llm.response_cache import LlmRequest, Reply, ResponseCache
from kernel_scientist.scientist.llm.tool_calls import ToolSpec, in_words, wanted
from kernel_scientist.scientist.llm.toolbox import Toolbox
from kernel_scientist.scientist.prompts import Message, Prompt

T = TypeVar("T")
MOST_TIMES = 2
"""A call may last so many times `llm.timeout_s`, in which only silence ends some providers' streams."""
MAX_QUOTED = 20_000
"""Characters of an unreadable reply that are sent back with the error."""
AGAIN = "Send the complete reply again in the requested form, and nothing else."
LONGER = 2
"""How many times as long a reply may be that was cut off."""
ESSENTIAL = ("selector", "designer", "writer")
"""Roles without which there is no new kernel."""
Parser = Callable[[ParsedReply], T]
"""Returns a record of a reply, or raises ReplyError."""


@dataclass(frozen=True)
class CallSpec:
    """Who is called for what."""

    role: str
    key: str
    """The call's place in the campaign, such as `design/3`."""
    form: type[BaseModel] | None = None
    """The reply's type, sent as a JSON schema to models that accept one."""
    sample: int = 0
    """Number of the sample, if the same prompt is sent several times."""
    prefer: str = ""
    """The model of the role's mix to call first; otherwise the weights decide."""
    about: tuple[str, ...] = ()
    """Kernels that the call is about: base and reference of a design."""


class LlmClient:
    """Calls the models of all roles. Thread-safe."""

    def __init__(
        self,
        llm: Llm,
        cache: ResponseCache,
        budget: LlmBudget,
        campaign: str,
        stopped: threading.Event,
        on_failure: Callable[[str, str], None] = lambda role, reason: None,
    ) -> None:
        """`on_failure` gets the role and the reason of each call that gave no reply, or part of one."""
        self.on_failure = on_failure
        self.llm, self.cache, self.budget, self.campaign, self.stopped = llm, cache, budget, campaign, stopped
        self._resumed_at = time.time()
        """Replies from before are reused by their call keys: a prompt may differ now, as other kernels have been
        recorded since."""
        self._breakers: dict[tuple[str, str], CircuitBreaker] = {}
        self._in_flight = CallsInFlight(stopped)
        self._lock = threading.Lock()
        self.shown: Callable[[str], str] = _as_it_is
        """Rewrites all text that goes to a model, but for its own replies."""

    def showing(self, shown: Callable[[str], str]) -> Self:
        """Return this client, which sends text as `shown` rewrites it."""
        other = copy.copy(self)
        other.shown = shown
        return other

    def _told(self, messages: Sequence[Message]) -> list[Message]:
        return [one.model_copy(update={"content": self.shown(one.content)}) for one in messages]

    def ask(
        self, spec: CallSpec, prompt: Prompt, parse: Parser[T], tools: Toolbox | None = None
    ) -> tuple[T, tuple[LlmCall, ...]]:
        """Return the parsed reply, and the calls it took.

        A reply that cannot be parsed is sent back with the error, at most `llm.corrections` times. One that was cut off
        is asked for again with more tokens, one that the provider withheld is not. One that calls `tools` is answered
        with their results. Raises ReplyError (with its `llm_calls`) after that, BudgetError before a call that could
        exceed the budget, ModelError if no model of the role replies, StoppedError if the campaign is stopped
        meanwhile.
        """
        messages, calls, fault = self._told(prompt.messages), list[LlmCall](), ReplyError("no model was called")
        offered = tools.specs if tools else ()
        longer, corrections, turn = 1, 0, 0
        while corrections <= self.llm.corrections:
            try:
                reply, cached = self._reply(spec, f"{spec.key}/{turn}", messages, longer, offered)
            except ModelError as error:
                if not calls or (longer == 1 and error.may_pass):
                    raise
                fault = fault if corrections else ReplyError(str(error))
                break  # the model allows no longer reply, or refuses the correction: the reply before it is judged
            except BudgetError as error:
                if not tools or not tools.submitted or not calls:
                    raise
                fault = ReplyError(str(error))
                break  # what it has checked so far may be handed in
            turn += 1
            try:
                if tools and reply.finish == CUT_OFF and wanted(reply.text)[0]:
                    raise ReplyError("the call is not complete")
                before = self._results(f"{spec.key}/{turn}", messages, reply) if tools else ()
                answered = tools.answer(reply.text, before) if tools else reply.text
                if not isinstance(answered, str):
                    calls.append(_recorded(reply, prompt, cached, ""))
                    messages += [Message(role="assistant", content=reply.text), *self._told(answered)]
                    continue
                result = parse(split(answered))
            except ReplyError as error:
                corrections += 1
                fault = _explained(error, reply)
                calls.append(_recorded(reply, prompt, cached, str(fault)))
                self._insist(functools.partial(self.cache.mark_unreadable, reply, str(fault)[:500]))
                if reply.finish in (WITHHELD, REFUSAL):
                    break
                if reply.finish == CUT_OFF and longer == 1:
                    longer = LONGER
                    continue
                why = f"Your reply cannot be used: {fault}. {AGAIN}"
                said = reply.text if tools else reply.text[:MAX_QUOTED]
                messages.append(Message(role="assistant", content=said or "(empty)"))
                refusal = tools.refused(reply.text, why) if tools else [Message(role="user", content=why)]
                messages += self._told(refusal)
            else:
                return result, (*calls, _recorded(reply, prompt, cached, ""))
        fault.llm_calls = tuple(calls)
        raise fault

    def _reply(
        self, spec: CallSpec, key: str, messages: Sequence[Message], longer: int, offered: Sequence[ToolSpec]
    ) -> tuple[Reply, bool]:
        """Return a reply, and whether it was cached. `longer`: how many times its role's tokens it may have."""
        requests = list(self._requests(spec, key, messages, longer, offered))
        # The call key comes first: a generation that is designed again may send the prompt of a later generation.
        if reply := self.cache.at(self.campaign, key, self._resumed_at):
            return reply, True
        for _, request in requests:
            if reply := self.cache.get(request.key, key):
                return reply, True
        if self.llm.replay and (reply := self.cache.at(self.llm.replay, key)):
            return reply, True
        errors, may_pass, refused = list[str](), False, True
        for model, request in requests:
            try:
                recall = functools.partial(self.cache.get, request.key, key)
                call = functools.partial(self._with_retries, spec, key, model, request)
                return self._in_flight.share(request.key, recall, call)
            except CallError as error:
                errors.append(f"{model.model}: {error}")
                may_pass |= error.retryable
                refused &= error.refused
        replaced = any(m.model == PLAYBOOK for m in self.llm.role(spec.role).fallbacks)  # by the rule-based agent
        if errors and refused and spec.role in ESSENTIAL and not replaced and not self._answered(spec.role):
            raise SetupError(f"llm.{spec.role}: the endpoint refuses the call ({'; '.join(errors)})")
        raise ModelError(f"llm.{spec.role}: {NO_REPLY}; {'; '.join(errors) or 'no model is named'}", may_pass)

    def _results(self, key: str, messages: Sequence[Message], reply: Reply) -> Sequence[Message]:
        """Return what tools said to a reply before a kill or in the replayed campaign: it stands in the next request,
        whose key is `key`, if that was answered."""
        known = self.cache.at(self.campaign, key, self._resumed_at)
        known = known or (self.cache.at(self.llm.replay, key) if self.llm.replay else None)
        told = known.request.messages[len(messages) :] if known else ()
        return told[1:] if told and told[0].content == reply.text else ()

    def _answered(self, role: str) -> bool:
        """Whether a model of a role has ever replied in this campaign: then its set-up was right."""
        return any(row.role == role for row in self.cache.spending(self.campaign))

    def _requests(
        self, spec: CallSpec, key: str, messages: Sequence[Message], longer: int, offered: Sequence[ToolSpec]
    ) -> Iterator[tuple[Model, LlmRequest]]:
        """Yield the models to call, in order, each with its request: one that shares the role, then the fallbacks."""
        role = self.llm.role(spec.role)
        shared = [m for m in role.models if m.model != PLAYBOOK]
        rng = random.Random(f"{self.campaign}/{key.rpartition('/')[0]}")  # corrections go to the same model
        drawn = rng.choices(shared, [m.weight for m in shared])[:1] if shared else []
        first = [m for m in shared if m.model == spec.prefer][:1] or drawn
        parameters: dict[str, object] = {"max_tokens": longer * role.max_tokens}
        parameters |= {} if role.temperature is None else {"temperature": role.temperature}
        for model in (*first, *(m for m in role.fallbacks if m.model != PLAYBOOK)):
            form, told = dict[str, object](), tuple(messages)
            if offered and endpoint.takes_tools(model):
                form = endpoint.functions(offered)
            elif offered:
                told = in_words(told, offered)
            elif spec.form and endpoint.takes_schema(model):  # with tools, not every reply is to have the form
                form = endpoint.schema(spec.form)
            yield (
                model,
                LlmRequest(model=model.model, parameters={**parameters, **form}, messages=told, sample=spec.sample),
            )

    def _with_retries(self, spec: CallSpec, key: str, model: Model, request: LlmRequest) -> Reply:
        """Call until there is a reply. Raises CallError after `llm.attempts` failures or a permanent one."""
        breaker, rng = self._breaker(model), random.Random()
        for attempt in range(self.llm.attempts):
            if not breaker.allows_call():
                raise CallError(f"{breaker.limit} failures in a row; not called for {breaker.rest_s:g} s", True)
            try:
                reply = self._call(spec, key, model, request)
            except CallError as error:
                self.on_failure(spec.role, f"{model.model}: {error}")
                breaker.report(success=not error.retryable)  # an endpoint that rejects a bad request works
                if not error.retryable or attempt + 1 == self.llm.attempts:
                    raise
                self._wait(delay_s(attempt, error.after_s, self.llm, rng))
            else:
                breaker.report(success=True)
                return reply
        raise AssertionError("llm.attempts is at least 1")

    def _call(self, spec: CallSpec, key: str, model: Model, request: LlmRequest) -> Reply:
        """Make one call, pay for it and cache the reply, even if it arrives after the campaign was stopped.

        Only the provider's part has a time limit: a reply that waits for room on the disk is paid for already. A call
        that is given up stays reserved in the budget until its connection ends, for until then it may be charged.
        """
        rate, max_tokens = costs.price(model), int(request.parameters["max_tokens"])
        sent, start = answer.input_tokens(request), time.monotonic()

        def paid() -> tuple[Reply, CallError | None]:
            failure = None
            with self.budget.call(costs.usd(rate, sent, max_tokens), sent + max_tokens) as cost:
                try:
                    output = endpoint.complete(model, request, self.llm.timeout_s)
                except CallError as error:
                    if not error.text:
                        raise
                    # providers charge for an incomplete reply too
                    output, failure = ModelOutput(error.text, "", sent, answer.estimated_tokens(error.text)), error
                cost.usd = costs.usd(rate, output.input_tokens, output.output_tokens)
                cost.tokens = output.input_tokens + output.output_tokens
            reply = Reply(
                request=request,
                text=output.text,
                finish=output.finish,
                input_tokens=output.input_tokens,
                output_tokens=output.output_tokens,
                usd=cost.usd,
                seconds=round(time.monotonic() - start, 3),
                role=spec.role,
                call_key=key,
                campaign=self.campaign,
                about=spec.about,
                failure=str(failure or ""),
            )
            return reply, failure

        def kept(paid_for: tuple[Reply, CallError | None]) -> Reply:
            reply, failure = paid_for
            self._insist(functools.partial(self.cache.add, reply))
            if failure:
                raise failure
            return reply

        endpoint.load()
        return self._in_flight.make(paid, kept, MOST_TIMES * self.llm.timeout_s)

    def _insist(self, act: Callable[[], None]) -> None:
        """Write to the response cache; a full disk is waited for."""
        disk.insist(act, self.cache.folder, self.stopped)

    def _breaker(self, model: Model) -> CircuitBreaker:
        with self._lock:
            key = (model.model, model.api_base)
            return self._breakers.setdefault(key, CircuitBreaker(self.llm.break_after, self.llm.rest_s))

    def _wait(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise StoppedError("the campaign was stopped")


def _as_it_is(text: str) -> str:
    return text


def _recorded(reply: Reply, prompt: Prompt, cached: bool, fault: str) -> LlmCall:
    return LlmCall(
        role=reply.role,
        call_key=reply.call_key,
        model=reply.request.model,
        key=reply.request.key,
        prompt=prompt.digest,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        usd=reply.usd,
        seconds=reply.seconds,
        recalled=cached,
        fault=fault[:500],
    )


def _explained(error: ReplyError, reply: Reply) -> ReplyError:
    """Return why a reply cannot be used, by the reason for which it ended."""
    if reply.finish in (WITHHELD, REFUSAL):
        who = "the model refuses" if reply.finish == REFUSAL else "the provider withheld the reply"
        return ReplyError(f"{who} ({reply.finish}): {reply.text[:200] or 'without a word'}")
    if reply.finish == CUT_OFF:
        return ReplyError(
            f"the reply was cut off at {reply.request.parameters['max_tokens']} tokens (max_tokens): {error}"
        )
    return error
