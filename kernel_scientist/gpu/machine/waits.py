"""Finds registers that are used before their load has returned, and LDS that is read before it is written.

The rules of gfx9 (AMD Instinct MI300 ISA, 4.4; LLVM, SIInsertWaitcnts): `vmcnt` counts buffer, global and scratch
accesses, loads and stores alike, which return in order; `lgkmcnt` counts LDS, which returns in order, and scalar loads,
which do not; a flat access counts in both and may return at any time. Nothing on gfx942 counts in `expcnt`. A wait for
a count of n guarantees an access in order if n or more of its kind came after it, any other one if n is 0. A called
function waits for everything when it begins and before it returns.

An LDS store must be waited for before a barrier if LDS is read after it. A load to LDS must have been waited for by
some count: which one it needs depends on addresses. Runs in workers: standard library only.
"""

import re
from collections.abc import Sequence

from kernel_scientist.gpu.machine import effects as effect
from kernel_scientist.gpu.machine import flow
from kernel_scientist.gpu.machine.effects import Effect, Unit
from kernel_scientist.gpu.machine.flow import Block, Recent, State
from kernel_scientist.gpu.machine.listing import Listing
from kernel_scientist.gpu.machine.omission import Omission

MOST_VM, MOST_LGKM = 63, 15
"""The largest counts that a wait may name; they mean: no wait."""
_COUNT = re.compile(r"(vmcnt|lgkmcnt)\w*\s*\(\s*(\w+)\s*\)")
_VM, _LGKM, _FLAT_VM, _FLAT_LGKM, _SCALAR, _LATE = range(6)
"""Parts of the state: accesses in order of either counter, flat ones by counter, scalar loads, stores that a barrier
was too early for. Places are registers; that of instruction n, where memory is meant, is -1 - n."""
_EMPTY: State = ({}, {}, {}, {}, {}, {})
_COUNTER = {_VM: "vmcnt", _LGKM: "lgkmcnt", _FLAT_VM: "vmcnt", _FLAT_LGKM: "lgkmcnt", _SCALAR: "lgkmcnt"}
_IN_ORDER = {_VM: Unit.MEMORY, _LGKM: Unit.LDS}
_MOST = (MOST_VM, MOST_LGKM, 1, 1, 1, 1)
"""Age from which an access has returned in any case: the unit stalls rather than let a counter overflow."""


def omissions(listing: Listing, effects: Sequence[Effect]) -> list[Omission]:
    """Return the places where a `s_waitcnt` is missing or waits for too little."""
    found = flow.blocks(listing)
    before = flow.solve(found, flow.entries(listing), _EMPTY, lambda block, state: _Way(effects, state).through(block))
    said: dict[tuple[int, int, int], Omission] = {}
    for first, state in before.items():
        way = _Reported(listing, effects, state)
        way.through(found[first])
        said |= way.said
    return [said[key] for key in sorted(said)]


def awaited(listing: Listing) -> dict[int, frozenset[int]]:
    """Return the loads that each wait for `vmcnt` may wait for: instructions by that of the wait."""
    effects = [effect.of(one.mnemonic, one.operands) for one in listing.statements]
    found = flow.blocks(listing)
    before = flow.solve(found, flow.entries(listing), _EMPTY, lambda block, state: _Way(effects, state).through(block))
    loads = dict[int, frozenset[int]]()
    for first, state in before.items():
        way = _Awaited(effects, state)
        way.through(found[first])
        loads |= way.loads
    return loads


def counts(text: str) -> tuple[int, int]:
    """Return how many accesses of either counter a `s_waitcnt` leaves outstanding."""
    if re.fullmatch(r"\w+", text):
        bits = int(text, 0)
        return bits & 15 | bits >> 10 & 48, bits >> 8 & 15
    named = {name: int(value, 0) for name, value in _COUNT.findall(text)}
    return named.get("vmcnt", MOST_VM), named.get("lgkmcnt", MOST_LGKM)


