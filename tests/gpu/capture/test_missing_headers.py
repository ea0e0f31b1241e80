"""Headers of ROCm that are not installed here: one sentence, with the line of the submission's own file."""

import pytest

from kernel_scientist import problems
from kernel_scientist.gpu.capture.preview import Previewer
from kernel_scientist.gpu.toolchains import hip
from kernel_scientist.hardware import gpus
from kernel_scientist.records.params import Harness
from kernel_scientist.sandbox.failure import KernelFailure
from tests.conftest import ROOT

TOOLS = hip.find()
pytestmark = pytest.mark.skipif(isinstance(TOOLS, str), reason=str(TOOLS))
SEED = (ROOT / "problems/identity/seeds/hip_naive.py").read_text()
USE = "    none::sort(out, size);\n"


@pytest.mark.parametrize("library", ["hipcub", "rocprim", "thrust", "rocwmma", "ck", "hipblaslt", "rocblas"])
def test_a_header_that_is_used_and_not_here_is_named_with_the_first_error(library: str) -> None:
    name = f"{library}/none.hpp"
    source = SEED.replace("#include <hip", f"#include <{name}>\n#include <hip").replace(
        "    long i = ", f"{USE}    long i = "
    )
    previewer = Previewer(problems.find("identity", "cpu"), gpus.MI300X, Harness())
    with pytest.raises(KernelFailure) as failure:
        previewer.preview(source, previewer.problem.profile("full").tests[:1])
    line = source.splitlines().index(USE.rstrip()) + 1
    said = str(failure.value)
    assert failure.value.verdict == "infrastructure" and "\n" not in said
    assert f"the header <{name}> is not installed here (identity_hip_naive[1], line 2); " in said
    assert f"the first error without it: kernel.py, line {line}: use of undeclared identifier 'none'" in said
