"""Debian's HIP headers (5.2) where ROCm 6's mean another thing by one name: mended copies, which are included first.

What the older ones merely lack is in `include/rocm`.
"""

import functools
import re
from pathlib import Path

FP16 = "hip/amd_detail/amd_hip_fp16.h"
INSTALLED = Path("/usr/include")
_BITS = re.compile(r"(struct\s+__half2(_raw)?\s*\{.*?)\bunsigned short x;(\s*)unsigned short y;", re.DOTALL)
_OPERATOR = re.compile(r"\b__device__(\s+(?:__half2?&?|bool)\s+operator\b)")
_NEAR = re.compile(r'#\s*include\s+"([\w.]+)"')


@functools.cache
def mended() -> dict[str, str]:
    """Return the headers to write, by their names; none where the installed ones need no mending."""
    path = INSTALLED / FP16
    return {FP16: _with_halves(path.read_text())} if path.exists() and _BITS.search(path.read_text()) else {}


def _with_halves(text: str) -> str:
    """Return hip_fp16.h with halves as the parts of a `__half2`: as integers they would be converted silently.

    Host code calculates with halves, too. Who includes this header itself gets what `include/rocm` adds, too.
    """
    text = _BITS.sub(r"\1__half\2 x;\3__half\2 y;", text)
    text = _OPERATOR.sub(r"__host__ __device__\1", text)
    text = _NEAR.sub(rf"#include <{Path(FP16).parent}/\1>", text)
    return f"#pragma once\n{text}\n#include <hip/hip_fp16.h>\n"
