"""Prompts: every role's is rendered from its templates, says what it must, and is the one in docs/prompts."""

import re

import pytest

from kernel_scientist.records.params import ROLES
from kernel_scientist.scientist import prompts
from kernel_scientist.scientist.showcase import __main__
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    return __main__.rendered()


def test_the_examples_in_the_documentation_are_what_is_rendered(rendered: dict[str, str]) -> None:
    kept = {file.stem: file.read_text() for file in (ROOT / "docs" / "prompts").glob("*.md")}
    assert kept == rendered, "run: make prompts"
    assert set(ROLES) < set(kept)


def test_a_designer_for_a_gpu_sees_its_code_and_its_limits(rendered: dict[str, str]) -> None:
    text = rendered["designer-triton-mi300x"]
    for words in (
        "MI300X (gfx942)",
        "v_mfma_f32_32x32x16_fp8_fp8",
        "98 vector",
        "L2's bandwidth",
        "times are predicted",
    ):
        assert words in text
    assert "| predicted us |" in text and "measured us" not in text and "g++" not in text
    assert "out-of-bounds read of a_ptr" in rendered["repairer-triton-mi300x"]
    assert "**B.3 (wrong boundary)**" in rendered["repairer-triton-mi300x"]


def test_the_selector_sees_times_but_no_code(rendered: dict[str, str]) -> None:
    text = rendered["selector"]
    assert "| k00003 | k00002 |" in text and "m64-n576-k512" in text
    assert "custom_kernel" not in text and "#include" not in text


def test_designer_and_writer_see_what_the_papers_give_them(rendered: dict[str, str]) -> None:
    design, write, mend = (rendered[r] for r in ("designer", "writer", "repairer"))
    for words in ("10 avenues", "5 experiment plans", "innovation", "TUNABLES", "predicted floor us", "k00004"):
        assert words in design
    for words in (
        "deeper panels",
        "before us",
        "decode fp8 in registers",
        "site=name",
        "REPORT:",
        "ref_kernel",
        "f001",
    ):
        assert words in write
    for words in ("A.3", "hip_fp8.h", "CRITIQUE:", "The base, which works"):
        assert words in mend


def test_a_prompts_digest_follows_its_templates() -> None:
    assert len({prompts.version(role) for role in ROLES}) == len(ROLES)
    assert prompts.version("writer") == prompts.version("writer")


def test_no_prompt_speaks_of_what_is_not_there(rendered: dict[str, str]) -> None:
    for text in rendered.values():
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        assert "None" not in re.sub(r"NoneType|\[:, None\]", "", prose) and "{{" not in text and "\n\n\n\n" not in text
