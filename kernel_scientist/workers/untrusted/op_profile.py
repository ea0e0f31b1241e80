"""One untimed call, watched from inside: which library operations ran, how often native code was called.

With `mute` the kernel's native functions and Triton launches do nothing: if the output is right all the same, they
were a decoy. This is evidence for a policy, not proof: a kernel that hides its calls is judged by its
outputs and its time like any other. Imports only the standard library and torch.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from torch._C._profiler import _ExperimentalConfig  # pyright: ignore[reportPrivateUsage]
from torch.autograd.profiler import profile

from kernel_scientist.compile.cpp import Native

LIBRARIES = frozenset(
    {"aten", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "quantized", "sparse", "fbgemm", "xnnpack", "prepacked"}
)
"""Where the operations are that torch brings along."""
_OPERATORS = ("OpOverloadPacket", "OpOverload")


@contextlib.contextmanager
def _listening(seen: Counter[str]) -> Generator[None]:
    """Count the operations that torch runs meanwhile.

    By its profiler: it sees operations called from C++ and from other threads too, and imports nothing, where a
    dispatch mode imports half of torch's compiler.
    """
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as profiled:
        yield
    events: Any = profiled.function_events if profiled is not None else None
    seen.update(event.name for event in events or () if event.name.partition("::")[0] in LIBRARIES)


def observe(kernel: Callable[[Any], Any], data: Any, mute: bool) -> tuple[dict[str, Any], Any]:
    """Call the kernel; return what was seen and its output (None when a muted kernel raised)."""
    launches, seen = Counter[str](), Counter[str]()
    before, output, raised = Native.calls, None, False
    with _listening(seen), _launches(launches, mute):
        Native.muted = mute
        try:
            output = kernel(data)
        except BaseException:
            if not mute:
                raise
            raised = True
        finally:
            Native.muted = False
    native = Native.calls - before + sum(launches.values())
    counts = {"native_calls": native, "graph_replays": launches["graph"]}
    return {"operations": dict(seen.most_common(40)), **counts, "raised": raised}, output


@contextlib.contextmanager
def _launches(counts: Counter[str], mute: bool) -> Generator[None]:
    """Count launches, and swallow them when muted: Triton's, compiled or interpreted, those of a kernel that is kept
    compiled (`compiled[grid](...)`), replays of a graph, whose kernels were launched when it was recorded, and calls of
    operators that an extension of the kernel's has registered.
    """
    known = (
        ("triton.runtime.interpreter", "GridExecutor", "__call__"),
        ("triton.runtime.jit", "JITFunction", "run"),
        ("triton.compiler.compiler", "CompiledKernel", "__getitem__"),
        ("torch.cuda.graphs", "CUDAGraph", "replay"),
        *(("torch._ops", owner, "__call__") for owner in _OPERATORS if Native.operators),
    )
    places = [(getattr(sys.modules[module], owner), name) for module, owner, name in known if module in sys.modules]
    originals = [(owner, name, getattr(owner, name)) for owner, name in places]

    def counted(original: Any, what: str = "launch") -> Any:
        def launch(*args: Any, **kwargs: Any) -> Any:
            counts[what] += 1
            return None if mute else original(*args, **kwargs)

        return launch

    def of_item(original: Any) -> Any:
        def item(kernel: Any, grid: Any) -> Any:
            return counted(original(kernel, grid))

        return item

    def of_operator(original: Any) -> Any:
        def call(operator: Any, *args: Any, **kwargs: Any) -> Any:
            packet = getattr(operator, "_overloadpacket", operator)
            own = getattr(packet, "_qualified_op_name", None) in Native.operators
            return (counted(original) if own else original)(operator, *args, **kwargs)

        return call

    for owner, name, original in originals:
        kind = of_item if name == "__getitem__" else of_operator if owner.__name__ in _OPERATORS else counted
        setattr(owner, name, counted(original, "graph") if name == "replay" else kind(original))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
