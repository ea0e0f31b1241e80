"""The documentation: the reference is what the code says, every link leads somewhere, every command exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import write_reference
from kernel_scientist.cli import main
from tests.conftest import ROOT

PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "knowledge").glob("README.md"))
    if "prompts" not in page.parts
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    found = re.findall(r"^#+ +(.+?)\s*$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", LINK.sub("", title).lower()).replace(" ", "-") for title in found}


def broken(page: Path) -> Iterator[str]:
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or not target.is_relative_to(ROOT):
            yield f"{link}: no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    assert list(broken(page)) == []


def test_every_page_of_the_documentation_is_on_its_map() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(index))}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page != index}
    assert pages - listed == set()


@pytest.mark.parametrize("page", sorted(write_reference.FOLDER.glob("*.md")), ids=lambda page: page.name)
def test_every_row_of_the_reference_has_a_meaning(page: Path) -> None:
    assert not re.findall(r"^.*\| *\|$", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", write_reference.pages())
def test_the_reference_is_up_to_date(name: str) -> None:
    assert (write_reference.FOLDER / name).read_text() == write_reference.pages()[name], "run `make docs`"


def test_commands_in_the_documentation_exist_with_their_options() -> None:
    wrong = list[str]()
    for page in PAGES:
        if page.name in ("CHANGELOG.md", "log.md"):
            continue
        for words in re.findall(r"^(?:\w+=\S* )*kernel-scientist +(.+?)(?:  +#.*)?$", page.read_text(), re.MULTILINE):
            wrong += (f"{page.name}: {words}: {what}" for what in unknown(words.split()))
    assert wrong == []


def unknown(words: list[str]) -> Iterator[str]:
    """What of a call the command line does not know."""
    command = main
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if hasattr(command, "commands") and not (words and words[0].isupper()) and words[:1] != ["--version"]:
        yield "no such command"
        return
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    yield from (word for word in words if re.fullmatch(r"--[a-z-]+", word) and word not in known | {"--help"})
