"""Text around a reference that `torch.compile` compiles, in the form of a kernel."""

BEFORE = """import torch
import torch._dynamo.utils
import torch._dynamo.config
import torch._inductor.config

torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 1000
torch._inductor.config.compile_threads = 1
torch._inductor.config.cpp_cache_precompile_headers = False  # larger than a file of a worker may be
"""
AFTER = """
_compiled = custom_kernel


def custom_kernel(data):
    output = _compiled(data)
    if not torch._dynamo.utils.counters["stats"]["unique_graphs"]:
        raise RuntimeError("torch.compile compiles no part of the reference")
    return output
"""
