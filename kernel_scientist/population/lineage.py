"""The kernels of a campaign and their lineage: an index over records, kept up to date as kernels are added.

Adding a kernel and every question that a search asks take a time that hardly depends on the number of kernels. Whole
records are kept compressed and read when asked for, so that a hundred thousand kernels fit into a few hundred MB.
"""

import bisect
import functools
import threading
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from kernel_scientist.population.entry import Entry, order, score
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import Verdict

RECENT = 1024
"""Records that are kept uncompressed."""


class Population:
    """The kernels of a campaign in the order of their names. One thread adds kernels; any thread may read."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        self._names: list[str] = []
        self._records: dict[str, bytes] = {}
        self._ranked: list[tuple[float, tuple[int, str]]] = []
        self._chain = _Chain()
        self._children: dict[str, list[str]] = defaultdict(list)
        self._by_title: dict[str, list[str]] = defaultdict(list)
        self._by_writer: dict[str, list[str]] = defaultdict(list)
        self._generations: dict[int, list[str]] = defaultdict(list)
        self._failures: list[str] = []
        self._tuned: dict[str, float] = {}
        self._elites: dict[str, dict[tuple[str, ...], str]] = defaultdict(dict)
        self._sources: set[str] = set()
        self._verdicts: Counter[Verdict] = Counter()
        self._last_generation = -1
        self._best_seed: tuple[float, str] | None = None
        self._lock = threading.Lock()
        self.get = functools.lru_cache(RECENT)(self._read)
        """Return a trial by its kernel's name. Raises KeyError."""
        for trial in trials:
            self.add(trial)

    def __iter__(self) -> Iterator[Trial]:
        return (self._read(name) for name in list(self._names))

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def add(self, trial: Trial) -> None:
        """Add a kernel. Raises ValueError when its name exists already."""
        base = self._entries.get(trial.kernel.base or "")
        self.insert(Entry.of(trial, base.root if base else None), pack(trial))

    def insert(self, entry: Entry, record: bytes) -> None:
        """Add a kernel by its entry and its compressed record. Raises ValueError when its name exists already."""
        name = entry.name
        with self._lock:
            if name in self._entries:
                raise ValueError(f"kernel {name} is in the population already")
            self._records[name] = record
            if entry.base is not None:
                bisect.insort(self._children[entry.base], name, key=order)
            if entry.title:
                bisect.insort(self._by_title[entry.title.split(":")[0]], name, key=order)
            bisect.insort(self._generations[entry.generation], name, key=order)
            if entry.is_experiment:
                bisect.insort(self._by_writer[entry.writer], name, key=order)
            if entry.title and not entry.score:
                bisect.insort(self._failures, name, key=order)
            if entry.tuned_from:
                self._tuned[entry.tuned_from] = self._tuned.get(entry.tuned_from, 0.0) + entry.tuning_s
            self._sources |= {entry.digest, entry.fingerprint}
            self._verdicts[entry.verdict] += 1
            self._last_generation = max(self._last_generation, entry.generation)
            self._entries[name] = entry
            if entry.score > 0:
                self._rank(entry)
            bisect.insort(self._names, name, key=order)

    def _rank(self, entry: Entry) -> None:
        bisect.insort(self._ranked, (-entry.score, order(entry.name)))
        self._chain.add(entry)
        if entry.is_seed and (self._best_seed is None or entry.score > self._best_seed[0]):
            self._best_seed = entry.score, entry.name
        elites = self._elites[entry.root]
        elite = self._entries.get(elites.get(entry.cell, ""))
        if elite is None or (-entry.score, order(entry.name)) < (-elite.score, order(elite.name)):
            elites[entry.cell] = entry.name

    def entry(self, name: str) -> Entry:
        """Return the index entry of a kernel. Raises KeyError."""
        return self._entries[name]

    def entries(self) -> list[Entry]:
        """Return all entries in the order of the names."""
        return [self._entries[name] for name in list(self._names)]

    def record(self, name: str) -> bytes:
        """Return a kernel's compressed record; see `pack`. Raises KeyError."""
        return self._records[name]

    def _read(self, name: str) -> Trial:
        return unpack(self._records[name])

    def latest(self, most: int) -> list[Trial]:
        """Return at most `most` trials, those with the highest names."""
        return [self.get(name) for name in self._names[-most:]]

    def ranking(self, most: int | None = None) -> list[Entry]:
        """Return the entries with a score, best first, at most `most`."""
        return [self._entries[name] for _, (_, name) in self._ranked[:most]]

    def ranked(self, most: int | None = None) -> list[Trial]:
        """Return the trials with a score, best first, at most `most`."""
        return [self.get(entry.name) for entry in self.ranking(most)]

    def incumbent(self) -> str | None:
        """Return the name of the incumbent: the end of the chain in which each kernel was faster by a test.

        Timings run one at a time and each includes the incumbent of that moment, so the chain does not depend on the
        order in which kernels were logged. On a model target: the kernel that is predicted to be fastest.
        """
        if self._ranked and self._entries[first := self._ranked[0][1][1]].by_model:
            return first  # predictions have no noise
        return self._chain.end()

    def best(self) -> Trial | None:
        """Return the incumbent, if any."""
        name = self.incumbent()
        return self.get(name) if name else None

    def incumbent_scores(self) -> tuple[float, ...]:
        """Return the incumbent's score after each kernel, 0 while no kernel is correct.

        The incumbent changes only by a test, so a lucky timing does not raise the curve.
        """
        replayed, scores = Population(), list[float]()
        for entry in self.entries():
            replayed.insert(entry, b"")
            name = replayed.incumbent()
            scores.append(replayed.entry(name).score if name else 0.0)
        return tuple(scores)

    def best_seed(self) -> Trial | None:
        """Return the fastest correct seed kernel, if any."""
        return self.get(self._best_seed[1]) if self._best_seed else None

    def children(self, name: str) -> list[str]:
        """Return the names of the kernels whose base is `name`."""
        return list(self._children.get(name, ()))

    def elites(self) -> dict[str, dict[tuple[str, ...], str]]:
        """Return the best kernel of each cell, by the seed that it descends from."""
        return {root: dict(cells) for root, cells in list(self._elites.items())}

    def titled(self, first: str, most: int) -> list[str]:
        """Return the names of the latest kernels whose experiment's title begins with `first` and a colon."""
        return self._by_title.get(first, [])[-most:]

    def written_by(self, model: str, most: int) -> list[str]:
        """Return the names of the latest experiments that a model wrote."""
        return self._by_writer.get(model, [])[-most:]

    def failures(self, most: int) -> list[str]:
        """Return the names of the latest kernels with an experiment and without a score."""
        return self._failures[-most:]

    def generation(self, number: int) -> list[Entry]:
        """Return the kernels of a generation: experiments, and what tuning made of them."""
        return [self._entries[name] for name in self._generations.get(number, ())]

    def experiments(self, generation: int) -> list[Entry]:
        """Return the experiments of a generation."""
        return [entry for entry in self.generation(generation) if entry.is_experiment]

    def tuned(self) -> dict[str, float]:
        """Return the kernels that were tuned, and the seconds that it took."""
        return dict(self._tuned)

    def has_source(self, key: str) -> bool:
        """Whether a source with this digest or fingerprint (`compile.fingerprint`) was tried."""
        return key in self._sources

    def verdicts(self) -> dict[str, int]:
        """Return the number of kernels per verdict."""
        return {verdict.value: self._verdicts[verdict] for verdict in Verdict}

    def generations(self) -> int:
        """Return the number of the next generation."""
        return self._last_generation + 1

    def uplift(self, trial: Trial) -> float | None:
        """Return the change of the score over the base's in percent, -100 for a failure; None if either is unknown."""
        base = self._entries.get(trial.kernel.base or "")
        if base is None or not base.score:
            return None
        if trial.evaluation.verdict in (Verdict.OK, Verdict.COMPILED) and not score(trial):
            return None  # not timed, or not executed
        return 100 * (score(trial) / base.score - 1)


