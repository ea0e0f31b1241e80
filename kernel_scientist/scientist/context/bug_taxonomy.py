"""Classifies the bug of a failed kernel from its evidence, by regular expressions; one repair hint per class.

The taxonomy is that of arXiv 2407.06153 (3 classes, 12 kinds), applied to kernels: A is not a program, B stops with an
error, C is incorrect.
"""

import re
from dataclasses import dataclass

from kernel_scientist.records.evaluation import Evaluation
from kernel_scientist.records.kernel import Verdict


@dataclass(frozen=True)
class Bug:
    """A kind of bug."""

    id: str
    name: str
    symptom: str
    hint: str
    """The usual repair."""


BUGS = (
    Bug(
        "A.1",
        "incomplete structure",
        "text that ends early or unbalanced brackets",
        "send the whole file; close the raw string that contains the kernel",
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
        "a header or module that is missing or not allowed",
        "include only standard headers (<cstdint>, <cmath>, <cstring>, <omp.h>, <immintrin.h>); import nothing else",
    ),
    Bug(
        "B.1",
        "misused interface",
        "an intrinsic, builtin or library call with a wrong name, type or target",
        "check the signature and the instruction set it needs; write plain code where you are not certain",
    ),
    Bug(
        "B.2",
        "missing definition",
        "a name that is used and not declared",
        "declare it, or pass it as a define; each entry of TUNABLES becomes a macro",
    ),
    Bug(
        "B.3",
        "wrong boundary",
        "an access outside a buffer: a missing tail, a mask that is too wide",
        "compute the last tile's extent from the sizes; process the remainder with a scalar loop or a mask",
    ),
    Bug(
        "B.4",
        "wrong argument",
        "wrong number, order or type of arguments between Python and the kernel, or an invalid launch",
        'compare the call with the extern "C" signature: tensors are pointers, ints int64_t, floats double',
    ),
    Bug(
        "B.5",
        "hang or resources",
        "an endless loop, a barrier that some threads skip, memory or output above the limits",
        "check every loop's step and every barrier; free or reuse buffers",
    ),
    Bug(
        "C.1",
        "wrong logic",
        "wrong indices, layout, scales or order of operations",
        "trace one output element by hand from its inputs; compare strides and layout with the reference",
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
_WRONG = (
    ("B.3", r"memory: (out-of-bounds|mask mistake)"),
    ("C.1", r"memory: "),
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
        case Verdict.COMPILE_ERROR:
            return BY_ID[_first(_COMPILER, text) or "B.1"]
        case Verdict.TIMEOUT:
            return BY_ID["B.5"]
        case Verdict.CRASHED:
            return BY_ID[_first(_CRASH, text) or "B.3"]
        case Verdict.REJECTED:
            return BY_ID["C.2"]
        case _:
            return BY_ID[_first(_WRONG, text) or ("C.4" if _isolated(text) else "C.1")]


def _first(rules: tuple[tuple[str, str], ...], text: str) -> str | None:
    return next((bug_id for bug_id, pattern in rules if re.search(pattern, text, re.IGNORECASE)), None)


def _isolated(text: str) -> bool:
    """Whether only a few elements were wrong, as in `12 of 4096 elements differ`."""
    match = re.search(r"(\d{1,12}) of (\d{1,12}) elements", text)
    return bool(match) and int(match[1]) <= MOST_ISOLATED * int(match[2])
