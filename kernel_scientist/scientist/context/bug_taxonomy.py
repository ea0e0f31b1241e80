"""Classifies the bug of a failed kernel from its evidence, by regular expressions; repair hints by class and language.

The taxonomy is that of arXiv 2407.06153 (3 classes, 12 kinds), applied to kernels: A is not a program, B stops with an
error, C is incorrect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Verdict


@dataclass(frozen=True)
class Bug:
    """A kind of bug."""

    id: str
    name: str
    symptom: str
    repair: str
    """The usual repair."""
    repairs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other repairs by language; `*`: for every language but C++ on a CPU."""

    def hint(self, language: str) -> str:
        """Return the usual repair in a language."""
        other = self.repairs.get("*", self.repair) if language != "cpp" else self.repair
        return self.repairs.get(language, other)


BUGS = (
    Bug(
        "A.1",
        "incomplete structure",
        "text that ends early or unbalanced brackets",
        "send the whole file; close the raw string that contains the kernel",
        {"triton": "send the whole file; close every bracket and string"},
    ),
    Bug(
        "A.2",
        "wrong indentation",
        "wrong indentation of the Python code around the kernel",
        "indent the module's statements and the bodies consistently by four spaces",
    ),
    Bug(
        "A.3",
        "wrong import",
        "a header or module that does not exist or is not allowed",
        "include only headers of the compiler, the standard library and Linux, such as <immintrin.h>, <omp.h>, "
        "<sys/syscall.h>; import only kernel_scientist, torch and the standard library",
        {
            "triton": "import only torch, triton, triton.language and the standard library",
            "hip": "include only HIP's, torch's and rocWMMA's headers; import only torch and the standard library",
            "*": "include only the compiler's own headers; import only torch and the standard library",
        },
    ),
    Bug(
        "B.1",
        "misused interface",
        "an intrinsic, builtin or library call with a wrong name, type or target",
        "check the signature and the instruction set it needs; write plain code where you are not certain",
        {"triton": "check the signature in Triton 3.7 and the backend's options; write plain code if in doubt"},
    ),
    Bug(
        "B.2",
        "missing definition",
        "a name that is used and not declared",
        "include its header, declare it, or pass it as a define; each entry of TUNABLES becomes a macro",
        {
            "triton": "define it, or pass it to the kernel; of the globals a kernel sees only those of tl.constexpr",
            "*": "include its header, declare it, or pass it as a define or a template argument",
        },
    ),
    Bug(
        "B.3",
        "wrong boundary",
        "an access outside a buffer: a missing tail, a mask that is too wide",
        "compute the last tile's extent from the sizes; process the remainder with a scalar loop or a mask",
        {
            "triton": "mask loads and stores by the sizes, with `other=` where a masked lane's value is used; or wrap "
            "the index (`offs % size`; `tl.minimum` costs the wide loads), or stop a step earlier, where the "
            "experiment wants no mask"
        },
    ),
    Bug(
        "B.4",
        "wrong argument",
        "wrong number, order or type of arguments between Python and the kernel, or an invalid launch",
        'compare the call with the extern "C" signature: tensors are pointers, ints int64_t, floats double',
        {
            "triton": "compare the launch with the kernel's parameters, and its options with those of the backend",
            "*": "compare the call with the C++ function's signature, and the launch with the device's limits",
        },
    ),
    Bug(
        "B.5",
        "hang or resources",
        "an endless loop, a barrier that some threads skip, memory or output above the limits",
        "check every loop's step and every barrier; free or reuse buffers",
        {"triton": "check every loop's step; smaller tiles or fewer stages need less LDS; release every lock"},
    ),
    Bug(
        "C.1",
        "wrong logic",
        "wrong indices, layout, scales or order of operations, or threads that read before others have written",
        "trace one output element by hand from its inputs; compare strides and layout with the reference; look for a "
        "missing barrier",
    ),
    Bug(
        "C.2",
        "not the task",
        "work that is skipped, cached from an earlier call or passed to a library",
        "compute every output from this call's inputs, in the kernel",
    ),
    Bug(
        "C.3",
        "wrong form of the output",
        "wrong type, shape, strides or identity of the returned object",
        "return the tensor that the reference returns, in its type and layout",
    ),
    Bug(
        "C.4",
        "isolated failure",
        "a missed tolerance, or one shape or a few elements that are wrong",
        "accumulate in fp32, round once to nearest even, and check which sizes of the failing case are unusual",
    ),
)
BY_ID = {bug.id: bug for bug in BUGS}
UNINITIALISED = Bug(
    "B.2",
    "uninitialised memory",
    "memory that is read before anything has written it, and the result depends on it",
    "allocate it with torch.zeros in each call, or write all of it before it is read: a lock, a counter or an "
    "accumulator must have its first value before the launch; torch.empty gives none",
)
RACE = Bug(
    "C.1",
    "wrong logic: a race",
    "lanes, waves or programs use the same address, one of them writes, and nothing orders them",
    "within a workgroup a barrier between the two, reached by all of its waves (`__syncthreads()` or "
    "`tl.debug_barrier()`); between programs addresses of their own, an atomic, or two launches",
)

