"""Refuses inline assembly of NVIDIA's in code for AMD's GPUs, before the compiler ends the process because of it.

Runs in an untrusted process: imports the standard library and triton only.
"""

import re
from typing import Any

from triton.backends.amd.compiler import HIPBackend

ASSEMBLY = re.compile(r'elementwise_inline_asm "(?P<text>[^"]*)"[^\n]*?constraints = "(?P<constraints>[^"]*)"')
OF_NVIDIA = frozenset("rhlfdc")
"""Constraints that name NVIDIA's registers; AMD's are v, s and a."""


class ForeignAssemblyError(Exception):
    """Inline assembly is not for this GPU."""


def install() -> None:
    """Check each module before it is compiled for AMD's GPUs."""
    convert: Any = HIPBackend.make_ttgir

    def checked(module: Any, *rest: Any) -> Any:
        text = str(module)
        for found in ASSEMBLY.finditer(text) if "inline_asm" in text else ():
            if any(part.strip("=&~ ")[:1] in OF_NVIDIA for part in found["constraints"].split(",")):
                words = " ".join(found["text"].replace("\\0A", " ").replace("\\09", " ").split())
                raise ForeignAssemblyError(f"inline assembly for NVIDIA's GPUs: {words[:80]}")
        return convert(module, *rest)

    backend: Any = HIPBackend
    backend.make_ttgir = staticmethod(checked)
