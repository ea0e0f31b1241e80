"""One translation unit of what a submission hands to torch's extension builder, as torch's ROCm build would make it."""

import re
from collections.abc import Sequence

HIP_RUNTIME = "#include <hip/hip_runtime.h>"
_RUNTIME = re.compile(r"#\s*include\s*[<\"](cuda\.h|cuda_runtime\.h|cuda_runtime_api\.h)[>\"]")
_FROM_CUDA = re.compile(r"cuda|CUDA|curand|cub/|cub::|nccl|__nv_")


def of(sources: Sequence[str], name: str = "source") -> str:
    """Join sources; what the compiler says of them names `name[0]`, `name[1]`, ... and their own lines."""
    plain = re.sub(r"[^\w.-]", "_", name)[:80]
    return "\n".join(f'#line 1 "{plain}[{number}]"\n{text}' for number, text in enumerate(sources))


def hipified(text: str) -> str:
    """Return CUDA's names as HIP's, by torch's own tables: what `load_inline` does to `cuda_sources` on ROCm."""
    text = _RUNTIME.sub(HIP_RUNTIME, text)
    if not _FROM_CUDA.search(text):
        return text
    from torch.utils.hipify import hipify_python  # takes seconds, and few HIP submissions need it

    return hipify_python.RE_PYTORCH_PREPROCESSOR.sub(lambda found: str(hipify_python.PYTORCH_MAP[found[0]]), text)
