"""Records torch's operations between a submission's launches: on a GPU each of them is a kernel of its own.

Runs in an untrusted process: imports the standard library, torch, and modules of this package that need no more.
"""

from collections.abc import Callable
from typing import Any

from torch.overrides import TorchFunctionMode

from kernel_scientist.gpu.interpreter import torch_ops

FETCHING = frozenset(("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "cpu", "nonzero"))
"""Operations that bring values to the host."""


class TorchRecorder(TorchFunctionMode):
    """Records operations within the context."""

    def __init__(self, record: Callable[[str, dict[str, float], bool], None], unknown: set[int]) -> None:
        """`record(name, bytes by storage, whether values come to the host)`; `unknown`: addresses of storages whose
        contents are not real. Results of operations on them are added."""
        super().__init__()
        self._record, self._unknown = record, unknown

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, result = getattr(func, "__name__", ""), func(*args, **kwargs)
        written = torch_ops.written(name, args, kwargs, result)
        read = list(torch_ops.tensors((args[1:] if name in torch_ops.OVERWRITING else args, kwargs)))
        is_unknown = any(one.untyped_storage().data_ptr() in self._unknown for one in read)
        if is_unknown:
            self._unknown.update(one.untyped_storage().data_ptr() for one in written)
        if name in FETCHING and is_unknown:
            self._record(name, {}, True)
        elif any(one.numel() for one in written):
            moved: dict[str, float] = {}
            for one in (*read, *written):
                place, most = str(one.untyped_storage().data_ptr()), one.untyped_storage().nbytes()
                moved[place] = min(most, moved.get(place, 0.0) + one.numel() * one.element_size())
            self._record(name, moved, False)
        return result
