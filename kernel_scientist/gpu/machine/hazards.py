"""Finds instructions that come too soon after another one where the hardware of gfx942 does not wait by itself.

A hazard is a number of wait states that must lie between two instructions that touch the same register: each
instruction between them is one, `s_nop n` is n + 1. Source of all numbers: AMD Instinct MI300 ISA, 4.5 "Manually
Inserted Wait States"; LLVM, GCNHazardRecognizer.cpp (gfx940, and what gfx950 adds) and SISchedule.td (passes).

Runs in workers: standard library only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernel_scientist.gpu.machine import effects as effect
from kernel_scientist.gpu.machine import flow, matrix_writer
from kernel_scientist.gpu.machine.effects import EXEC, M0, SCALAR, Effect, Unit
from kernel_scientist.gpu.machine.flow import Block, Recent, State
from kernel_scientist.gpu.machine.listing import Listing, Statement
from kernel_scientist.gpu.machine.matrix_writer import Writer
from kernel_scientist.gpu.machine.omission import Omission

MOST = 20
"""Wait states after which nothing is a hazard any more."""
_TRANSCENDENTAL = re.compile(r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_")
_DOT = re.compile(r"v_dot\d")
_HARDWARE = re.compile(r"s_[gs]etreg")
_REGISTER = re.compile(r"(?:hwreg\()?\s*(HW_\w+|\d+)\b[^,]*,")
_M0_READERS = re.compile(r"s_(?:movrel|sendmsg|ttracedata)|ds_(?:read|write)_addtid")
_ACROSS = ("row_", "quad_perm", "wave_")
"""Beginnings of DPP's modifiers."""
_PARTS = ("dst_sel:BYTE", "dst_sel:WORD")
_HIGH = re.compile(r"op_sel:\[(?:\d,)+1\]$")
_PACKED = re.compile(r"v_(?:pk_|mad_mix|fma_mix|dot\d)")


@dataclass(frozen=True)
class Need:
    """How many wait states must lie between what was done to registers and an instruction."""

    kind: str
    """What was done: `vector`, `scalar of vector`, `stored`, ..., or a matrix writer's name."""
    places: tuple[int, ...]
    states: int
    does: str = "reads"
    """What the instruction does to the registers."""
    continued: int | None = None
    """Instead of `states`, if it adds to just what was written."""


@dataclass(frozen=True)
class _Step:
    """What an instruction means for hazards."""

    states: int
    done: tuple[tuple[str, int], ...]
    needs: tuple[Need, ...]


def omissions(listing: Listing, effects: Sequence[Effect]) -> list[Omission]:
    """Return the places where an `s_nop` is missing or too short."""
    found = flow.blocks(listing)
    writers = tuple(dict.fromkeys(w for one in effects if (w := matrix_writer.writer(one)) is not None))
    dots = tuple(dict.fromkeys(one.name for one in effects if _DOT.match(one.name)))
    rules = _Rules(writers, dots, int(listing.arch == "gfx950"))
    steps = [rules.step(one, statement) for one, statement in zip(effects, listing.statements, strict=True)]
    before = flow.solve(
        found, flow.entries(listing), ({},), lambda block, state: _HazardWay(steps, state).through(block)
    )
    said: dict[tuple[int, int], Omission] = {}
    for first, state in before.items():
        way = _ReportedHazards(listing, effects, steps, state)
        way.through(found[first])
        said |= way.said
    return [said[key] for key in sorted(said)]


class _HazardWay:
    """One way through a block."""

    def __init__(self, steps: Sequence[_Step], state: State) -> None:
        self._steps, self._recent = steps, Recent(state[0])

    def through(self, block: Block) -> State:
        """Take the block's instructions; return the state after them."""
        for number in range(block.first, block.end):
            step = self._steps[number]
            self._before(number, step)
            self._recent.advance(step.states)
            for done in step.done:
                self._recent.put(done, number)
        return (self._recent.facts(MOST),)

    def _before(self, number: int, step: _Step) -> None:
        """Look at an instruction before it is taken."""


