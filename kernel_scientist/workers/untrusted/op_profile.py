"""An observed call: counts of torch's operations and of calls of the kernel's native code.

With `mute` the kernel's native functions and Triton launches do nothing: if the output is still correct, they are
a decoy. This is evidence for a policy, not proof. Imports only the standard library and torch.
"""

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from typing import Any
from unittest import mock

from torch._C._profiler import _ExperimentalConfig  # pyright: ignore[reportPrivateUsage]
from torch.autograd.profiler import profile

from kernel_scientist.compilers.cpp import NativeCalls

LIBRARIES = frozenset(
    {"aten", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "quantized", "sparse", "fbgemm", "xnnpack", "prepacked"}
)
"""Namespaces of the operations that torch contains."""
_OPERATORS = ("OpOverloadPacket", "OpOverload")


@contextlib.contextmanager
def _listening(seen: Counter[str]) -> Generator[None]:
    """Count the operations that torch runs within the context, using its profiler.

    The profiler also sees calls from C++ and other threads. A dispatch mode would import much of torch's compiler.
    """
    with profile(experimental_config=_ExperimentalConfig(profile_all_threads=True)) as profiled:
        yield
    events: Any = profiled.function_events if profiled is not None else None
    seen.update(event.name for event in events or () if event.name.partition("::")[0] in LIBRARIES)


def observe(kernel: Callable[[Any], Any], data: Any, mute: bool) -> tuple[dict[str, Any], Any]:
    """Call the kernel; return the observations and its output (None when a muted kernel raised)."""
    launches, seen = Counter[str](), Counter[str]()
    before, output = NativeCalls.calls, None
    with _listening(seen), _launches(launches, mute):
        NativeCalls.muted = mute
        try:
            output = kernel(data)
        except BaseException:
            if not mute:
                raise
        finally:
            NativeCalls.muted = False
    native = NativeCalls.calls - before + sum(launches.values())
    counts = {"native_calls": native, "graph_replays": launches["graph"]}
    return {"operations": dict(seen.most_common(40)), **counts}, output


@contextlib.contextmanager
def _launches(counts: Counter[str], mute: bool) -> Generator[None]:
    """Count launches, and suppress them when muted.

    A launch is one of Triton's, also of a compiled kernel (`compiled[grid](...)`), a replay of a graph, or a call of an
    operator that an extension of the kernel has registered.
    """

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
            own = getattr(packet, "_qualified_op_name", None) in NativeCalls.operators
            return (counted(original) if own else original)(operator, *args, **kwargs)

        return call

    known = (
        ("triton.runtime.jit", "JITFunction", "run", counted),
        ("triton.compiler.compiler", "CompiledKernel", "__getitem__", of_item),
        ("torch.cuda.graphs", "CUDAGraph", "replay", partial(counted, what="graph")),
        *(("torch._ops", owner, "__call__", of_operator) for owner in _OPERATORS if NativeCalls.operators),
    )
    with contextlib.ExitStack() as stack:
        for module, name, method, wrapped in known:
            if module in sys.modules:
                owner = getattr(sys.modules[module], name)
                stack.enter_context(mock.patch.object(owner, method, wrapped(getattr(owner, method))))
        yield
