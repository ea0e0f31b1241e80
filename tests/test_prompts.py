"""Prompts: every role's is rendered from its templates, says what it must, and is the one in docs/prompts."""

import pytest

from kernel_scientist.params import ROLES
from kernel_scientist.scientist import prompts, showcase
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    return showcase.rendered()


@pytest.mark.parametrize("role", ROLES)
def test_the_example_in_the_documentation_is_what_is_rendered(role: str, rendered: dict[str, str]) -> None:
    file = ROOT / "docs" / "prompts" / f"{role}.md"
    assert file.read_text() == rendered[role], "run: make prompts"


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
        assert "None" not in text.replace("NoneType", "") and "{{" not in text and "\n\n\n\n" not in text
