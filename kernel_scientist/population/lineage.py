"""The kernels of a campaign and their lineage: an index over records, kept up to date as kernels are added.

Adding a kernel and every question that a search asks take a time that hardly depends on the number of kernels. Whole
records are kept compressed and read when asked for, so that a hundred thousand kernels fit into a few hundred MB.
"""

import bisect
import copy
import functools
import threading
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from kernel_scientist.population.entry import Entry, order, score
from kernel_scientist.population.ranking import Ranking
from kernel_scientist.records.evaluation import Trial
from kernel_scientist.records.kernel import REFERENCE, Verdict

RECENT = 1024
"""Records that are kept uncompressed."""


class Population:
    """The kernels of a campaign in the order of their names. One thread adds kernels; any thread may read."""

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self._entries: dict[str, Entry] = {}
        self._names: list[str] = []
        self._records: dict[str, bytes] = {}
        self._order = Ranking()
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
        self._seeds: list[str] = []
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
            if entry.verdict is not Verdict.INFRASTRUCTURE:  # that says nothing about the source
                self._sources |= {entry.digest, entry.fingerprint}
            self._verdicts[entry.verdict] += 1
            self._last_generation = max(self._last_generation, entry.generation)
            self._entries[name] = entry
            if entry.score > 0:
                self._rank(entry)
            bisect.insort(self._names, name, key=order)

    def _rank(self, entry: Entry) -> None:
        self._chain.add(entry)
        if entry.is_seed:
            self._seeds.append(entry.name)
        for name in self._order.add(entry):  # a kernel that others were compared with changes their estimates
            moved = self._entries[name]
            elites = self._elites[moved.root]
            elite = elites.get(moved.cell, name)
            elites[moved.cell] = min(elite, name, key=self._order.key)

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

    def viewed(self, view: Callable[[Trial], Trial]) -> "Population":
        """Return these kernels, whose trials are read as `view` shows them; to look at, not to add to."""
        other = copy.copy(self)
        other._read = lambda name: view(self.get(name))
        other.get = functools.lru_cache(RECENT)(other._read)
        return other

    def latest(self, most: int) -> list[Trial]:
        """Return at most `most` trials, those with the highest names."""
        return [self.get(name) for name in self._names[-most:]]

    def estimate(self, name: str) -> float:
        """Return the number that orders the kernels with a time, minus infinity for others; see `population.ranking`.

        It is a binary logarithm. It is not measured, and never shown: it combines ratios of many runs.
        """
        return self._order.estimate(name)

    def expected(self, trial: Trial) -> float:
        """Return the estimate of a kernel with a time that need not be here yet."""
        return self._order.place(Entry.of(trial)).log

    def ranking(self, most: int | None = None) -> list[Entry]:
        """Return the entries with a time, by the estimate, best first, at most `most`."""
        return [self._entries[name] for name in self._order.best(most)]

    def ranked(self, most: int | None = None) -> list[Trial]:
        """Return the trials with a time, by the estimate, best first, at most `most`."""
        return [self.get(entry.name) for entry in self.ranking(most)]

    def incumbent(self) -> str | None:
        """Return the name of the incumbent: the end of the chain in which each kernel was faster by a test.

        Timings run one at a time and each includes the incumbent of that moment, so the chain does not depend on the
        order in which kernels were logged. On a model target: the kernel that is predicted to be fastest.
        """
        if (best := self._order.best(1)) and self._entries[best[0]].by_model:
            return best[0]  # predictions have no noise
        return self._chain.end()

    def was_incumbent(self, name: str) -> bool:
        """Whether a kernel is or was the incumbent; each was replaced by one that a test found faster."""
        return name in self._chain

    def best(self) -> Trial | None:
        """Return the incumbent, if any."""
        name = self.incumbent()
        return self.get(name) if name else None

    def incumbents(self) -> tuple[str | None, ...]:
        """Return the incumbent's name after each kernel, None while no kernel is correct.

        The incumbent changes only by a test, so a lucky timing does not change it.
        """
        replayed, names = Population(), list[str | None]()
        for entry in self.entries():
            replayed.insert(entry, b"")
            names.append(replayed.incumbent())
        return tuple(names)

    def best_seed(self) -> Trial | None:
        """Return the seed kernel with a time that is fastest by the estimate, if any."""
        return self.get(min(self._seeds, key=self._order.key)) if self._seeds else None

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

    def unjudged(self) -> list[Entry]:
        """Return the first kernels with the verdict `infrastructure`; another one may have had the source since."""
        first = (entry for entry in self.generation(0) if entry.tuned_from is None)
        return [entry for entry in first if entry.verdict is Verdict.INFRASTRUCTURE]

    def experiments(self, generation: int) -> list[Entry]:
        """Return the experiments of a generation."""
        return [entry for entry in self.generation(generation) if entry.is_experiment]

    def tuned(self) -> dict[str, float]:
        """Return the kernels that were tuned, and the seconds that it took."""
        return dict(self._tuned)

    def has_source(self, key: str) -> bool:
        """Whether a source with this digest or fingerprint (`compilers.fingerprint`) was tried and judged."""
        return key in self._sources

    def verdicts(self) -> dict[str, int]:
        """Return the number of kernels per verdict."""
        return {verdict.value: self._verdicts[verdict] for verdict in Verdict}

    def generations(self) -> int:
        """Return the number of the next generation."""
        return self._last_generation + 1

    def predicted_gain(self, trial: Trial) -> float | None:
        """Return how many times faster a kernel is than its base by prediction; None if either has no prediction."""
        base, by_model = self._entries.get(trial.kernel.base or ""), trial.evaluation.by_model
        ratio = score(trial)
        return ratio / base.score if by_model and ratio and base is not None and base.score else None


class _Chain:
    """The chain of incumbents: it begins with the kernel that was timed first; each next one beat the one before."""

    START = ""
    """What the kernels that were timed first follow."""

    def __init__(self) -> None:
        self._winners: dict[str, list[str]] = defaultdict(list)
        self._chain = [self.START]
        self._position = {self.START: 0}

    def __contains__(self, name: str) -> bool:
        return name in self._position

    def end(self) -> str | None:
        """Return the last kernel's name."""
        return self._chain[-1] or None

    def add(self, entry: Entry) -> None:
        """Add a kernel with a time, in any order."""
        before = [self.START] if entry.rival == REFERENCE else [entry.rival] if entry.is_faster else []
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
    """Return a trial's record, compressed, without raw samples and what a command printed: those are artifacts."""
    return zlib.compress(
        trial.model_dump_json(exclude={"evaluation": {"samples"}, "kernel": {"transcript"}}).encode(), 1
    )


def unpack(record: bytes) -> Trial:
    """Return the trial of a record that `pack` wrote. Raises ValueError."""
    return Trial.model_validate_json(zlib.decompress(record))


def distinct_name(name: str, taken: Collection[str], mark: str) -> str:
    """Return `name`, with `mark` appended while it is taken: timed sources are identified by their names."""
    while name in taken:
        name = f"{name} ({mark})"
    return name