class _Way:
    """One way through a block."""

    def __init__(self, effects: Sequence[Effect], state: State) -> None:
        self._effects = effects
        self._parts = [Recent(facts) for facts in state]

    def through(self, block: Block) -> State:
        """Take the block's instructions; return the state after them."""
        for number in range(block.first, block.end):
            self._take(number, self._effects[number])
        return tuple(part.facts(_MOST[n]) for n, part in enumerate(self._parts))

    def _take(self, number: int, one: Effect) -> None:
        if one.unit is Unit.CONTROL:
            self._control(number, one)
            return
        self._before(number, one)
        if one.name in ("s_swappc_b64", "s_call_b64"):
            for part in self._parts:
                part.forget(0)
        elif one.unit is Unit.MEMORY:
            self._issue(number, one, _VM)
        elif one.unit is Unit.LDS:
            self._issue(number, one, _LGKM)
        elif one.unit is Unit.FLAT:
            self._put(number, one, _FLAT_VM)
            self._put(number, one, _FLAT_LGKM)
        elif one.unit is Unit.SCALAR_MEMORY:
            self._put(number, one, _SCALAR)

    def _before(self, number: int, one: Effect) -> None:
        """Look at an instruction before it is taken."""

    def _issue(self, number: int, one: Effect, part: int) -> None:
        self._parts[part].advance()
        self._put(number, one, part)
        if one.writes_lds or one.to_lds:
            self._parts[part].put(-1 - number, number)

    def _put(self, number: int, one: Effect, part: int) -> None:
        for register in one.writes:
            self._parts[part].put(register, number)

    def _control(self, number: int, one: Effect) -> None:
        if one.name == "s_waitcnt":
            vm, lgkm = counts(next(iter(one.modifiers)))
            self._wait(vm, _VM, (_FLAT_VM,))
            self._wait(lgkm, _LGKM, (_FLAT_LGKM, _SCALAR))
        elif one.name == "s_barrier":
            late = self._parts[_LATE]
            late.forget(0)
            for part in (_VM, _LGKM):
                for place, age, cause in self._parts[part]:
                    if isinstance(place, int) and place < 0 and age < _MOST[part]:
                        late.put((cause, number), number)

    def _wait(self, count: int, ordered: int, others: tuple[int, ...]) -> None:
        if count >= _MOST[ordered]:
            return
        self._parts[ordered].forget(count)
        if ordered == _VM:  # which loads to LDS this wait is for depends on where they write: all of them, perhaps
            for place, _, _ in self._parts[_VM]:
                if isinstance(place, int) and place < 0:
                    self._parts[_VM].drop(place)
        if count == 0:
            for part in others:
                self._parts[part].forget(0)


class _Awaited(_Way):
    """One way through a block, on which is noted what waits are for."""

    def __init__(self, effects: Sequence[Effect], state: State) -> None:
        super().__init__(effects, state)
        self.loads: dict[int, frozenset[int]] = {}

    def _control(self, number: int, one: Effect) -> None:
        if one.name == "s_waitcnt" and (count := counts(next(iter(one.modifiers)))[0]) < MOST_VM:
            parts = (_VM, _FLAT_VM) if count == 0 else (_VM,)
            self.loads[number] = frozenset(
                cause for part in parts for _, age, cause in self._parts[part] if part == _FLAT_VM or age >= count
            )
        super()._control(number, one)


class _Reported(_Way):
    """One way through a block, on which what comes too early is reported, and waited for from there on."""

    def __init__(self, listing: Listing, effects: Sequence[Effect], state: State) -> None:
        super().__init__(effects, state)
        self._statements = listing.statements
        self.said: dict[tuple[int, int, int], Omission] = {}

    def _before(self, number: int, one: Effect) -> None:
        for part in (_VM, _LGKM, _FLAT_VM, _FLAT_LGKM, _SCALAR):
            if not self._parts[part]:
                continue
            for register in one.reads:
                self._early(number, register, "reads", part)
            if _IN_ORDER.get(part) is not one.unit:  # what returns in order overwrites in order
                for register in one.writes:
                    self._early(number, register, "overwrites", part)
        if one.reads_lds:
            for place, _, barrier in self._parts[_LATE]:
                if isinstance(place, tuple):
                    self._passed(place[0], barrier)

    def _early(self, number: int, register: int, does: str, part: int) -> None:
        found = self._parts[part].find(register)
        if found is None or found[0] >= _MOST[part]:
            return
        age, cause = found
        words = f"{{statement}} {does} {effect.written(register)} before {{cause}} is known to have returned"
        statement, because = self._statements[number], self._statements[cause]
        self.said.setdefault(
            (number, cause, part), Omission(statement, because, words, f"s_waitcnt {_COUNTER[part]}({age})")
        )
        self._parts[part].forget(age)

    def _passed(self, store: int, barrier: int) -> None:
        counter = "vmcnt" if self._effects[store].to_lds else "lgkmcnt"
        words = "{statement} is passed before {cause} is known to have written to LDS, which is read after it"
        place, cause = self._statements[barrier], self._statements[store]
        self.said.setdefault((barrier, store, _LATE), Omission(place, cause, words, f"s_waitcnt {counter}(0)"))
