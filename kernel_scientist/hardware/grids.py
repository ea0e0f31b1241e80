"""The largest grids that a target launches.

Sources: ROCm's clr, hip_module.cpp and hip_platform.cpp: `hipModuleLaunchKernel`, by which Triton launches, takes up to
2^31 - 1 workgroups in x and 2^16 in y and z, and no launch has 2^32 work-items or more in one dimension; CUDA C++
Programming Guide, technical specifications per compute capability.
"""

Grid = tuple[int, int, int]
MOST_AMD: Grid = (2**31 - 1, 2**16, 2**16)
MOST_NVIDIA: Grid = (2**31 - 1, 2**16 - 1, 2**16 - 1)
MOST_ITEMS = 2**32 - 1
"""Work-items (threads) in one dimension of a grid on AMD's GPUs."""


def refusal(arch: str, grid: Grid, threads: int) -> str:
    """Return why a launch by Triton is refused; empty if it is not. `threads`: of a workgroup, all in x."""
    most = MOST_AMD if arch.startswith("gfx") else MOST_NVIDIA
    for axis, size, limit in zip("xyz", grid, most, strict=True):
        if size > limit:
            return f"its grid has {size} workgroups in {axis}, {arch} launches at most {limit}"
    if arch.startswith("gfx") and grid[0] * threads > MOST_ITEMS:
        return (
            f"its grid has {grid[0]} x {threads} = {grid[0] * threads} work-items in x, {arch} has at most {MOST_ITEMS}"
        )
    return ""
