"""Replies as models sent them: the kernel that is meant, or what is missing."""

import json
from pathlib import Path
from textwrap import indent

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


DRAFT = NEW.replace("4096", "512")
QUOTED = NEW.replace("BLOCK = 4096", f'BLOCK = 4096\nUSAGE = """\n{FENCE}\n"""')
PATCH = """*** Begin Patch
*** Update File: kernel.py
@@
-BLOCK = 1024
+BLOCK = 4096
@@
     size = x.numel()
-    # the grid covers the vector once; the last program is masked
*** End Patch
"""
ONE_HUNK = """*** Begin Patch
*** Update File: kernel.py
-BLOCK = 1024
+BLOCK = 4096
*** End Patch
"""
CALL = {"name": "shell", "arguments": json.dumps({"command": ["apply_patch", PATCH]})}


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
        (f"{block(NEW)}\nREPORT: I removed `</think>` and chose {{BLOCK: 4096}}.", NEW),
        (f"{block(NEW)}\nREPORT: no </think> is left. To run it:\n{block('pytest' + chr(10), 'bash')}", NEW),
        (f"{block(NEW)}\nREPORT: no `</think>` is left.\n{block('{}' + chr(10), 'json')}", NEW),
        (f"So try\n{block(DRAFT)}</think>\n{block(NEW)}\nREPORT: no </think> is left", NEW),
        (f"{block(NEW)}\nIt was:\n{block(BASE.replace('1024', '1024   '))}", NEW),
        (f"{block(NEW)}\nThe base, for comparison:\n{block('# the base' + chr(10) + BASE)}", NEW),
        (f"{block(BASE)}\nwith a comment:\n{block('# mine' + chr(10) + BASE)}", f"# mine\n{BASE}"),
        (f"{block(DRAFT)}\n{block(NEW)}\nreference.py:\n{block('def ref_kernel(data):' + chr(10))}", NEW),
        (block(QUOTED) + "\nREPORT: x\n" + block("run\n", "bash"), QUOTED),
        (f"`````text\n````md\n{block(NEW)}````\n`````\n", NEW),
        (f"````python\n{block(NEW)}````\n", NEW),
        (json.dumps({"answer": f"Here:\n{block(NEW)}"}), NEW),
        (json.dumps({"files": [BASE, NEW]}), NEW),
        (block(f"why: larger blocks\ncode: |\n{indent(NEW, '  ')}", "yaml"), NEW),
        (f"why: larger blocks\ncode: |\n{indent(NEW, '  ')}", NEW),
        ("{x} " * 200 + json.dumps({"code": NEW}), NEW),
        (f"I write it.\n<tool_call>{json.dumps({'name': 'write', 'arguments': {'content': NEW}})}</tool_call>", NEW),
        (block(f"apply_patch <<'EOF'\n{PATCH}EOF\n", "bash"), NEW),
        (json.dumps(CALL), NEW),
        (json.dumps({"diff": PATCH.replace("*** Begin Patch", "").replace("*** End Patch", "")}), NEW),
        (ONE_HUNK, BASE.replace("1024", "4096")),
        (f"{PATCH}\nThe file is now:\n{block(NEW)}", NEW),
        (f"I cannot {{}}: </think>{json.dumps({'code': NEW})}", NEW),
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
        (block(f"{NEW.partition('    x, out')[0]}    return ...\n"), "the body of custom_kernel is `return ...`"),
        (block(f'{NEW.partition("    x, out")[0]}    """As in the base."""\n'), "the body of custom_kernel is empty"),
        (block(f"{NEW.partition('    x, out')[0]}    # as in the base\n"), "the body of a function is missing"),
        (block(NEW.replace("    mask =", "    ...  # the mask\n    mask =")), "`...` stands for code in copy_kernel"),
        (
            block(NEW.replace("    size =", "    if x.numel():\n        ...\n    size =")),
            "stands for code in custom_kernel",
        ),
        (block(f"BLOCK = 4096\n<unchanged>\n{NEW[NEW.index('def custom') :]}"), "'<unchanged>' stands for code"),
        (block(f"[rest of the file]\n{NEW[NEW.index('def custom') :]}"), "stands for code"),
        (json.dumps({"code": f"# ... rest\n{NEW[NEW.index('def custom') :]}"}), "which only the base defines"),
        ("*** Begin Patch\n*** Delete File: kernel.py\n*** End Patch", "no line of the base"),
        ("I call `custom_kernel`:\n" + block("from kernel import custom_kernel\ncustom_kernel(data)\n"), "no kernel"),
    ],
)
def test_what_is_not_complete_is_asked_for_again(reply: str, words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        kernel_from(split(reply), BASE)


@pytest.mark.parametrize(
    "wait", ["while size < 0:\n        ...", "try:\n        size += 0\n    except ValueError:\n        ..."]
)
def test_what_may_do_nothing_is_complete(wait: str) -> None:
    source = NEW.replace("    copy_kernel[", f"    {wait}\n    copy_kernel[")
    assert kernel_from(split(block(source)), BASE) == source


def test_a_file_that_is_no_python_is_left_to_the_compiler() -> None:
    for wrong in (NEW.replace("size = x", "size = = x"), NEW.replace("(data)", "(data")):
        assert kernel_from(split(block(wrong)), BASE) == wrong


def test_only_reasoning_is_no_empty_reply() -> None:
    with pytest.raises(ReplyError, match="only reasoning"):
        split((FOLDER / "L02.md").read_text())


@pytest.mark.parametrize("prose", ["", "With {a, b} and {BLOCK_M: 64} ", "f{0} = {{x}}: ", '{"note": 1} first. '])
def test_braces_around_a_record_are_prose(prose: str) -> None:
    text = (FOLDER / "D01.md").read_text()
    design = record(split(prose + text), schemas.DesignReply).design()
    assert [plan.title for plan in design.plans] == ["larger tiles"]
