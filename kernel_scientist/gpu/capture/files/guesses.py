"""Invents arguments for a kernel's parameters: for each a list of alternatives, the most plausible one first.

Sources, in this order: the file's tunables, its launches, the parameter's default, its use in the kernel, its name.
Runs in untrusted processes: imports the standard library, torch and triton only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from kernel_scientist.gpu.capture.files.launch_sites import Hint
from kernel_scientist.gpu.capture.files.uses import Use, Uses


@triton.jit
def _one(a):  # noqa: ANN001, ANN202  # pyright: ignore
    return a


@triton.jit
def _two(a, b):  # noqa: ANN001, ANN202  # pyright: ignore
    return a + b


@triton.jit
def _three(a, b, c):  # noqa: ANN001, ANN202  # pyright: ignore
    return a + b + c


STAND_INS: dict[int, Any] = {1: _one, 2: _two, 3: _three}
"""Stand for functions that a kernel gets as constants and calls (`ACTIVATION(x)`), by their number of arguments."""


FLOATS = (torch.bfloat16, torch.float32, torch.float16)
INTEGERS = (torch.int32, torch.int64, torch.uint8, torch.int8)
TYPES = (tl.float32, tl.bfloat16, tl.float16, tl.int32, tl.int8, tl.uint8)
SIZES = (64, 32, 128, 16, 1024, 1, 2, 4, 8, 256)
INDICES = re.compile(
    r"ind(ices|ex)|idx|(^|_)ids?(_|$)|offset|lens?(_|$|gth)|seqlen|table|map(ping)?(_|$)|mask|seed|count|(^|_)cu_|(^|_)num_"
    r"|(^|_)locs?(_|$)|slot|indptr|label|target|position|(^|_)pos(_|$)|lock",
    re.I,
)
SINGLE = re.compile(
    r"scale|lse|rstd|mean|(^|_)(m|l|z|sum|max|rms|rrms|var)(_|$)|loss|partial|softmax|absmax|weights", re.I
)
REALS = re.compile(
    r"eps|scal|alpha|beta|gamma|factor|momentum|(^|_)lr(_|$)|prob|(^|_)p(_|$)|ratio|cap(_|$)|theta|decay|temperature"
    r"|smooth|limit|slope|fill|value|min(_|$)|max(_|$)|(^|_)rate",
    re.I,
)
NOT_REAL = re.compile(r"stride|size|num|len|max_(seq|ctx|num|pos|len|blocks|tokens)|block|dim|idx|ptr|(^|_)n_", re.I)
FLAGS = re.compile(
    r"^(even|has|is|use|causal|do|with|store|return|apply|need|compute|add|enable|save|masked|output)(_|$|[A-Z])", re.I
)
LIMITS = re.compile(r"(dtype|fp8|int8|quant|^q)_?(max|min)|(max|min)_?(val|fp8|int8)|^fp8_m(ax|in)", re.I)
"""Constants that bound the values of a type."""
UNUSUAL = re.compile(
    r"fp8|int8|int4|w4|w8|mx(fp)?|tma|warp_special|debug|var_?len|fake|trans|reverse|sparse|paged|interpret|interleave"
    r"|ragged|zero_point|awq|host|per_channel|softcap|quant|deterministic|64",
    re.I,
)


@dataclass(frozen=True)
class Descriptor:
    """Stands for a tensor descriptor with this block shape."""

    block: tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """What is known of a kernel's parameters."""

    uses: Uses
    hints: Mapping[str, Hint]
    tunables: Mapping[str, Any]
    functions: Mapping[int, list[Any]]
    """The file's functions that a kernel may call, by number of arguments."""
    units: frozenset[str]
    """Parameters that are strides of a last dimension."""


def alternatives(param: Any, known: Known) -> list[Any]:
    """Return possible arguments for a parameter. A type of torch stands for a tensor of it."""
    use, hint = known.uses.params[param.name], known.hints.get(param.name)
    chosen: list[Any] = []
    if param.name in known.tunables:
        chosen.append(known.tunables[param.name])
    if hint is not None and hint.value is not None:
        chosen.append(_converted(hint.value, param.is_constexpr))
    if param.has_default:
        chosen.append(param.default)
    if param.is_constexpr:
        made = _constants(param.name, use, hint, known)
    elif use.rank or (hint and hint.block):
        made = _descriptors(use, hint)
    elif use.pointer or use.addresses or re.search(r"ptr|pointer", param.name, re.I) or (hint and hint.tensor):
        chosen = [value for value in chosen if isinstance(value, torch.dtype)]
        made = _pointers(param.name, use, hint)
    else:
        made = _scalars(param, use, hint, known)
    return _distinct([*chosen, *made])


def _distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(type(value) is type(other) and value == other for other in found):
            found.append(value)
    return found


def _converted(value: Any, constant: bool) -> Any:
    if constant and isinstance(value, torch.dtype):
        return next((kind for kind in TYPES if str(value).removeprefix("torch.") in _names(kind)), tl.float32)
    return value


