"""A corpus of odd replies to every role: the kernel, the plan or the choice that is meant, or the true reason."""

import html
import json
from collections.abc import Callable
from textwrap import indent
from typing import Any

import pytest

from kernel_scientist.records.kernel import Experiment
from kernel_scientist.scientist.llm import schemas
from kernel_scientist.scientist.llm.parsing import ReplyError, split
from kernel_scientist.scientist.llm.patch import PatchError, kernel_from
from kernel_scientist.scientist.llm.structured import record
from tests.scientist.test_odd_replies import BASE, NEW, block

TOOL = json.dumps({"name": "submit", "arguments": {"path": "kernel.py", "code": NEW}})
TWICE = json.dumps({"name": "submit", "arguments": json.dumps({"code": NEW})})
CELLS = [
    {"cell_type": "markdown", "source": ["# The kernel\n", "it copies"]},
    {"cell_type": "code", "source": ["%load_ext x\n", *NEW.partition("BLOCK =")[0].splitlines(True)]},
    {"cell_type": "code", "source": "".join(NEW.partition("BLOCK =")[1:]), "outputs": [{"text": ["ok\n"]}]},
]
CHANGE = "@@ -7,1 +7,1 @@\n-BLOCK = 1024\n+BLOCK = 4096\n"
UNCOMMENTED = "@@\n     size = x.numel()\n-    # the grid covers the vector once; the last program is masked\n"
DIFF = f"--- a/kernel.py\n+++ b/kernel.py\n{CHANGE}{UNCOMMENTED}"
PAIR = "<<<<<<< SEARCH\nBLOCK = 1024\n=======\nBLOCK = 4096\n>>>>>>> REPLACE\n"
PAIRS = (
    PAIR
    + "<<<<<<< SEARCH\n    # the grid covers the vector once; the last program is masked\n=======\n>>>>>>> REPLACE\n"
)

