"""GPU Kernel Scientist: improve GPU kernels by the scientific method.

    import kernel_scientist as ks
    print(ks.evaluate("kernel.py", problem="rmsnorm").speedup)

The functions are those of `kernel_scientist.api`. A kernel's file imports `load` from here. Importing this package
imports nothing heavy, and it knows neither Prefect nor DVC.
"""

from typing import TYPE_CHECKING, Any

from kernel_scientist.compilers.cpp import load
from kernel_scientist.compilers.request import CompileError

if TYPE_CHECKING:
    from kernel_scientist.api import (
        admit,
        baseline,
        check,
        compare,
        compile,
        control,
        describe_problem,
        doctor,
        evaluate,
        export_evidence,
        list_problems,
        optimize,
        profile_kernel,
        suite,
        validate,
        verify,
    )

__all__ = [
    "CompileError",
    "admit",
    "baseline",
    "check",
    "compare",
    "compile",
    "control",
    "describe_problem",
    "doctor",
    "evaluate",
    "export_evidence",
    "list_problems",
    "load",
    "optimize",
    "profile_kernel",
    "suite",
    "validate",
    "verify",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Return a function of the API; its imports take a while, and kernels need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kernel_scientist import api

    return getattr(api, name)
