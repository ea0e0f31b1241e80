"""Makes torch report a GPU that is not present.

Tensors of that GPU lie in main memory. Queries about the device are answered from the table of GPUs. Runs in untrusted
processes, so it imports only the standard library, torch and `facts`.
"""

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernel_scientist.gpu.capture.facts import Facts

DEVICE = torch.device("cuda", 0)
HIP, CUDA = "6.4.43482", "12.8"
"""The values of `torch.version.hip` and `torch.version.cuda`: releases that torch 2.13 was built for."""


class _Elsewhere(TorchFunctionMode):
    """Tensors report the fake GPU as their device; tensors that are created on it are created in main memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (told := _TOLD.get(getattr(func, "__self__", None))) is not None and func.__name__ == "__get__":
            return told
        if func is torch.Tensor.cuda:
            return args[0]
        kwargs = {k: v for k, v in (kwargs or {}).items() if k not in ("pin_memory",)}
        if kwargs.get("device") is not None:
            kwargs["device"] = "cpu"
        return func(*[_here(a) for a in args], **kwargs)


_TOLD: dict[Any, Any] = {torch.Tensor.is_cuda: True, torch.Tensor.device: DEVICE}


def _here(argument: Any) -> Any:
    if isinstance(argument, torch.device):
        return torch.device("cpu")
    return "cpu" if isinstance(argument, str) and argument.split(":")[0] in ("cuda", "hip") else argument


class _Nothing:
    """A stream, event or context that does nothing."""

    cuda_stream = 0
    device = DEVICE

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *_: object) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return _saying(0.0)


def _saying(answer: Any) -> Callable[..., Any]:
    def say(*_: Any, **__: Any) -> Any:
        return answer

    return say


@contextlib.contextmanager
def pretended(facts: Facts) -> Generator[None]:
    """Make torch report this GPU within the context."""
    cuda: Any = torch.cuda
    answers: dict[tuple[Any, str], Any] = {
        (torch.version, "hip"): HIP if facts.amd else None,
        (torch.version, "cuda"): None if facts.amd else CUDA,
        (cuda, "is_available"): _saying(True),
        (cuda, "is_initialized"): _saying(True),
        (cuda, "device_count"): _saying(1),
        (cuda, "current_device"): _saying(0),
        (cuda, "get_device_name"): _saying(facts.name),
        (cuda, "get_device_capability"): _saying(facts.capability),
        (cuda, "get_device_properties"): _saying(facts.properties()),
        (cuda, "get_arch_list"): _saying([facts.arch]),
    }
    answers |= {(cuda, name): _saying(None) for name in ("synchronize", "set_device", "empty_cache", "init")}
    answers |= {(cuda, name): _Nothing for name in ("current_stream", "default_stream", "stream", "device", "Stream")}
    answers |= {(cuda, "Event"): _Nothing}
    before = {place: getattr(*place, None) for place in answers}
    for (owner, name), answer in answers.items():
        setattr(owner, name, answer)
    try:
        with _Elsewhere():
            yield
    finally:
        for (owner, name), value in before.items():
            setattr(owner, name, value)