KERNELS = {
    "language in capitals": block(NEW, "Python"),
    "language python3": block(NEW, "python3"),
    "language and a title": block(NEW, 'python title="kernel.py"'),
    "language and a path": block(NEW, "python:kernel.py"),
    "language in braces": block(NEW, "{.python .numberLines}"),
    "language of the kernel's text": block(NEW, "cpp"),
    "language that means nothing": block(NEW, "plaintext"),
    "tildes": f"~~~python\n{NEW}~~~",
    "many backticks": f"``````\n{NEW}``````",
    "indented as a whole": block(indent(NEW, "    ")),
    "indented with tabs": block(indent(NEW, "\t")),
    "a quotation": indent(f"The kernel:\n\n{block(NEW)}", "> ", lambda _: True),
    "a fence after words": f"Here it is: ```python\n{NEW}```\nREPORT: done",
    "a fence after the last line of code": f"```python\n{NEW.rstrip()}```\nREPORT: done",
    "words after the closing fence": f"```python\n{NEW}``` This copies faster.\nREPORT: done",
    "a mark of the byte order": "\ufeff" + block(NEW),
    "a mark within the block": block("\ufeff" + NEW),
    "CR alone": block(NEW).replace("\n", "\r"),
    "CRLF and words": f"Sure!\r\n\r\n{block(NEW)}\r\nREPORT: x".replace("\n", "\r\n").replace("\r\r", "\r"),
    "no fence": NEW,
    "no fence, words around": f"Here is the kernel:\n\n{NEW}\nREPORT: larger blocks",
    "escaped for HTML": html.escape(f"Faster -> better.\n{block(NEW)}"),
    "a page of Markdown": f"# Result\n\n| what | how |\n|---|---|\n| BLOCK | 4096 |\n\n{block(NEW)}\n| a |\n|---|\n",
    "another language's prose": f"这是更快的内核。我把块大小改为 4096。\n\n{block(NEW)}\nREPORT: 更大的块",
    "an XML answer": f"<answer>\n{NEW}</answer>",
    "an XML answer with a fence": f"<answer>\n{block(NEW)}</answer>",
    "an XML file": f'<files><file path="kernel.py"><![CDATA[\n{NEW}]]></file></files>',
    "a call in XML": f"<function=write_file>\n<parameter=content>\n{NEW}</parameter>\n</function>",
    "a call in JSON": TOOL,
    "a call in tags": f"<tool_call>\n{TOOL}\n</tool_call>",
    "a call whose arguments are a text": TWICE,
    "a text of JSON": json.dumps(NEW),
    "a record of JSON in a fence": block(json.dumps({"code": NEW}) + "\n", "json"),
    "a fence after a long line": block(json.dumps({"code": NEW}), "json"),
    "lines of JSON": json.dumps({"lines": NEW.splitlines()}),
    "line ends as \\n": block(json.dumps(NEW)[1:-1] + "\n"),
    "a notebook": json.dumps({"cells": CELLS, "nbformat": 4}),
    "several files": f"{block('SIZE = 3' + chr(10))}kernel.py\n{block(NEW)}test.py\n{block('import kernel' + chr(10))}",
    "the base quoted, then a diff in words": f"It was\n{block(BASE)}\n- BLOCK 1024\n+ BLOCK 4096\n\n{block(NEW)}",
    "commands beside it": f"```bash\npip install triton\n```\n{block(NEW)}```console\n$ run\nok\n```",
    "capital tags of reasoning": f"<THINK>\n{block(BASE)}\n</Think>\n{block(NEW)}",
    "doubled tags of reasoning": f"<think><think>\na {{b}}\n</think>\n</think>\n{block(NEW)}",
    "tags of reasoning with a name": f'<thinking time="3">{block(BASE)}</thinking >{block(NEW)}',
    "brackets of reasoning": f"[THINK]{block(BASE)}[/THINK]{block(NEW)}",
    "triangles of reasoning": f"◁think▷{block(BASE)}◁/think▷{block(NEW)}",
    "reasoning without its start": f"{block(BASE)} so:\n</thought>\n{block(NEW)}",
    "channels": f"<|channel|>analysis<|message|>{block(BASE)}<|end|><|start|>assistant<|channel|>final<|message|>"
    f"{block(NEW)}<|return|>",
    "a command for the cell": block(f"%%writefile kernel.py\n{NEW}"),
    "numbered lines": block(
        "".join(f"{n:3d} | {line}".rstrip() + "\n" for n, line in enumerate(NEW.split("\n")[:-1], 1))
    ),
    "numbered lines with colons": block("".join(f"{n}: {line}\n" for n, line in enumerate(NEW.split("\n")[:-1], 1))),
    "spaces that do not break": block(NEW.replace("    ", "\u00a0\u00a0 \u00a0")),
    "a here-document": block(f"cat > kernel.py <<'EOF'\n{NEW}EOF\npython kernel.py\n", "bash"),
    "a diff": block(DIFF, "diff"),
    "a diff that adds the file": block(
        f"--- /dev/null\n+++ b/kernel.py\n@@ -0,0 +1,20 @@\n{indent(NEW, '+', lambda _: True)}", "diff"
    ),
    "a patch that adds the file": "*** Begin Patch\n*** Add File: kernel.py\n"
    f"{indent(NEW, '+', lambda _: True)}*** End Patch",
    "a diff without a language": block(DIFF, ""),
    "a diff that says it is Python": block(DIFF),
    "a diff without a fence": f"I enlarge the blocks.\n\n{DIFF}\nREPORT: larger blocks",
    "a diff of git": block(
        f"diff --git a/k.py b/k.py\nindex 1..2 100644\n{DIFF}\\ No newline at end of file\n", "patch"
    ),
    "a diff escaped for HTML": html.escape(f"a < b\n{block(DIFF, 'diff')}"),
    "pairs": block(PAIRS),
    "pairs without a fence": f"I change two places.\n\n{PAIRS}\nREPORT: larger blocks",
    "pairs that say they are a diff": block(PAIRS, "diff"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_that_is_meant(name: str) -> None:
    assert kernel_from(split(KERNELS[name]), BASE) == NEW


TABBED = NEW.replace("    ", "\t")
ASIS = {
    "tabs": (block(TABBED), TABBED),
    "other line separators": (block(NEW + 'S = "\u2028\x85\x0b"\n'), NEW + 'S = "\u2028\x85\x0b"\n'),
    "a NUL byte": (block(NEW + "# \0\n"), NEW + "# \ufffd\n"),
    "a lone surrogate": (block(NEW + "# \udc80\n"), NEW + "# ?\n"),
    "an escaped surrogate and NUL": (json.dumps({"code": NEW + "# \ud800 \0\n"}), NEW + "# ? \ufffd\n"),
    "entities beside real signs": (block(NEW + "# a &lt; b > c\n"), NEW + "# a &lt; b > c\n"),
    "two kernels": (f"{block(NEW + '# first' + chr(10))}\nBetter:\n{block(NEW)}", NEW),
    "what does not compile": (block(NEW + "def f(:\n"), NEW + "def f(:\n"),
}


@pytest.mark.parametrize("name", ASIS)
def test_a_kernel_is_taken_as_it_is(name: str) -> None:
    reply, kernel = ASIS[name]
    source = kernel_from(split(reply), BASE)
    assert source == kernel and source.encode()


ENTRY = NEW[NEW.index("def custom_kernel") :]
JIT = NEW[: NEW.index("def custom_kernel")]
LAUNCH = "def custom_kernel(data):\n    wide[(1,)](*data)\n"
CPP = 'SOURCE = """\nvoid pack(int n) {\n}\nvoid copy(const float* x) {\n    pack(4);\n}\n"""\n'


HALF = NEW[: NEW.index("    size = x.numel()")]
NO_KERNEL: dict[str, tuple[str, str]] = {
    "empty": ("", "the reply is empty"),
    "blanks": (" \n\t\r\n\u3000 ", "the reply is empty"),
    "a mark of the byte order": ("\ufeff", "the reply is empty"),
    "only reasoning": ("<Think>if ...</THINK>", "only reasoning"),
    "reasoning that does not end": ("<THINKING>if ...", "only reasoning"),
    "five megabytes": ("x" * (5 << 20), "the reply has 5242880 characters"),
    "a link": ("https://example.com/kernel.py", "no kernel: no fenced block"),
    "an apology": ("I'm sorry, but I can't help with that.", "no kernel: no fenced block"),
    "an empty block": ("```python\n```", "no kernel: 1 fenced blocks"),
    "another function": (block("def kernel(data):\n    return data\n"), "none a file with custom_kernel"),
    "only a call of it": (block("out = custom_kernel(data)\n"), "none a file with custom_kernel"),
    "cut in the middle": (f"```python\n{HALF}", "it was cut off"),
    "cut in the fence": (f"```python\n{NEW}``", "it was cut off"),
    "the base again": (f"Nothing to gain.\n{block(BASE)}", "the file is the base, without a change"),
    "the prompt again": (f"# Implement an experiment\n\n## The base: k00001\n\n{block(BASE)}", "the file is the base"),
    "an empty change": (block("@@\n-BLOCK = 1024\n+BLOCK = 1024\n", "diff"), "does not alter the base"),
    "a change of something else": (block("@@\n-BLOCK = 7\n+BLOCK = 8\n", "diff"), "occurs 0 times"),
    "a diff without a hunk": (block("-BLOCK = 1024\n+BLOCK = 4096\n", "diff"), "no hunk"),
    "the rest is elided": (block("# ... existing code ...\n" + NEW[NEW.index("def custom") :]), "stands for"),
    "the rest is elided in another language": (
        block(f"# Rest wie bisher\n\n{ENTRY}"),
        "uses BLOCK, copy_kernel, which only the base",
    ),
    "the rest is elided without a word": (block(f"import triton\n\n{ENTRY}"), "uses BLOCK, copy_kernel, which only"),
    "a kernel is elided": (block(f"# [kernel code unchanged]\n{ENTRY}"), "'# .kernel code unchanged.' stands for"),
    "a body is to be kept": (
        block(f"{NEW.partition('    x, out')[0]}    pass  # as in the base\n"),
        "the body of .* `pass`",
    ),
    "a body is to be written": (
        block(f"{NEW.partition('    x, out')[0]}    raise NotImplementedError\n"),
        "the body of custom_kernel is `raise Not",
    ),
    "a kernel's body is elided": (
        block(f"{NEW.partition('    offsets')[0]}    ...\n\n\n{ENTRY}"),
        "the body of copy_kernel",
    ),
    "one file in two blocks": (
        f"{block(JIT.replace('copy_kernel', 'wide'))}{block(LAUNCH)}",
        "another block defines wide; send one file",
    ),
    "reasoning of a channel": (f"<|channel|>analysis<|message|>We need {block(NEW)}<|end|>", "only reasoning"),
    "reasoning of a seed": (f"<seed:think>{block(NEW)}</seed:think>", "only reasoning"),
    "a body is elided": (block(NEW.partition("    x, out")[0] + "    ...\n"), "the body of custom_kernel"),
    "a table of the change": ("| line | old | new |\n|---|---|---|\n| 7 | 1024 | 4096 |", "no fenced block"),
    "a call without code": ('{"name": "submit", "arguments": {}}', "no kernel"),
    "nested without end": ("{" * 200_000, "no kernel"),
    "nested deeply": ('{"a":' * 400 + "1" + "}" * 400, "no kernel"),
    "a hundred thousand tags": ("<think>" * 100_000 + block("x = 1\n"), "only reasoning"),
    "tags in a block": ("```\n" + "<think>\n" * 100_000, "cut off"),
    "a hundred thousand fences in a string": ('```python\n"""\n' + "```\n" * 100_000, "no kernel|cut off"),
    "a hundred thousand fences": ("```\n" * 100_000, "no kernel: 50000 fenced blocks"),
}


@pytest.mark.parametrize("name", NO_KERNEL)
def test_why_there_is_no_kernel(name: str) -> None:
    reply, words = NO_KERNEL[name]
    with pytest.raises(ReplyError, match=words) as failed:
        kernel_from(split(reply), BASE)
    assert isinstance(failed.value, PatchError) == any(w in words for w in ("alter", "occurs", "hunk"))


def test_a_part_of_the_text_of_a_kernel_may_not_be_elided() -> None:
    base, new = f"{CPP}\n\ndef custom_kernel(data):\n    return data\n", "// ... the rest is unchanged\n"
    short = base.replace("void pack(int n) {\n}\n", new)
    with pytest.raises(ReplyError, match="stands for pack"):
        kernel_from(split(block(short)), base)
    assert kernel_from(split(block(base.replace("void pack", f"{new}void pack"))), base)


def test_a_file_that_binds_its_names_itself_is_complete() -> None:
    own = "from task import *\n\ndef custom_kernel(data):\n    return copy_kernel(data)\n"
    late = "def custom_kernel(data):\n    global copy_kernel\n    copy_kernel = max\n    return copy_kernel(data)\n"
    for source in (own, late):
        assert kernel_from(split(block(source)), BASE) == source


PLAN: dict[str, Any] = {"title": "wider", "description": "d", "rubric": ["do it"], "uplift": [5, 20], "innovation": 60}
EXPERIMENT = Experiment(title="wider", description="d", rubric=("do it",), uplift=(5, 20), innovation=60)
DESIGN = json.dumps({"avenues": [], "plans": [PLAN]})


def plan(**changes: Any) -> str:
    return json.dumps({"avenues": [], "plans": [{**PLAN, **changes}]})


DESIGNS = {
    "one line": DESIGN,
    "a fence": block(DESIGN + "\n", "json"),
    "JSON5": block(DESIGN + "\n", "json5"),
    "a fence without a language": block(DESIGN + "\n", ""),
    "commas too many": DESIGN.replace("}]}", ",},],}"),
    "comments": f"// my plan\n{DESIGN[:-1]}, /* more? */\n}} // no",
    "comments of YAML": f"# my plan\n{DESIGN}",
    "single quotes": DESIGN.replace('"', "'"),
    "names without quotes": DESIGN.replace('"plans"', "plans").replace('"title"', "title"),
    "a mark of the byte order": "\ufeff" + DESIGN,
    "a line end within a text": DESIGN.replace('"wider"', '"\nwider\n"'),
    "braces before it": f"The set {{a, b}} is {{small}}. {DESIGN} and {{so on}}",
    "braces after it": f"{DESIGN}\n\nWith f{{x}} = {{y}}.",
    "a list of plans": json.dumps([PLAN]),
    "a list of the answer": f"[{DESIGN}]",
    "within a name": json.dumps({"response": json.loads(DESIGN)}),
    "numbers as texts": plan(uplift=["5", "20 %"], innovation="60"),
    "a range as a text": plan(uplift="5-20%"),
    "a range in words": plan(uplift="5 to 20 %"),
    "a range with names": plan(uplift={"min": 5, "max": 20}),
    "the other way round": plan(uplift=[20, 5]),
    "a step as a text": plan(rubric="do it"),
    "more fields": plan(risk="none", id=7),
    "escaped for HTML": html.escape(f"if a < b:\n{DESIGN}"),
    "reasoning before it": f"<think>{{'plans': []}}</think>{DESIGN}",
    "the answer twice": DESIGN + DESIGN,
    "an XML answer": f"<answer>{DESIGN}</answer>",
    "fifty of the same": json.dumps({"plans": [PLAN] * 50}),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_plan_that_is_meant(name: str) -> None:
    assert record(split(DESIGNS[name]), schemas.DesignReply).design().plans == (EXPERIMENT,)


def test_of_fifty_plans_the_first_are_read() -> None:
    plans = [{**PLAN, "title": f"plan {n}"} for n in range(50)]
    design = record(split(json.dumps({"plans": plans, "avenues": [{"title": "a"}] * 50})), schemas.DesignReply).design()
    assert [p.title for p in design.plans] == [f"plan {n}" for n in range(5)] and len(design.avenues) == 10


def test_no_text_of_a_plan_is_such_as_cannot_be_stored() -> None:
    (only,) = record(split(plan(title="a\ud800\0b", description="\udfff")), schemas.DesignReply).design().plans
    assert only.title == "a?\ufffdb" and only.description == "?"


NO_DESIGN: dict[str, tuple[str, str]] = {
    "no plan": ('{"avenues": [], "plans": []}', "plans: there is none"),
    "an empty list": ("[]", "plans: there is none"),
    "null": ("null", "not a mapping but NoneType"),
    "a number": ("42", "not a mapping but int"),
    "a text": ('"wider"', "not a mapping but str"),
    "a list of texts": ('["wider"]', r"plans\.0"),
    "no promise": (plan(uplift=[]), r"plans\.0\.uplift"),
    "three promises": (plan(uplift=[1, 2, 3]), r"plans\.0\.uplift"),
    "no number": (plan(uplift=[float("nan"), 5]), r"plans\.0\.uplift"),
    "infinite": (plan(uplift=[5, float("inf")]), r"plans\.0\.uplift"),
    "beyond measure": (plan(uplift=[5, 1e300]), r"plans\.0\.uplift"),
    "a promise in words": (plan(uplift=["some", "more"]), r"plans\.0\.uplift"),
    "a promise of a truth": (plan(uplift=True), r"plans\.0\.uplift"),
    "no title": (plan(title=""), r"plans\.0\.title"),
    "no step": (plan(rubric=[]), r"plans\.0\.rubric"),
    "cut off": (DESIGN[:-20], "neither JSON"),
    "a kernel": (block(NEW), "neither JSON nor YAML|not a mapping"),
    "a table": ("| plan | gain |\n|---|---|\n| wider | 5 |", "neither JSON|not a mapping"),
    "nested deeply": ('{"a":' * 300 + "1" + "}" * 300, "levels|neither"),
}


@pytest.mark.parametrize("name", NO_DESIGN)
def test_why_there_is_no_plan(name: str) -> None:
    reply, words = NO_DESIGN[name]
    with pytest.raises(ReplyError, match=words) as failed:
        record(split(reply), schemas.DesignReply)
    assert len(str(failed.value)) < 1000


CORRECT = frozenset({"k00001", "k00007"})
CHOICE = '{"base": "k00007", "reference": "k00001", "rationale": "r"}'
SELECTIONS = {
    "plain": CHOICE,
    "capitals": CHOICE.upper()
    .replace("BASE", "base")
    .replace("REFERENCE", "reference")
    .replace("RATIONALE", "rationale"),
    "with words": CHOICE.replace('"k00007"', '"kernel `k00007` (the fastest)"'),
    "a list": f"[{CHOICE}]",
    "within a name": f'{{"selection": {CHOICE}}}',
    "YAML": "base: k00007\nreference: k00001\nrationale: it's the fastest, by far\n",
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_choice_that_is_meant(name: str) -> None:
    choice = schemas.selection(split(SELECTIONS[name]), CORRECT)
    assert (choice.base, choice.reference) == ("k00007", "k00001")


REFUSED: dict[str, tuple[Callable[[str], object], str, str]] = {
    "an unknown kernel": (
        lambda r: schemas.selection(split(r), CORRECT),
        CHOICE.replace("7", "9"),
        "'k00009' is not a kernel with verdict ok; those are: k00001, k00007",
    ),
    "two kernels": (
        lambda r: schemas.selection(split(r), CORRECT),
        CHOICE.replace("k00007", "k00001 or k00007"),
        "'k00001 or k00007' is not a kernel",
    ),
    "a number for a kernel": (
        lambda r: schemas.selection(split(r), CORRECT),
        CHOICE.replace('"k00007"', "7"),
        "base: ",
    ),
    "null for a kernel": (lambda r: schemas.selection(split(r), CORRECT), CHOICE.replace('"k00007"', "null"), "base: "),
    "a finding on an unknown kernel": (
        lambda r: schemas.findings(split(r), CORRECT),
        '{"findings": [{"text": "t", "kernels": ["k00009"]}]}',
        "no kernels k00009",
    ),
    "a finding on none": (
        lambda r: schemas.findings(split(r), CORRECT),
        '{"findings": [{"text": "t", "kernels": []}]}',
        "kernels",
    ),
    "a draft too far": (lambda r: schemas.judgement(split(r), 2), '{"best": 3}', "no draft 3; there are 2"),
    "a draft before the first": (lambda r: schemas.judgement(split(r), 2), '{"best": 0}', "best"),
    "a draft in words": (lambda r: schemas.judgement(split(r), 2), '{"best": "the second"}', "best"),
    "a draft and a half": (lambda r: schemas.judgement(split(r), 2), '{"best": 1.5}', "best"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_a_choice_is_none(name: str) -> None:
    read, reply, words = REFUSED[name]
    with pytest.raises(ReplyError, match=words):
        read(reply)


@pytest.mark.parametrize(
    "critique",
    ["CRITIQUE: the index", "**CRITIQUE:** the index", "## CRITIQUE: the index", "<think>x</think>CRITIQUE: the index"],
)
def test_a_repairers_critique_stands_beside_its_kernel(critique: str) -> None:
    reply = split(f"{critique}\n\n{block(NEW)}\nREPORT: repaired")
    assert kernel_from(reply, BASE) == NEW and schemas.section(reply, "CRITIQUE") == "the index"
