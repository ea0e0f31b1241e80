"""Compiler flags that a submission may use. It is an allow list, because dangerous flags cannot all be known.

Dangerous flags start programs (`-wrapper`, `--specs=`, `-fplugin=`, `-fmodule-mapper=`), pass text to other programs
(`-Wl,`, `-Xlinker`) or write files (`-o`), most of them under several names. An argument that is not a flag is a file
to read, which a linker may interpret as a script.
"""

import re
import shlex
from collections.abc import Sequence

HOST = re.compile(
    r"-O(fast|[0-3sgz])?"
    r"|-f(?!plugin|pass-plugin|module|offload|dump|use-ld)[\w-]+(=[\w,:+-]+)?"  # no dot, so that no file name matches
    r"|-m(?!llvm)[\w-]+(=[\w.,+-]+)?"
    r"|--?std=[\w+]+|--param=[\w-]+=\d+"
    r"|-[DU][A-Za-z_].*"
    r"|-(I|isystem|iquote)[\w./+-]+"
    r"|-l(?!oad$|ib$|ink$)[\w+-]+"  # nvcc's own
    r"|-W[\w+-]*(=[\w+-]+)?|-w|-pedantic(-errors)?"  # no comma: not -Wl,
    r"|-g[\w-]*|-pthread|-pipe|-shared|-s|-v|-static-lib\w+|-nostartfiles|-nostdlib|-rdynamic",
    re.ASCII | re.DOTALL,
)
"""Flags of g++ and of its linker."""
_HANDED = re.compile(r"-(Xcompiler|Xptxas|Xfatbin|Xcudafe)=?|--(compiler|ptxas|fatbin)-options=?")
"""Flags that pass other flags to another compiler."""
_NAMES = (
    *("use_fast_math", "ftz", "fmad", "prec-div", "prec-sqrt", "maxrregcount", "restrict"),
    *("extra-device-vectorization", "expt-relaxed-constexpr", "expt-extended-lambda", "extended-lambda"),
    *("relocatable-device-code", "rdc", "dlto", "lineinfo", "generate-line-info", "device-debug", "debug"),
    *("resource-usage", "verbose", "optimize", "threads", "t", "gpu-architecture", "arch", "gencode"),
    *("generate-code", "gpu-code", "code", "default-stream", "split-compile", "diag-suppress", "diag-error"),
    *("diag-warn", "disable-warnings", "display-error-number", "no-display-error-number", "offload-arch"),
    *("amdgpu-target", "gpu-max-threads-per-block", "cudart", "Werror", "no-exceptions", "dlcm", "dscm"),
    *("def-load-cache", "def-store-cache", "warn-on-spills", "warn-spills", "warn-lmem-usage"),
    *("allow-expensive-optimizations", "opt-level", "Ofast-compile", "suppress-stack-size-warning"),
)
DEVICE = re.compile(
    rf"--?({'|'.join(_NAMES)})(=[\w.,:=+\[\]-]+)?"
    r"|-Rpass[\w-]*=[\w.*|-]+"
    r"|-mllvm|--?(amdgpu|unroll|inline|enable|disable|greedy|misched|sched)-[\w-]+(=[\w-]+)?"
    r"|arch=\w+,code=[\w,\[\]]+|(sm|compute)_\d+a?|\d+",  # value of the previous flag
    re.ASCII,
)
"""Additional flags of nvcc, hipcc and clang."""


def split(given: Sequence[str]) -> list[str]:
    """Return single flags, split as a shell does: torch pastes flags into commands. Raises ValueError if quotes do not
    match."""
    return [part for flag in given for part in shlex.split(flag)]


def forbidden(flags: Sequence[str]) -> str | None:
    """Return the first flag that may not be given to a host's compiler."""
    return next((flag for flag in flags if not HOST.fullmatch(flag)), None)


def forbidden_for_device(flags: Sequence[str]) -> str | None:
    """Return the first flag that may not be given to a device's compiler."""
    return next((flag for flag in flags if not all(_for_device(part) for part in _handed_on(flag))), None)


def _for_device(flag: str) -> bool:
    return bool(HOST.fullmatch(flag) or DEVICE.fullmatch(flag) or _HANDED.fullmatch(flag))


def _handed_on(flag: str) -> list[str]:
    """Return the flags that a flag passes on (`-Xcompiler=-a,-b`), or the flag itself if it passes none."""
    found = _HANDED.match(flag)
    words = flag[found.end() :] if found else flag
    if words and (found or (words.startswith("-") and ",-" in words)):
        return [part for part in words.split(",") if part]
    return [flag]
