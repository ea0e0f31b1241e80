"""Triton's interpreter, made exact: what it computes is what torch computes, for every small type."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPT = Path(__file__).parent / "scripts" / "numerics.py"
CHECKS = re.findall(r"^def (check_\w+)", SCRIPT.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("check", CHECKS)
def test_interpreter_is_exact(check: str, outcomes: dict[str, str]) -> None:
    assert outcomes[check] == "ok", outcomes[check]


def test_nothing_changes_where_triton_compiles() -> None:
    """The stubs of libdevice are still mapped to the target's functions by the compiler."""
    source = f"""
import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})
import numerics as kernels
from tests.interpreter import numerics
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
numerics.install()
signature = {{"x_ptr": "*fp32", "out_ptr": "*fp32", "N": "constexpr"}}
import triton, triton.language as tl
from triton.language.extra import libdevice
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    lanes = tl.arange(0, N)
    tl.store(out_ptr + lanes, libdevice.tanh(tl.load(x_ptr + lanes)))
"""
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"compiled_{os.getpid()}.py"
    path.write_text(
        source
        + "kernel = triton.jit(kernel)\n"
        + (
            "built = compile(ASTSource(kernel, signature, {(2,): 64}), target=GPUTarget('hip', 'gfx942', 64))\n"
            "assert '__ocml_tanh_f32' in built.asm['ttir'], built.asm['ttir']\n"
        )
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment)
    path.unlink()
    assert done.returncode == 0, done.stderr[-3000:]
