"""What a problem's own check computes as the reference, so that nobody computes it a second time."""

import functools
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kernel_scientist.problems import trees


@dataclass
class Listener:
    """Gets the reference's output on some inputs: that of a call with the same tensors, output buffers aside."""

    data: Any
    buffers: Collection[int]
    tell: Callable[[Any], None]
    told: bool = False
    error: Exception | None = None
    """What `tell` raised: a check may catch whatever is raised within it."""

    def hear(self, given: Any, output: Any) -> None:
        """Tell of the first call on these very inputs."""
        if self.told or not self._concerns(given):
            return
        self.told = True
        try:
            self.tell(output)
        except Exception as error:
            self.error = error

    def _concerns(self, given: Any) -> bool:
        one, other = trees.items(given), trees.items(self.data)
        pairs = enumerate(zip(one, other, strict=False))
        return len(one) == len(other) and all(place in self.buffers or mine is its for place, (mine, its) in pairs)


_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)


def told(module: ModuleType) -> ModuleType:
    """Return the module, whose own calls of its reference are told to who listens."""
    reference = module.ref_kernel

    @functools.wraps(reference)
    def ref_kernel(*args: Any, **named: Any) -> Any:
        output = reference(*args, **named)
        listener = _listener.get()
        if listener is not None and args:
            listener.hear(args[0], output)
        return output

    module.ref_kernel = ref_kernel  # pyright: ignore[reportAttributeAccessIssue]
    return module


@contextmanager
def heard(listener: Listener) -> Generator[None]:
    """Let a listener hear of this thread's calls within the context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
