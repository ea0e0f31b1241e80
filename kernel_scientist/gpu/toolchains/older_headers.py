"""Debian's HIP headers (5.2) where ROCm 6's mean another thing by one name, or have more in a class.

Mended copies are included first. What the older ones merely lack is in `include/rocm`.
"""

import functools
import re
from pathlib import Path

FP16 = "hip/amd_detail/amd_hip_fp16.h"
GROUPS = "hip/amd_detail/amd_hip_cooperative_groups.h"
INSTALLED = Path("/usr/include")
_BITS = re.compile(r"(struct\s+__half2(_raw)?\s*\{.*?)\bunsigned short x;(\s*)unsigned short y;", re.DOTALL)
_OPERATOR = re.compile(r"\b__device__(\s+(?:__half2?&?|bool)\s+operator\b)")
_NEAR = re.compile(r'#\s*include\s+"([\w.]+)"')
_OF_TILE = "  using tbtBase::thread_rank;\n"
_META = """\
  // Which of the block's tiles it is, and how many there are: only blocks are divided into these.
  __CG_QUALIFIER__ unsigned int meta_group_rank() const { return internal::workgroup::thread_rank() / numThreads; }
  __CG_QUALIFIER__ unsigned int meta_group_size() const {
    return (internal::workgroup::size() + numThreads - 1) / numThreads;
  }
"""


@functools.cache
def mended() -> dict[str, str]:
    """Return the headers to write, by their names; none where the installed ones need no mending."""
    texts = {name: (INSTALLED / name).read_text() for name in (FP16, GROUPS) if (INSTALLED / name).exists()}
    found = dict[str, str]()
    if _BITS.search(texts.get(FP16, "")):
        found[FP16] = _with_halves(texts[FP16])
    groups = texts.get(GROUPS, "")
    if _OF_TILE in groups and "meta_group_rank" not in groups:
        found[GROUPS] = groups.replace(_OF_TILE, _OF_TILE + _META)
    return found


def _with_halves(text: str) -> str:
    """Return hip_fp16.h with halves as the parts of a `__half2`: as integers they would be converted silently.

    Host code calculates with halves, too. Who includes this header itself gets what `include/rocm` adds, too.
    """
    text = _BITS.sub(r"\1__half\2 x;\3__half\2 y;", text)
    text = _OPERATOR.sub(r"__host__ __device__\1", text)
    text = _NEAR.sub(rf"#include <{Path(FP16).parent}/\1>", text)
    return f"#pragma once\n{text}\n#include <hip/hip_fp16.h>\n"