class _Chain:
    """The chain of incumbents: it begins with the kernel that was timed first; each next one beat the one before."""

    START = ""
    """What the kernels that were timed first follow."""

    def __init__(self) -> None:
        self._winners: dict[str, list[str]] = defaultdict(list)
        self._chain = [self.START]
        self._position = {self.START: 0}

    def end(self) -> str | None:
        """Return the last kernel's name."""
        return self._chain[-1] or None

    def add(self, entry: Entry) -> None:
        """Add a kernel with a score, in any order."""
        before = (self.START, *entry.beaten) if entry.timed_first else entry.beaten
        for other in before:
            bisect.insort(self._winners[other], entry.name, key=order)
        for other in before:
            position = self._position.get(other)
            if position is not None and self._chain[position + 1 : position + 2] != self._winners[other][:1]:
                self._follow(position + 1)

    def _follow(self, length: int) -> None:
        for name in self._chain[length:]:
            del self._position[name]
        del self._chain[length:]
        while (following := self._winners[self._chain[-1]][:1]) and following[0] not in self._position:
            self._position[following[0]] = len(self._chain)
            self._chain += following


def pack(trial: Trial) -> bytes:
    """Return a trial's record, compressed."""
    return zlib.compress(trial.model_dump_json().encode(), 1)


def unpack(record: bytes) -> Trial:
    """Return the trial of a record that `pack` wrote. Raises ValueError."""
    return Trial.model_validate_json(zlib.decompress(record))


def distinct_name(name: str, taken: Collection[str], mark: str) -> str:
    """Return `name`, with `mark` appended while it is taken: timed sources are identified by their names."""
    while name in taken:
        name = f"{name} ({mark})"
    return name