def _names(kind: Any) -> tuple[str, ...]:
    long = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    return (str(kind), long.get(str(kind), str(kind)))


def _constants(name: str, use: Use, hint: Hint | None, known: Known) -> list[Any]:
    if use.arguments >= 0:
        usual = STAND_INS.get(use.arguments)
        return [*known.functions.get(use.arguments, []), *([] if usual is None else [usual]), None]
    if LIMITS.search(name) and not use.block:
        return [-448.0 if re.search("min", name, re.I) else 448.0, 64]
    if use.kind or re.search(r"dtype$|_type$|_ty$|^dtype", name, re.I):
        return [*TYPES]
    if re.search(r"(^|_)eps", name, re.I):
        return [1e-6]
    if re.search(r"cache_mod|evict", name, re.I):
        return ["", None]
    texts = [value for value in use.compared if isinstance(value, str)]
    if texts:
        return [*texts, "", None]
    flag = (FLAGS.search(name) and not use.block) or (use.flag and not use.block) or (hint and hint.flag)
    numbers = [value for value in use.compared if isinstance(value, int) and not isinstance(value, bool)]
    if flag and not any(value > 1 for value in numbers):
        return [False, True] if UNUSUAL.search(name) else [True, False]
    if use.optional:
        return [None, _size(name, use, known), *SIZES]
    return [_size(name, use, known), *numbers, *SIZES, True, False, 0]


def _size(name: str, use: Use, known: Known) -> int:
    low = name.lower()
    if re.search(r"group_?(size)?_?m$|group_m", low):
        return 8
    if re.search(r"warps|stages|split|num_|^n_|^h$|^hq$|heads|topk|xcd", low) and not use.block:
        return 4
    if re.search(r"pack|_per_", low) and not use.block:
        return 2
    blocks = [one for one, other in known.uses.params.items() if other.block or "block" in one.lower()]
    if not known.uses.dots and re.search("block|tile", low) and len(blocks) == 1:
        return 1024
    if re.search(r"ctx|seq|vocab|max|^(m|n|t|s)$|hidden", low) and not use.block:
        return 1024
    if use.bound and not use.block and not re.search(r"dim|size|^(d|k|v)$|block|rows|cols", low):
        return 4
    return 64


def _pointers(name: str, use: Use, hint: Hint | None) -> list[Any]:
    if use.addresses:
        return [torch.int64, torch.int32]
    by_launch = [hint.kind] if hint is not None and hint.kind is not None else []
    if use.integers or INDICES.search(name):
        usual = (*INTEGERS, *FLOATS)
    elif SINGLE.search(name):
        usual = (torch.float32, torch.bfloat16, torch.float16, *INTEGERS)
    else:
        usual = (*FLOATS, *INTEGERS)
    rest = [torch.float8_e4m3fnuz, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool]
    return [*by_launch, *usual, *rest, *([None] if use.optional else [])]


def _descriptors(use: Use, hint: Hint | None) -> list[Any]:
    given = hint.block if hint is not None else ()
    rank = len(given) or use.rank
    usual = tuple(1 if place < rank - 2 else 64 for place in range(rank))
    by_launch = tuple(other if one is None else int(one) for one, other in zip(given, usual, strict=False))
    return [
        Descriptor(by_launch or usual),
        Descriptor(usual),
        Descriptor((*usual[:-2], *(128, 64)[-rank:])),
        torch.bfloat16,
    ]


def _scalars(param: Any, use: Use, hint: Hint | None, known: Known) -> list[Any]:
    name, kind = param.name, param.annotation
    pointers = [torch.bfloat16, torch.int32]
    if kind.startswith(("fp", "bf", "float")) or (hint is not None and hint.real):
        return [0.5, 1024, *pointers]
    if kind.startswith("*"):
        return [*FLOATS, *INTEGERS]
    if name in known.units or (hint is not None and hint.unit):
        return [1, 1024, 0.5, *pointers]
    if REALS.search(name) and not NOT_REAL.search(name) and not use.bound:
        return [0.5, 1024, *pointers, None]
    if FLAGS.search(name) and use.flag:
        return [True, False, 1024, *pointers]
    return [*([1024, None] if use.optional else [1024]), 0.5, *pointers, 1]


def units(names: list[str]) -> frozenset[str]:
    """Return the strides that end a group of strides of one tensor (`stride_am, stride_ak`): the last dimension's."""
    found: set[str] = set()
    strides = [name for name in names if "stride" in name.lower()]
    for one, following in zip(strides, (*strides, "")[1:], strict=True):
        if _tensor(one) != _tensor(following):
            found.add(one)
    groups = [_tensor(name) for name in strides]
    return frozenset(name for name in found if groups.count(_tensor(name)) > 1)


def _tensor(stride: str) -> str:
    """Return the tensor's part of a stride's name, such as `stride_a` of `stride_am`."""
    text = re.sub(r"_?\d+$", "", stride)
    return text if text != stride else stride[:-1]
