"""Replies as models sent them: the kernel that is meant, or what is missing."""

from pathlib import Path

import pytest

from kernel_scientist.scientist.llm import schemas
from kernel_scientist.scientist.llm.parsing import ReplyError, split
from kernel_scientist.scientist.llm.patch import kernel_from
from kernel_scientist.scientist.llm.structured import record

FOLDER = Path(__file__).parent / "replies"
BASE, NEW = ((FOLDER / f"{name}.py").read_text() for name in ("base", "new"))
FENCE = "```"
DOCUMENTED = NEW.replace('"""Copy a vector."""', f'"""Copy a vector.\n\n{FENCE}\ncustom_kernel((x, out))\n{FENCE}\n"""')
assert DOCUMENTED != NEW


def block(text: str, info: str = "python") -> str:
    return f"{FENCE}{info}\n{text}{FENCE}\n"


@pytest.mark.parametrize("name", ["L01", "L04a", "L04b", "L06", "L17"])
def test_the_kernel_of_an_odd_reply_is_read(name: str) -> None:
    assert kernel_from(split((FOLDER / f"{name}.md").read_text()), BASE) == NEW


@pytest.mark.parametrize(
    ("reply", "kernel"),
    [
        (f"{block(NEW)}\nI removed </think> from the text.", NEW),
        (f"{block(NEW)}\nI no longer emit <think> tags.", NEW),
        (f"First:\n{block(BASE)}\nNo, better:</think>\n{block(NEW)}", NEW),
        (f"<think>{block(BASE)} or </think>{block(NEW)}", NEW),
        (block(NEW + "# <think> about </think> it\n"), NEW + "# <think> about </think> it\n"),
        (f"The base was\n{block(BASE)}and now it is\n{block(NEW)}", NEW),
        (f"Now:\n{block(NEW)}\nwhere the base had\n{block(BASE)}", NEW),
        (f"A first draft:\n{block(NEW + '# longer, and wrong' + chr(10))}\nThe kernel:\n{block(NEW)}", NEW),
        (block(DOCUMENTED), DOCUMENTED),
        (f"{block(DOCUMENTED)}\nREPORT: done", DOCUMENTED),
        (f"~~~~markdown\n# The kernel\n\n{block(NEW)}\n~~~~", NEW),
        (block(NEW + "# the rest is unchanged\n"), NEW + "# the rest is unchanged\n"),
    ],
)
def test_the_kernel_that_is_meant_is_taken(reply: str, kernel: str) -> None:
    assert kernel_from(split(reply), BASE) == kernel


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((FOLDER / "L13.md").read_text(), "not complete: the body of custom_kernel"),
        (
            block("BLOCK = 4096\n# ... rest unchanged\n\n\n" + NEW[NEW.index("def custom_kernel") :]),
            "stands for",
        ),
        (block(NEW.replace("    x, out = data\n", "    ...\n").partition("    size")[0]), "not complete"),
        ("*** Begin Patch\n*** Update File: kernel.py\n@@\n-BLOCK = 7\n+BLOCK = 4096\n*** End Patch", "occurs 0 times"),
        ('{"code": 5, "why": "no source"}', "no kernel"),
        ("I call `custom_kernel`:\n" + block("from kernel import custom_kernel\ncustom_kernel(data)\n"), "no kernel"),
    ],
)
def test_what_is_not_complete_is_asked_for_again(reply: str, words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        kernel_from(split(reply), BASE)


def test_only_reasoning_is_no_empty_reply() -> None:
    with pytest.raises(ReplyError, match="only reasoning"):
        split((FOLDER / "L02.md").read_text())


@pytest.mark.parametrize("prose", ["", "With {a, b} and {BLOCK_M: 64} ", "f{0} = {{x}}: ", '{"note": 1} first. '])
def test_braces_around_a_record_are_prose(prose: str) -> None:
    text = (FOLDER / "D01.md").read_text()
    design = record(split(prose + text), schemas.DesignReply).design()
    assert [plan.title for plan in design.plans] == ["larger tiles"]
