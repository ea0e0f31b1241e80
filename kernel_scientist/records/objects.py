"""Objects among a problem's inputs, such as a `Config` dataclass or a module that holds a KV cache, as plain data.

Only tensors, containers and plain values travel to a worker. An object becomes a dict that names its class and holds
its state; the worker makes an object of the problem's class from it. Nothing is pickled, and only classes of the
problem's own files are made. Imports only the standard library and torch.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from kernel_scientist.records import layout

OBJECT = "__object__"
"""Key of an object's class in the dict that stands for it."""
TORCH = "__torch__"
"""Key of the name of a torch type or device, in the dict that stands for it."""
NAMED = {"dtype", "device", "memory_format", "layout"}


class ObjectError(ValueError):
    """A value among a problem's inputs cannot be turned into data."""


def plain(value: Any, device: str = "") -> Any:
    """Return inputs with every object replaced by a dict. Tensors stay the same tensors.

    device: as for `layout.refusal`. Raises ObjectError for a tensor that cannot be sent as it is, and
    for a value that is no tensor, container, plain value, dataclass or torch module.
    """
    import torch

    if isinstance(value, torch.Tensor):
        if reason := layout.refusal(value, device):
            raise ObjectError(f"{reason} cannot be sent to a worker")
        return value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {OBJECT: type(value).__name__, "fields": plain(cast(Any, value)._asdict(), device)}
    if isinstance(value, (list, tuple)):
        items = [plain(item, device) for item in cast(list[Any], value)]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        found = cast(Mapping[Any, Any], value)
        if others := [key for key in found if not isinstance(key, str)]:
            raise ObjectError(f"a dictionary with the key {others[0]!r}, which is no text, cannot be sent to a worker")
        return {key: plain(item, device) for key, item in found.items()}
    if isinstance(value, torch.nn.Module):
        return _module(value, device)
    if type(value).__module__ == "torch" and type(value).__name__ in NAMED:
        return {TORCH: str(value).removeprefix("torch.")}
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        return {OBJECT: type(value).__name__, "fields": plain(vars(value), device)}
    raise ObjectError(f"a {type(value).__name__} among the inputs cannot be sent to a worker")


def plain_inputs(data: Any, device: str = "") -> Any:
    """Return inputs as `plain` does. Raises ObjectError that says which of them cannot be turned into data."""
    if type(data) not in (tuple, list):
        return plain(data, device)
    items = list[Any]()
    for place, item in enumerate(data):
        try:
            items.append(plain(item, device))
        except ObjectError as error:
            raise ObjectError(f"input {place}: {error}") from error
    return tuple(items) if isinstance(data, tuple) else items


def _module(module: Any, device: str) -> dict[str, Any]:
    own = {name: value for name, value in vars(module).items() if not name.startswith("_") and name != "training"}
    parameters = {name: value for name, value in module._parameters.items() if value is not None}
    buffers = {name: value for name, value in module._buffers.items() if value is not None}
    if any(parameter.requires_grad for parameter in parameters.values()):
        reason = "a module whose parameters require gradients (requires_grad_(False) ends that)"
        raise ObjectError(f"{reason} cannot be sent to a worker")
    return {
        OBJECT: type(module).__name__,
        "fields": plain(own, device),
        "training": module.training,
        "parameters": {name: plain(value.data, device) for name, value in parameters.items()},
        "buffers": plain(buffers, device),
        "modules": {name: _module(child, device) for name, child in module._modules.items() if child is not None},
    }


def revived(value: Any, classes: Mapping[str, Any]) -> Any:
    """Return inputs with objects made from the dicts that `plain` returned. `classes`: the problem's, by name.

    Raises ObjectError for a class that the problem does not define.
    """
    if isinstance(value, (list, tuple)):
        items = [revived(item, classes) for item in cast(list[Any], value)]
        return tuple(items) if isinstance(value, tuple) else items
    if not isinstance(value, dict):
        return value
    found = cast(dict[str, Any], value)
    if TORCH in found:
        import torch

        return getattr(torch, found[TORCH], None) or torch.device(found[TORCH])
    if OBJECT not in found:
        return {key: revived(item, classes) for key, item in found.items()}
    return _made(found, classes)


def _made(found: dict[str, Any], classes: Mapping[str, Any]) -> Any:
    """Return the object that a dict stands for. Its constructor is not called."""
    kind, fields = _class(found[OBJECT], classes), revived(found["fields"], classes)
    if issubclass(kind, tuple):
        return kind(**fields)
    made = kind.__new__(kind)
    if "parameters" not in found:
        for name, item in fields.items():
            object.__setattr__(made, name, item)  # the dataclass may be frozen
        return made
    import torch

    torch.nn.Module.__init__(made)
    for name, item in fields.items():
        setattr(made, name, item)
    for name, item in found["parameters"].items():
        made.register_parameter(name, torch.nn.Parameter(item, requires_grad=False))
    for name, item in found["buffers"].items():
        made.register_buffer(name, item)
    for name, item in found["modules"].items():
        made.add_module(name, _made(item, classes))
    made.training = found["training"]
    return made


def _class(name: str, classes: Mapping[str, Any]) -> Any:
    import torch

    kind = classes.get(name) or getattr(torch.nn, name, None)
    if not isinstance(kind, type):
        raise ObjectError(f"the problem's files define no class {name}")
    return kind


def has_objects(value: Any) -> bool:
    """Whether inputs in plain form stand for objects."""
    if isinstance(value, dict):
        found = cast(dict[str, Any], value)
        return OBJECT in found or TORCH in found or any(has_objects(item) for item in found.values())
    return isinstance(value, (list, tuple)) and any(has_objects(item) for item in cast(list[Any], value))
