"""Tells tensors of the host from those of the fake GPU: all of them lie in main memory.

A tensor that was created without a device may be either, because files are also run that were written for a CPU: it
passes for the GPU's, and may be used on the host.

Runs in untrusted processes, so it imports only torch.
"""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any, cast

import torch
from torch.multiprocessing.reductions import StorageWeakRef

NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
"""What torch says."""
OTHERS = (torch.Tensor.to, torch.Tensor.type_as)
"""Functions whose second tensor says where the result is."""
_storages: dict[int, tuple[StorageWeakRef, bool]] = {}
"""Storages, and whether they are the host's. A weak reference keeps the number from being used again."""
_pinned = set[int]()
"""Those of the host that a GPU can access as well."""
_MOST = 1000
"""Storages after which those that are gone are forgotten."""
_fetching = 0
_default: torch.device | None = None
"""Where tensors are created of which nothing is said, if `torch.set_default_device` was called."""


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a value and its lists, tuples and dictionaries."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in cast(dict[Any, Any], value).values():
            yield from tensors(each)
    elif isinstance(value, list | tuple):
        for each in cast(list[Any], value):
            yield from tensors(each)


def is_host(tensor: torch.Tensor) -> bool:
    """Whether a tensor is known to be the host's."""
    return _is_host(tensor) is True


def is_gpu(tensor: torch.Tensor) -> bool:
    """Whether a tensor is known to be the GPU's."""
    return _is_host(tensor) is False


def is_out_of_reach(tensor: torch.Tensor) -> bool:
    """Whether a GPU cannot access a tensor's memory, as far as is known."""
    return is_host(tensor) and _number(tensor) not in _pinned


def _is_host(tensor: torch.Tensor) -> bool | None:
    number = _number(tensor) if _storages else None
    return _storages[number][1] if number in _storages else None


def keep(result: Any, host: bool, pinned: bool = False) -> None:
    """Note where the tensors of a result are. `pinned`: a GPU can access the host's as well."""
    for tensor in tensors(result):
        number = _number(tensor)
        if number is not None and number not in _storages:
            if len(_storages) >= _MOST:
                for gone in [n for n, (storage, _) in _storages.items() if storage.expired()]:
                    del _storages[gone]
                _pinned.intersection_update(_storages)
            _storages[number] = StorageWeakRef(tensor.untyped_storage()), host
        if number is not None and pinned:
            _pinned.add(number)


def moved(result: Any, given: torch.Tensor, to_host: bool) -> Any:
    """Return what a function returned that moves a tensor between host and GPU; its memory is not the tensor's."""
    if isinstance(result, torch.Tensor) and _number(result) == _number(given):
        result = result.clone()
    keep(result, to_host)
    return result


def fetched(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's values on the host."""
    if is_host(tensor):
        return tensor
    with fetching():
        return tensor.detach().clone()


@contextlib.contextmanager
def fetching() -> Generator[None]:
    """Operations of torch within the context bring values to the host."""
    global _fetching
    _fetching += 1
    try:
        yield
    finally:
        _fetching -= 1


def is_fetching() -> bool:
    """Whether values are brought to the host."""
    return _fetching > 0


def fetches(func: Any, args: Any, kwargs: dict[str, Any], to_host: bool | None) -> bool:
    """Whether a function copies values of the GPU's to the host."""
    if func in (torch.Tensor.copy_, torch.Tensor.__setitem__):
        return is_host(args[0]) and any(map(is_gpu, tensors((args[1:], kwargs))))
    return bool(to_host) and func in (torch.Tensor.cpu, torch.Tensor.to) and not is_host(args[0])


def goes_to_host(func: Any, args: Any, kwargs: dict[str, Any]) -> bool | None:
    """Whether a function's result is to be on the host, by its name and its arguments; None: where its tensors are."""
    if func is torch.Tensor.cpu:
        return True
    if func is torch.Tensor.cuda:
        return False
    if kwargs.get("device") is not None:
        return _is_host_name(kwargs["device"])
    named = [one for one in args if isinstance(one, torch.device)]
    if func is torch.Tensor.to and len(args) > 1 and isinstance(args[1], str | int) and not isinstance(args[1], bool):
        named.append(args[1])
    if named:
        return _is_host_name(named[0])
    if func in OTHERS and len(others := list(tensors((args, kwargs)))) > 1:
        return is_host(others[1])
    if _default is not None and next(tensors((args, kwargs)), None) is None:
        return _is_host_name(_default)
    return None


def set_default_device(device: Any) -> None:
    """Stand for torch's function, whose mode would create tensors on a device that is not there."""
    global _default
    _default = None if device is None else torch.device(device)


def default_device() -> torch.device:
    """Stand for `torch.get_default_device`."""
    return _default or torch.device("cpu")


def _is_host_name(device: Any) -> bool:
    return str(device).split(":")[0] == "cpu"


def _number(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]
    except (NotImplementedError, RuntimeError, ValueError):  # sparse or uninitialised ones, for example
        return None
