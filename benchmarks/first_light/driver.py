"""Step of first light before torch: CUDA's driver starts in a worker's sandbox; if not, what it lacks.

Each try is a process of half a second (`driver_try`), so that one that hangs or is killed leaves time for others.
"""

import json
import signal
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from benchmarks.first_light import layers
from benchmarks.first_light.driver_try import SandboxTry
from benchmarks.first_light.outcome import Asked, Facts, NotHereError, StepError
from benchmarks.parts import Done, bounded
from kernel_scientist.sandbox import system_calls

TRY_S, AT_ONCE = 5.0, 4
CONTROL = Path("/dev/nvidiactl")
LAYERS = tuple(layers.FUNCTIONS)
NOTHING, ALL = SandboxTry(without=LAYERS), SandboxTry()
FILES = (
    *(SandboxTry(readable=(path,)) for path in ("/proc", "/etc", "/run", "/dev", "/tmp", "/var")),
    *(SandboxTry(writable=(path,)) for path in ("/proc", "/dev/shm", "/tmp", "/run", "/dev", "/var")),
    SandboxTry(readable=("/",)),
    SandboxTry(writable=("/",)),
)
"""What Landlock may be lacking, from little to much."""
CALLS = tuple(
    SandboxTry(calls=(name,))
    for name in sorted(system_calls.NUMBERS, key=lambda name: name not in system_calls.REFUSED)
)
SINGLE = {"landlock": FILES, "system calls": CALLS}
"""By layer: what can be allowed singly."""


def driver_starts(here: Asked) -> Facts:
    """CUDA's driver starts with every layer of a worker's sandbox, and copies bytes to the GPU and back."""
    if here.standin:
        raise NotHereError("the stand-in for a GPU's runtime has no driver")
    if not CONTROL.exists():
        raise NotHereError("this is not NVIDIA's driver")
    yield from _asked([ALL, NOTHING], found := dict[SandboxTry, str]())
    if not found[ALL]:
        yield {"note": "CUDA's driver starts with every layer", "smallest": ""}
        return
    if found[NOTHING]:
        raise StepError(f"the driver does not start without any sandbox either: {found[NOTHING]}")
    yield from _asked([SandboxTry(without=(layer,)) for layer in LAYERS], found)
    alone = {layer: SandboxTry(without=tuple(other for other in LAYERS if other != layer)) for layer in LAYERS}
    yield from _asked(alone.values(), found)
    needed = ALL
    for layer in (layer for layer, only in alone.items() if found[only]):  # it refuses something by itself
        singles = [alone[layer].joined(single) for single in SINGLE.get(layer, ())]
        yield from _asked(singles, found)
        helping = [single for single, tried in zip(SINGLE.get(layer, ()), singles, strict=True) if not found[tried]]
        needed = needed.joined(next(iter(helping), SandboxTry(without=(layer,))))
        yield {"smallest": needed.words()}
    yield from _asked([needed], found)
    words = f"it starts with: {needed.words()}" if not found[needed] else "no smallest set of relaxations was found"
    raise StepError(f"CUDA's driver does not start with every layer ({found[ALL]}); {words}")


def _asked(tries: Iterable[SandboxTry], found: dict[SandboxTry, str]) -> Facts:
    """Make tries, some at once; note for each what refused (empty: nothing), and yield it."""
    new = [attempt for attempt in dict.fromkeys(tries) if attempt not in found]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for attempt, said in zip(new, threads.map(_tried, new), strict=True):
            found[attempt] = said
            name = "no layer" if attempt == NOTHING else attempt.words() or "every layer"
            print(f"{name}: {said or 'starts'}", flush=True)
            yield {f"driver, {name}": said or "starts"}


def _tried(attempt: SandboxTry) -> str:
    """Return what refused in a try: empty if the driver has started."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "benchmarks.first_light.driver_try", json.dumps(asdict(attempt))]
        return refusal(bounded(command, TRY_S, TMPDIR=folder, HOME=folder))


def refusal(done: Done) -> str:
    """Return what a try's process has met: a call's error, or the call in which it was killed or hung."""
    said: dict[str, object] = {}
    for line in done.output.splitlines():
        if line.startswith("{") and line.endswith("}"):
            said |= json.loads(line)
    if said.get("works"):
        return ""
    call = said.get("call", "its start")
    if done.status is None:
        return f"hung in {call}"
    if done.status < 0:
        return f"killed by {signal.Signals(-done.status).name} in {call}"
    return str(said.get("error") or f"exit status {done.status} in {call}: {done.output[-300:]}")
