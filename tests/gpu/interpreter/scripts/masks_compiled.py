"""The masks compiled for a GPU that is not here: run as a program, with `hip:gfx942:64` or `cuda:90:32`."""

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernel_scientist.workers.untrusted import input_masking


def main() -> None:
    backend, arch, lanes = sys.argv[1].split(":")
    target = GPUTarget(backend, int(arch) if arch.isdigit() else arch, int(lanes))
    for function, signature in (
        (input_masking._turn, {"words": "*i32", "facts": "*i64"}),
        (input_masking._sum, {"words": "*i64", "facts": "*i64", "out": "*i64"}),
    ):
        compiled = triton.compile(ASTSource(function, signature), target=target)
        assert compiled.metadata.shared < 1 << 16


if __name__ == "__main__":
    main()
