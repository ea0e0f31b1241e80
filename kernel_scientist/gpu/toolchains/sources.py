"""The texts of a submission's sources, as compilers get them."""

import re
from collections.abc import Sequence

HIP_RUNTIME = "#include <hip/hip_runtime.h>"
_RUNTIME = re.compile(r"#\s*include\s*[<\"](cuda\.h|cuda_runtime\.h|cuda_runtime_api\.h)[>\"]")
_FROM_CUDA = re.compile(r"cuda|CUDA|curand|cub/|cub::|nccl|__nv_")


def joined(sources: Sequence[str], name: str = "source") -> str:
    """Join sources, with line directives so that messages name `name[0]`, `name[1]`, ... and their lines."""
    return "\n".join(f'#line 1 "{text_name(name, number)}"\n{text}' for number, text in enumerate(sources))


def text_name(name: str, number: int) -> str:
    """Return what compilers call one of an extension's texts."""
    plain = re.sub(r"[^\w.-]", "_", name)[:80]
    return f"{plain}[{number}]"


def hipified(text: str) -> str:
    """Translate CUDA names to HIP by torch's tables, as `load_inline` does with `cuda_sources` on ROCm."""
    text = _RUNTIME.sub(HIP_RUNTIME, text)
    if not _FROM_CUDA.search(text):
        return text
    from torch.utils.hipify import hipify_python  # the import takes seconds, and few HIP submissions need it

    return hipify_python.RE_PYTORCH_PREPROCESSOR.sub(lambda found: str(hipify_python.PYTORCH_MAP[found[0]]), text)
