"""Makes torch report a GPU that is not present.

Tensors of that GPU lie in main memory. Queries about the device are answered from the table of GPUs. Runs in untrusted
processes, so it imports only the standard library, torch, and modules of this package.
"""

import contextlib
import functools
from collections.abc import Callable, Generator, Iterable
from types import FunctionType
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from kernel_scientist.gpu.fake import host_tensors
from kernel_scientist.gpu.fake.facts import Facts

DEVICE = torch.device("cuda", 0)
UNCHANGED: tuple[Any, ...] = (torch.device, torch._C._nn._parse_to)  # pyright: ignore
"""Functions that only read which device is meant; the other one is what `Module.to` calls."""
HIP, CUDA = "6.4.43482", "12.8"
"""The values of `torch.version.hip` and `torch.version.cuda`: releases that torch 2.13 was built for."""


class _Elsewhere(TorchFunctionMode):
    """Tensors report the fake GPU as their device; tensors that are created on it are created in main memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if (told := _TOLD.get(getattr(func, "__self__", func))) and func.__name__ in ("__get__", "get_device"):
            return told[host_tensors.is_host(args[0])]
        if func in (torch.Tensor.numpy, torch.Tensor.__array__):
            if not host_tensors.is_gpu(args[0]):
                return func(*args, **kwargs)
            if not kwargs.get("force"):
                raise TypeError(host_tensors.NUMPY)
            return func(host_tensors.fetched(args[0]), *args[1:], **kwargs)
        if func in UNCHANGED:
            return func(*args, **kwargs)
        return self._placed(func, args, kwargs)

    def _placed(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Return a function's result; note whether it is the host's or the GPU's, if that is known."""
        is_pinned = bool(kwargs.pop("pin_memory", False)) or func is torch.Tensor.pin_memory
        to_host = host_tensors.goes_to_host(func, args, kwargs)
        given = list(host_tensors.tensors((args, kwargs)))
        are_host = [host_tensors.is_host(one) for one in given]
        is_fetch = host_tensors.fetches(func, args, kwargs, to_host)
        with host_tensors.fetching() if is_fetch else contextlib.nullcontext():
            result = _in_main_memory(func, args, kwargs)
            if given and (to_host or are_host[0]) and to_host not in (None, are_host[0]):
                return host_tensors.moved(result, given[0], bool(to_host))
        if to_host is None and any(map(host_tensors.is_gpu, given)):
            to_host = False
        elif to_host is None and (is_pinned or (given and all(are_host))):
            to_host = True
        if to_host is not None:
            host_tensors.keep(result, to_host, is_pinned)
        return result


def _in_main_memory(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
        return args[0]
    if kwargs.get("device") is not None:
        kwargs["device"] = "cpu"
    if func is torch.Tensor.to:  # whose device may be a number
        args = ["cpu" if isinstance(one, int) and not isinstance(one, bool) else one for one in args]
    return func(*map(_here, args), **kwargs)


_TOLD: dict[Any, tuple[Any, Any]] = {
    torch.Tensor.is_cuda: (True, False),
    torch.Tensor.is_cpu: (False, True),
    torch.Tensor.device: (DEVICE, torch.device("cpu")),
    torch.Tensor.get_device: (DEVICE.index, -1),
}
"""What tensors of the GPU say, and those of the host."""


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
        return saying(0.0)


def saying(answer: Any) -> Callable[..., Any]:
    """Return a function that returns `answer`, whatever it is given."""

    def say(*_: Any, **__: Any) -> Any:
        return answer

    return say


class _Generator(torch.Generator):
    """A generator of random numbers, in main memory wherever it is asked for."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        return super().__new__(cls, device=_here(device))  # pyright: ignore[reportCallIssue]


def _on_cpu(register: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of torch.library that registers for the CPU what is meant for the GPU: tensors lie there."""

    def place(value: Any) -> Any:
        if isinstance(value, FunctionType):
            return _elsewhere(value)
        if isinstance(value, (list, tuple)):
            return type(value)(place(item) for item in cast(list[Any], value))
        return {"cuda": "cpu", "CUDA": "CPU"}.get(value, value) if isinstance(value, str) else value

    def registered(*args: Any, **kwargs: Any) -> Any:
        meant_for_gpu = any(isinstance(value, str) and place(value) != value for value in (*args, *kwargs.values()))

        def unless_there(call: Callable[..., Any], *own: Any, **named: Any) -> Any:
            """Call; None where a function for the CPU is there already: torch's own modules register both."""
            try:
                return call(*own, **named)
            except RuntimeError as error:
                if meant_for_gpu and "already a kernel registered" in str(error):
                    return None
                raise

        own, named = map(place, args), {name: place(value) for name, value in kwargs.items()}
        result = unless_there(register, *own, **named)

        def decorated(function: Callable[..., Any]) -> Any:
            return unless_there(result, _elsewhere(function))

        return decorated if isinstance(result, FunctionType) else result

    return registered


def _elsewhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator's function for which tensors lie on the fake GPU as well: torch switches modes off for it."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with _Elsewhere():
            return function(*args, **kwargs)

    return called


@contextlib.contextmanager
def replaced(places: Iterable[tuple[Any, str, Any]]) -> Generator[None]:
    """Give attributes of objects, by their names, other values within the context."""
    places, missing = list(places), object()
    before = [(owner, name, vars(owner).get(name, missing)) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            delattr(owner, name) if value is missing else setattr(owner, name, value)


@contextlib.contextmanager
def pretended(facts: Facts) -> Generator[None]:
    """Make torch report this GPU within the context."""
    cuda: Any = torch.cuda
    answers: dict[tuple[Any, str], Any] = {
        (torch.version, "hip"): HIP if facts.amd else None,
        (torch.version, "cuda"): None if facts.amd else CUDA,
        (cuda, "is_available"): saying(True),
        (cuda, "is_initialized"): saying(True),
        (cuda, "device_count"): saying(1),
        (cuda, "current_device"): saying(0),
        (cuda, "get_device_name"): saying(facts.name),
        (cuda, "get_device_capability"): saying(facts.capability),
        (cuda, "get_device_properties"): saying(facts.properties()),
        (cuda, "get_arch_list"): saying([facts.arch]),
        (cuda, "mem_get_info"): saying((facts.memory_bytes, facts.memory_bytes)),
        (cuda, "is_current_stream_capturing"): saying(False),
        (torch.accelerator, "is_available"): saying(True),
        (torch.accelerator, "current_accelerator"): saying(torch.device("cuda")),
        (torch, "Generator"): _Generator,
        (torch, "set_default_device"): host_tensors.set_default_device,
        (torch, "get_default_device"): host_tensors.default_device,
    }
    answers |= {(cuda, name): saying(None) for name in ("synchronize", "set_device", "empty_cache", "init")}
    answers |= {(cuda, name): saying(None) for name in ("manual_seed", "manual_seed_all")}
    library: Any = torch.library
    answers |= {
        (library, "custom_op"): _on_cpu(library.custom_op),
        (library, "register_kernel"): _on_cpu(library.register_kernel),
        (library, "impl"): _on_cpu(library.impl),
        (library.Library, "impl"): _on_cpu(library.Library.impl),
        (library.CustomOpDef, "register_kernel"): _on_cpu(library.CustomOpDef.register_kernel),
    }
    answers |= {(cuda, name): _Nothing for name in ("current_stream", "default_stream", "stream", "device", "Stream")}
    answers |= {(cuda, "Event"): _Nothing}
    with replaced((owner, name, answer) for (owner, name), answer in answers.items()), _Elsewhere():
        yield