class _ReportedHazards(_HazardWay):
    """One way through a block, on which what comes too early is reported, and held back from there on."""

    def __init__(self, listing: Listing, effects: Sequence[Effect], steps: Sequence[_Step], state: State) -> None:
        super().__init__(steps, state)
        self._statements, self._effects = listing.statements, effects
        self.said: dict[tuple[int, int], Omission] = {}

    def _before(self, number: int, step: _Step) -> None:
        for need in step.needs:
            for place in need.places:
                found = self._recent.find((need.kind, place))
                if found is not None and found[0] < max(need.states, need.continued or 0):
                    self._say(number, need, place, *found)

    def _say(self, number: int, need: Need, place: int, age: int, cause: int) -> None:
        states = need.states
        if need.continued is not None:
            same = self._effects[cause].operands[0] == matrix_writer.accumulator(self._effects[number])
            states = need.continued if same else states
        if states <= age:
            return
        what = effect.written(place) if place >= 0 else "the mode"
        words = f"{{statement}} {need.does} {what} {age} wait states after {{cause}}, {states} are needed"
        statement, because = self._statements[number], self._statements[cause]
        self.said.setdefault((number, cause), Omission(statement, because, words, f"s_nop {states - age - 1}"))
        self._recent.advance(states - age)


class _Rules:
    """What each instruction does and needs."""

    def __init__(self, writers: Sequence[Writer], dots: Sequence[str], more: int) -> None:
        self._writers, self._dots, self._more = writers, dots, more

    def step(self, one: Effect, statement: Statement) -> _Step:
        """Return what an instruction means for hazards."""
        needs = list(_of_modes(one, statement))
        if one.unit is Unit.MATRIX:
            needs += self._of_matrix(one)
        elif one.unit is Unit.VECTOR:
            needs += [*_of_vector(one), *self._of_any(one, by_memory=False)]
        elif one.unit in (Unit.MEMORY, Unit.FLAT, Unit.LDS):
            needs += self._of_any(one, by_memory=True)
            needs += [Need("scalar of vector", _scalars(one), 5)] if one.unit is not Unit.LDS else []
        return _Step(_states(one), tuple(_done(one, statement)), _strictest_first(needs))

    def _of_any(self, one: Effect, by_memory: bool) -> Iterator[Need]:
        """Yield what vector and memory instructions need."""
        vectors = tuple(n for n in one.reads if n < SCALAR)
        written = tuple(n for n in one.writes if n < SCALAR)
        for writer in self._writers:
            yield Need(writer.kind, vectors, writer.read(by_memory, self._more))
            yield Need(writer.kind, written, writer.overwritten(self._more), "overwrites")
            yield Need(writer.accumulator, written, writer.passes - 1, "overwrites")
        for dot in self._dots:
            same = dot == one.name
            yield Need(f"dot {dot}", tuple(n for span in one.operands[1:3] for n in span) if same else vectors, 3)
            yield Need(f"dot {dot}", () if same else written, 3, "overwrites")

    def _of_matrix(self, one: Effect) -> Iterator[Need]:
        own = matrix_writer.writer(one)
        if own is None:
            return
        accumulator = tuple(matrix_writer.accumulator(one))
        factors = tuple(matrix_writer.factors(one))
        yield Need("scalar of vector", (EXEC, EXEC + 1), 4)
        yield Need("vector", (*factors, *accumulator), 2)
        for writer in self._writers:
            yield Need(writer.kind, factors, writer.factor(self._more))
            yield Need(writer.kind, accumulator, writer.added(own, self._more), "adds to", writer.continued(own))


