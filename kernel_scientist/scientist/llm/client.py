"""Asking a model: from the archive if it was answered before, within the budget, with patience, and read or returned.

question -> archive? -> price, budget -> call (retries, breaker) -> archive -> read -> (correction -> question)
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import BaseModel

from kernel_scientist.records.errors import ModelError, StoppedError
from kernel_scientist.records.kernel import Ask
from kernel_scientist.records.params import Llm, Model
from kernel_scientist.scientist.llm import endpoint, prices
from kernel_scientist.scientist.llm.budget import Ledger
from kernel_scientist.scientist.llm.endpoint import Breaker, Completion, Fault
from kernel_scientist.scientist.llm.parsing import Answer, ReplyError, read
from kernel_scientist.scientist.llm.reply_store import Archive, Message, Question, Reply, spot
from kernel_scientist.scientist.prompts import Prompt

T = TypeVar("T")
PLAYBOOK = "playbook"
POLL_S = 0.2
QUOTED = 20_000
"""Characters of a reply that go back with what is wrong with it."""
Read = Callable[[Answer], T]
"""Makes a record of an answer, or raises ReplyError."""


class Channel:
    """The one way to a model. Thread-safe."""

    def __init__(self, llm: Llm, archive: Archive, ledger: Ledger, campaign: str, stopped: threading.Event) -> None:
        self.llm, self.archive, self.ledger, self.campaign, self.stopped = llm, archive, ledger, campaign, stopped
        self._earlier = {spot(r.place): r for r in archive.paid_by(campaign) if not r.failure}
        """What this campaign was answered in earlier sittings: killed between a reply and the kernel it is for, it may
        ask in other words now, for other kernels have been recorded."""
        self._breakers: dict[tuple[str, str], Breaker] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        role: str,
        place: str,
        prompt: Prompt,
        read_as: Read[T],
        *,
        form: type[BaseModel] | None = None,
        sample: int = 0,
        prefer: str = "",
    ) -> tuple[T, tuple[Ask, ...]]:
        """Return the answer as a record, and what was asked for it.

        A model that takes a schema is told the `form`. `prefer` names the model of the role's mix to ask first; without
        it the lot decides, by weight.

        A reply that cannot be read goes back with what is wrong, at most `llm.corrections` times. Raises ReplyError
        (with the `asks` it took) after that, BudgetError before a call that could pass the budget, ModelError when no
        model of the role answers, StoppedError when the work is stopped meanwhile.
        """
        messages, asks, fault = list(prompt.messages), list[Ask](), ReplyError("nothing was asked")
        for correction in range(self.llm.corrections + 1):
            reply, recalled = self._reply(role, f"{place}/{correction}", messages, form, sample, prefer)
            try:
                answer = read_as(read(reply.text))
            except ReplyError as error:
                asks.append(_asked(reply, prompt, recalled, str(error)))
                self.archive.refuse(reply, str(error)[:500])
                fault = error
                messages += [Message(role="assistant", content=reply.text[:QUOTED] or "(empty)"), _correction(error)]
            else:
                return answer, (*asks, _asked(reply, prompt, recalled, ""))
        fault.asks = tuple(asks)
        raise fault

    def _reply(
        self,
        role: str,
        place: str,
        messages: Sequence[Message],
        form: type[BaseModel] | None,
        sample: int,
        prefer: str,
    ) -> tuple[Reply, bool]:
        """Return a reply, and whether it was there already."""
        settings = self.llm.role(role)
        parameters: dict[str, object] = {"max_tokens": settings.max_tokens}
        parameters |= {} if settings.temperature is None else {"temperature": settings.temperature}
        questions: list[tuple[Model, Question]] = []
        for model in self._models(role, place, prefer):
            told = {**parameters, **(endpoint.schema(form) if form and endpoint.takes_schema(model) else {})}
            question = Question(model=model.model, parameters=told, messages=tuple(messages), sample=sample)
            questions.append((model, question))
        # its own place first: what is designed again after a kill may ask, word for word, what a later place asked
        if found := self._earlier.get(spot(place)):
            return found, True
        for _, question in questions:
            if found := self.archive.find(question):
                return found, True
        if self.llm.replay and (found := self.archive.at(self.llm.replay, place)):
            return found, True
        words: list[str] = []
        for model, question in questions:
            try:
                return self._patiently(role, place, model, question), False
            except Fault as fault:
                words.append(f"{model.model}: {fault}")
        raise ModelError(f"llm.{role}: no model answers; {'; '.join(words) or 'none is named'}")

    def _models(self, role: str, place: str, prefer: str) -> list[Model]:
        """Return whom to ask, in order: the preferred one, or one of those that share the role; then the fallbacks."""
        settings = self.llm.role(role)
        shared = [m for m in settings.models if m.model != PLAYBOOK]
        chance = random.Random(f"{self.campaign}/{place.rpartition('/')[0]}")  # a correction goes to whom it concerns
        drawn = chance.choices(shared, [m.weight for m in shared])[:1] if shared else []
        first = [m for m in shared if m.model == prefer][:1] or drawn
        return [*first, *(m for m in settings.fallbacks if m.model != PLAYBOOK)]

    def _patiently(self, role: str, place: str, model: Model, question: Question) -> Reply:
        """Call until there is an answer. Raises Fault when there is none."""
        breaker, chance = self._breaker(model), random.Random()
        for attempt in range(self.llm.attempts):
            if not breaker.open():
                raise Fault(f"it failed {breaker.limit} times in a row; left alone for {breaker.rest_s:g} s", True)
            try:
                reply = self._call(role, place, model, question)
            except Fault as fault:
                breaker.report(answered=not fault.again)  # who says that the request is bad is well
                if not fault.again or attempt + 1 == self.llm.attempts:
                    raise
                self._wait(endpoint.delay_s(attempt, fault.after_s, self.llm, chance))
            else:
                breaker.report(answered=True)
                return reply
        raise AssertionError("llm.attempts is at least 1")

    def _call(self, role: str, place: str, model: Model, question: Question) -> Reply:
        """Pay for one call and keep what came of it, also when it comes after this work was stopped."""
        rate, settings = prices.price(model), self.llm.role(role)
        asked = sum(endpoint.estimated_tokens(m.content) for m in question.messages)
        start = time.monotonic()

        def book(text: str, finish: str, tokens: tuple[int, int], failure: str) -> Reply:
            reply = Reply(
                question=question,
                text=text,
                finish=finish,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                usd=rate.of(*tokens),
                seconds=round(time.monotonic() - start, 3),
                role=role,
                place=place,
                campaign=self.campaign,
                failure=failure,
            )
            self.archive.keep(reply)
            return reply

        def call() -> Reply:
            with self.ledger.call(rate.of(asked, settings.max_tokens), asked + settings.max_tokens) as bill:
                try:
                    got: Completion = endpoint.complete(model, question, self.llm.timeout_s)
                except Fault as fault:
                    if fault.text:  # what was sent is charged for, whether it ended or not
                        reply = book(fault.text, "", (asked, endpoint.estimated_tokens(fault.text)), str(fault))
                        bill.usd, bill.tokens = reply.usd, reply.input_tokens + reply.output_tokens
                    raise
                reply = book(got.text, got.finish, (got.input_tokens, got.output_tokens), "")
                bill.usd, bill.tokens = reply.usd, reply.input_tokens + reply.output_tokens
                return reply

        return _Background(call).result(self.stopped)

    def _breaker(self, model: Model) -> Breaker:
        with self._lock:
            key = (model.model, model.api_base)
            return self._breakers.setdefault(key, Breaker(self.llm.break_after, self.llm.rest_s))

    def _wait(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise StoppedError("the campaign was stopped")


class _Background:
    """A call in a thread that nobody has to wait for: it cannot be interrupted, the work can."""

    def __init__(self, work: Callable[[], Reply]) -> None:
        self._reply: Reply | None = None
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True, name="model")
        self._thread.start()

    def result(self, stopped: threading.Event) -> Reply:
        """Return what the work returns, or raise what it raises; StoppedError when it is no longer wanted."""
        while self._thread.is_alive():
            self._thread.join(POLL_S)
            if stopped.is_set() and self._thread.is_alive():
                raise StoppedError("the campaign was stopped while a model was thinking")
        if self._error is not None:
            raise self._error
        assert self._reply is not None
        return self._reply

    def _run(self) -> None:
        try:
            self._reply = self._work()
        except BaseException as error:
            self._error = error


def _asked(reply: Reply, prompt: Prompt, recalled: bool, fault: str) -> Ask:
    return Ask(
        role=reply.role,
        place=reply.place,
        model=reply.question.model,
        key=reply.question.key,
        prompt=prompt.digest,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        usd=reply.usd,
        seconds=reply.seconds,
        recalled=recalled,
        fault=fault[:500],
    )


def _correction(error: ReplyError) -> Message:
    words = (
        f"Your reply could not be used: {error}. Send the complete reply again, in the form that was asked for, "
        "and nothing else."
    )
    return Message(role="user", content=words)
