"""Identity: copy a vector into the buffer that came with it. The smoke problem."""

import torch


def generate_input(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `(x, out)`: `x` fp16 [size] uniform in [0, 1), `out` of the same shape to be written."""
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.rand(size, device="cuda", dtype=torch.float32, generator=gen).to(torch.float16)
    return x, torch.zeros_like(x)


def ref_kernel(data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Write `x` into `out` and return it."""
    x, out = data
    out[...] = x
    return out


def check_implementation(data: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> tuple[bool, str]:
    """Every element must be equal, bit for bit."""
    x, _ = data
    if output.shape != x.shape:
        return False, f"shape {tuple(output.shape)}, expected {tuple(x.shape)}"
    wrong = output != x
    if not bool(wrong.any()):
        return True, ""
    first = int(wrong.nonzero()[0])
    return False, f"{int(wrong.sum())} of {x.numel()} elements differ, first at {first}: {output[first]} != {x[first]}"