_COMPILER = (
    ("B.5", r"OutOfResources|out of resource"),
    ("A.3", r"no such file or directory|fatal error: .*\.h|ModuleNotFoundError|ImportError|No module named"),
    ("A.2", r"IndentationError|TabError|unexpected indent|unindent does not match"),
    ("A.1", r"SyntaxError|unterminated|expected .* at end of input|was never closed|EOF while|missing terminating"),
    ("B.2", r"was not declared|undeclared|NameError|undefined (symbol|reference)|not defined|has not been declared"),
    (
        "B.1",
        r"target specific option mismatch|inlining failed|no member named|has no member|AttributeError|no attribute",
    ),
    ("A.1", r"error: expected "),  # after B.2: g++ reports this too after an undeclared name
    (
        "B.4",
        r"too (many|few) arguments|cannot convert|invalid conversion|no matching function|incompatible type|TypeError",
    ),
)
_CRASH = (
    ("B.3", r"SIGSEGV|SIGBUS|IndexError|out of bounds|outside its buffers|illegal memory access|memory access fault"),
    ("B.2", r"NameError|UnboundLocalError"),
    ("B.1", r"AttributeError|SIGILL|exports no extern"),
    ("B.4", r"TypeError|ArgumentError|ValueError|invalid (argument|configuration)"),
    ("B.3", r"KeyError|ZeroDivisionError|SIGFPE"),
    ("B.5", r"MemoryError|bad_alloc|SIGKILL|out of memory|RecursionError"),
)
_MEMORY = (
    (BY_ID["B.3"], r"memory: out-of-bounds"),
    (UNINITIALISED, r"memory: uninitialised read"),
    (RACE, r"memory: write race"),
    (BY_ID["B.3"], r"memory: (write to a read-only|jump outside)"),
    (BY_ID["B.5"], r"memory: (deadlock|endless loop|barrier mismatch)"),
)
"""By the words of `gpu.machine.defect` and `gpu.machine.findings`."""
_WRONG = (
    ("C.3", r"dtype|shape|strides?\b|returned|device|type\b.*expected|instead of a tensor|NoneType"),
    ("B.3", r"outside its buffers|guard"),
    ("C.2", r"changed after|another output|still holds what it was filled with|not written"),
)
MOST_ISOLATED = 0.05
"""Largest share of wrong elements of an isolated failure."""


def classify(evaluation: Evaluation) -> Bug:
    """Return the kind of bug of a failed evaluation."""
    compiler = evaluation.compile.log if evaluation.compile and not evaluation.compile.ok else ""
    text = "\n".join((evaluation.reason, *evaluation.evidence, compiler))
    match evaluation.verdict:
        case Verdict.ABSENT:
            return BY_ID["A.1"]
        case Verdict.COMPILE_ERROR:
            return BY_ID[_first(_COMPILER, text) or "B.1"]
        case Verdict.TIMEOUT:
            return BY_ID["B.5"]
        case Verdict.CRASHED:
            return BY_ID[_first(_CRASH, text) or "B.3"]
        case Verdict.REJECTED:
            return BY_ID["C.2"]
        case _:
            if memory := next((bug for bug, pattern in _MEMORY if re.search(pattern, evaluation.reason)), None):
                return memory
            return BY_ID[_first(_WRONG, text) or ("C.4" if _isolated(text) else "C.1")]


def _first(rules: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((bug_id for bug_id, pattern in rules if re.search(pattern, text, re.IGNORECASE)), None)


def _isolated(text: str) -> bool:
    """Whether only a few elements were wrong, as in `12 of 4096 elements differ`."""
    match = re.search(r"(\d{1,12}) of (\d{1,12}) elements", text)
    return bool(match) and int(match[1]) <= MOST_ISOLATED * int(match[2])