def _strictest_first(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return needs, the strictest first: it is the one that is reported."""
    return tuple(sorted((n for n in needs if n.places), key=lambda need: -need.states))


def _of_vector(one: Effect) -> Iterator[Need]:
    """Yield what vector instructions need of others that are not of the matrix unit."""
    vectors = tuple(n for n in one.reads if n < SCALAR)
    if not _TRANSCENDENTAL.match(one.name):
        yield Need("transcendental", vectors, 1)
    yield Need("part", vectors, 1)
    yield Need("scalar of vector", _scalars(one), 4 if one.name.startswith("v_div_fmas") else 2)
    yield Need("stored", one.writes, 2, "overwrites")
    if one.name.startswith(("v_readlane", "v_readfirstlane", "v_writelane")):
        yield Need("vector", vectors if one.name.startswith("v_read") else (), 1)
        yield Need("scalar of vector", (EXEC, EXEC + 1), 4)
        yield Need("scalar of vector", tuple(n for n in one.operands[-1] if n >= SCALAR), 4)
    if any(modifier.startswith(_ACROSS) for modifier in one.modifiers):
        source = 2 if "_co_" in one.name else 1  # behind the carry
        yield Need("vector", tuple(one.operands[source]) if len(one.operands) > source else (), 2)
        yield Need("scalar of vector", (EXEC, EXEC + 1), 5)


def _of_modes(one: Effect, statement: Statement) -> Iterator[Need]:
    """Yield what instructions need of `m0` and of the hardware's registers."""
    if one.to_lds or _M0_READERS.match(one.name):
        yield Need("m0", (M0,), 1)
    if _HARDWARE.match(one.name):
        yield Need(f"mode {_hardware(statement)}", (-1,), 2)


def _scalars(one: Effect) -> tuple[int, ...]:
    return tuple(n for n in one.reads if n >= SCALAR)


def _hardware(statement: Statement) -> str:
    """Return the name of the hardware's register that is read or set."""
    text = statement.operands
    found = _REGISTER.match(text if statement.mnemonic.startswith("s_set") else text.partition(",")[2].strip() + ",")
    return found[1] if found is not None else text


def _states(one: Effect) -> int:
    """Return the wait states that an instruction takes."""
    text = next(iter(one.modifiers), "0") if one.name == "s_nop" else "0"
    return 1 + (int(text, 0) if re.fullmatch(r"\d+|0x[0-9a-fA-F]+", text) else 0)


def _done(one: Effect, statement: Statement) -> Iterator[tuple[str, int]]:
    """Yield what an instruction does that others must keep a distance from, and where."""
    vectors = [n for n in one.writes if n < SCALAR]
    if one.unit is Unit.VECTOR:
        kinds = [f"dot {one.name}"] if _DOT.match(one.name) else ["vector"]
        kinds += ["transcendental"] if _TRANSCENDENTAL.match(one.name) else []
        kinds += ["part"] if _writes_part(one) else []
        yield from ((kind, n) for kind in kinds for n in vectors)
        yield from (("scalar of vector", n) for n in one.writes if n >= SCALAR)
    elif (writer := matrix_writer.writer(one)) is not None:
        yield from ((writer.kind, n) for n in one.operands[0])
        yield from ((writer.accumulator, n) for n in matrix_writer.accumulator(one) if writer.xdl)
    elif len(one.stored) > 2 and not (one.name.startswith("buffer") and len(one.operands) > 3 and one.operands[3]):
        yield from (("stored", n) for n in one.stored)
    elif one.unit is Unit.SCALAR:
        yield from (("m0", n) for n in one.writes if n == M0)
        if one.name.startswith("s_setreg"):
            yield (f"mode {_hardware(statement)}", -1)


def _writes_part(one: Effect) -> bool:
    """Return whether it writes 8 or 16 bits of a register at a place that a modifier names."""
    if any(modifier.startswith(_PARTS) for modifier in one.modifiers):
        return True
    return not _PACKED.match(one.name) and any(_HIGH.match(modifier) for modifier in one.modifiers)
