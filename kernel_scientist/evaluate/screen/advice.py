"""Advice: what a reader of a result should know of a kernel's source. It decides nothing.

Whether a library does the work and whether the kernel's own code matters is measured (correctness/library_use.py).
"""

import ast
import re
from collections.abc import Iterator
from itertools import islice

from kernel_scientist.evaluate.screen.finding import MEDIUM, Finding, Severity
from kernel_scientist.evaluate.screen.source import PythonFile
from kernel_scientist.records.kernel import Language

Table = list[tuple[str, Severity, re.Pattern[str]]]
MAX_MATCHES = 8
"""Of one rule in one text."""
_VENDOR = "(?:cublas|hipblas|rocblas|cudnn|miopen|mkl|dnnl|onednn|openblas|cblas|lapack)"


def _table(rows: str) -> Table:
    """Read rows `name severity pattern`."""
    parts = (row.split(maxsplit=2) for row in rows.replace("<VENDOR>", _VENDOR).strip().splitlines())
    return [(name, Severity(severity), re.compile(pattern)) for name, severity, pattern in parts]


PATHS = _table(r"""
library-call medium torch\.(?:nn\.(?!(?:Module|Parameter|parameter|functional)$).+|jit\..+|ops\.aten\..+|compile|einsum)
library-call medium torch\.(?:\w*m[mv]|matmul|\w*dot|\w*softmax|\w+_norm|conv\dd|sum|mean|var|std|norm|r?sqrt|exp|pow)
library-call medium numpy\.(?:dot|matmul|einsum|inner|outer|tensordot|linalg\..+)|ctypes\.(?:CDLL|PyDLL|cdll\b.*)
library-call medium (?:scipy|jax|cupy|numba|aiter|flash_attn|xformers|vllm|flashinfer|transformer_engine)\..+
graph medium torch\.cuda\.(?:CUDAGraph|graphs?|make_graphed_callables|graph_pool_handle)
side-stream medium torch\.cuda\.(?:Stream|stream|ExternalStream|set_stream)
threads medium (?:threading|_thread|concurrent\.futures|multiprocessing\.(?:pool|dummy)|asyncio)\..+
process high (?:subprocess|multiprocessing|torch\.multiprocessing)\.(?!pool|dummy).+
process high os\.(?:system|popen|fork\w*|spawn\w+|exec\w+|posix_spawn\w*|kill\w*|_exit|abort)
network high (?:socket|urllib|http|requests|httpx)\..+|torch\.(?:distributed|hub)\..+
prebuilt-binary medium mmap\.PROT_EXEC|ctypes\.(?:CFUNCTYPE|PYFUNCTYPE)|torch\.(?:ops|classes)\.load_library
obfuscation medium builtins\.(?:exec|eval)|(?:base64|zlib|lzma|bz2|marshal|codecs)\.\w+|builtins\.bytes\.fromhex
precision-flag medium torch\.(?:set_(?:float32_matmul_precision|default_dtype|flush_denormal)|backends\..*allow_\w+)
""")
"""Against a whole dotted name."""
STRINGS = _table(r"""
precision-flag medium -ffast-math|-Ofast|-funsafe-math|-ffinite-math|fast-relaxed-math
library-call medium ^-l(?:<VENDOR>|blas|torch)|\blib(?:<VENDOR>|blas|torch)[\w.-]{0,60}\.so
prebuilt-binary high \x7fELF|\.incbin|\.(?:byte|long|quad)\s{1,4}0x
obfuscation medium (?<![\w+/=-])[\w+/=-]{1500,}
""")
"""Searched in string literals of Python and C++."""
CPP = _table(r"""
library-call medium \b<VENDOR>[A-Z_]\w*|\b(?:dnnl|Eigen|rocprim|thrust)::(?!complex|pair)\w+|\b(?:hip)?cub::Device\w+
library-call medium \b(?:at|torch)::(?:\w*mm|matmul|einsum|\w*softmax|\w+_norm|sum|mean|mul)\b
graph medium \b(?:cuda|hip)(?:Graph|Stream(?:Begin|End)Capture)\w*
side-stream medium \b(?:cuda|hip|cu)StreamCreate\w*|\bgetStreamFromPool\b
threads medium \bstd::(?:j?thread|async|packaged_task)\b|\bpthread_create\b|\btbb::\w+
process high (?<![\w.>])(?:v?fork|exec[vl]\w*|posix_spawn\w*|system|popen|kill)\s?\(
network high (?<![\w.>])(?:socket|getaddrinfo|sendto|recvfrom)\s?\(
prebuilt-binary medium \b(?:cu|hip)ModuleLoad\w*|(?<![\w.>])dlm?open\s?\(|\bPROT_EXEC\b
precision-flag medium \b(?:_mm_setcsr|_MM_SET_\w+|fesetround|fesetenv)\b
""")
"""Searched in C++ text without comments and literals."""
JUDGE = re.compile(
    r"\b(?:note|message)? ?(?:to|for) the (?:\w+ing )?(?:reviewer|judge|grader|evaluator|model)\b|\bas an? (?:ai|llm)\b"
    r"|\b(?:ignore|disregard) (?:\w+ ){0,2}(?:previous|prior|above|earlier|instructions)\b|\brate this kernel\b",
    re.IGNORECASE,
)
"""Prose addressed to whoever evaluates, in comments and strings of either language."""
LOADERS = re.compile(r"kernel_scientist(?:\.\w+)*\.load|torch\.utils\.cpp_extension\.load\w*|cupy\.Raw\w+")


def advice(file: PythonFile, language: Language) -> Iterator[Finding]:
    """Yield advice on a file, in no order."""
    for node in file.nodes:
        path = file.path(node)
        for name, severity, pattern in PATHS if path else ():
            if pattern.fullmatch(path):
                yield Finding(name, severity, getattr(node, "lineno", 1), path)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield Finding("library-call", MEDIUM, node.lineno, "the operator @")
    for node, text in file.strings:
        yield from (finding._replace(line=node.lineno) for finding, _ in _matches(STRINGS, text))
    for cpp in file.native:
        yield from (finding._replace(line=cpp.line(offset)) for finding, offset in _matches(CPP, cpp.code))
    made = "triton.jit" if language == "triton" else LOADERS
    if not any(re.fullmatch(made, file.path(node)) for node in file.nodes):
        yield Finding("no-kernel", MEDIUM, None, f"no {language} kernel is defined here")


def of_text(source: str) -> Iterator[Finding]:
    """Yield advice on the text as it stands, whether it is Python or not."""
    for match in islice(JUDGE.finditer(source), MAX_MATCHES):
        yield Finding("judge-addressed", MEDIUM, source.count("\n", 0, match.start()) + 1, match[0])


def _matches(table: Table, text: str) -> Iterator[tuple[Finding, int]]:
    for name, severity, pattern in table:
        for match in islice(pattern.finditer(text), MAX_MATCHES):
            yield Finding(name, severity, None, match[0]), match.start()
