"""Every reply becomes a record or a ReplyError, whatever it contains."""

import json
import random
import string
import time
from textwrap import indent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_scientist.compilers.source import KernelSource
from kernel_scientist.records.kernel import Experiment
from kernel_scientist.scientist.llm import schemas
from kernel_scientist.scientist.llm.parsing import MAX_CHARACTERS, ReplyError, split
from kernel_scientist.scientist.llm.patch import PatchError, kernel_from
from kernel_scientist.scientist.llm.structured import record

BASE = '''"""A kernel."""
TUNABLES = {"A": 1}
SOURCE = r"""
// @begin copy
for (int i = 0; i < n; ++i) out[i] = x[i];
// @end copy
"""


def custom_kernel(data):
    x, out = data
    return out
'''
PLAN = {"title": "wider", "description": "d", "rubric": ["do it"], "uplift": [5, "20 %"], "innovation": 60}
WHOLE = BASE.replace("A kernel", "Another kernel")
DESIGN = json.dumps({"avenues": [{"title": "a", "examine": "b"}], "plans": [PLAN]})


@pytest.mark.parametrize(
    "reply",
    [
        DESIGN,
        f"Here it is:\n```json\n{DESIGN}\n```\nGood luck!",
        f'<think>Should I? {{"plans": 1}} ```python\nno\n``` </think>{DESIGN}',
        f"I thought about it...</think>\n{DESIGN}",
        f"Sure. {DESIGN} That is all.",
        "```yaml\navenues: []\nplans:\n- title: wider\n  description: d\n  rubric: do it\n"
        "  uplift: [20, 5]\n  innovation: 60.4\n```",
    ],
    ids=["bare", "fenced", "reasoning", "reasoning without its start", "prose", "yaml"],
)
def test_a_design_is_read_in_every_form(reply: str) -> None:
    design = record(split(reply), schemas.DesignReply).design()
    expected = Experiment(title="wider", description="d", rubric=("do it",), uplift=(5, 20), innovation=60)
    assert design.plans == (expected,)


@pytest.mark.parametrize(
    ("given", "probability", "effort"),
    [
        ({}, None, 1),
        ({"probability": None, "effort": None, "mechanism": None, "refuted_if": None}, None, 1),
        ({"probability": "70 %", "effort": "3"}, 0.7, 3),
        ({"probability": 0.25, "effort": 9}, 0.25, 3),
        ({"probability": 400, "effort": -1}, 1.0, 1),
        ({"probability": -5}, 0.0, 1),
    ],
)
def test_what_a_plan_says_of_its_hypothesis_is_read_and_may_be_left_out(
    given: dict[str, object], probability: float | None, effort: int
) -> None:
    reply = json.dumps({"plans": [{**PLAN, "mechanism": " fewer\nbytes ", **given}]})
    (plan,) = record(split(reply), schemas.DesignReply).design().plans
    assert (plan.probability, plan.effort, plan.refuted_if) == (probability, effort, "")
    assert plan.mechanism == ("" if "mechanism" in given else "fewer bytes")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("", "empty"),
        ("<think>only thoughts", "only reasoning"),
        ("I cannot help with that.", "not a mapping"),
        ('{"plans": []}', "plans"),
        ('{"plans": [{"title": "x"}]}', "description"),
        (
            '{"plans": [{"title": "x", "description": "d", "rubric": ["r"], "uplift": [1, NaN], "innovation": 5}]}',
            "uplift",
        ),
        ("[" * 100_000, "JSON"),
        ("{" * 50_000, "JSON"),
        ("x" * (MAX_CHARACTERS + 1), "characters"),
        ("a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\nplans: *b\n", "aliases"),
    ],
)
def test_an_invalid_design_is_an_error_with_a_reason(reply: str, words: str) -> None:
    start = time.process_time()  # of this process: other processes may be busy
    with pytest.raises(ReplyError, match=words):
        record(split(reply), schemas.DesignReply)
    assert time.process_time() - start < 5


def test_a_selection_names_correct_kernels() -> None:
    correct = frozenset({"k00001", "k00002"})
    reply = '{"base": "k00001", "reference": "k00002", "rationale": "r"}'
    assert schemas.selection(split(reply), correct).base == "k00001"
    with pytest.raises(ReplyError, match=r"k00009.*k00001, k00002"):
        schemas.selection(split(reply.replace("k00001", "k00009")), correct)


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{WHOLE}```",
        f"Some words.\n\n```\n{WHOLE}```\nREPORT: done",
        f"```cpp\nint x;\n```\n```py\n{WHOLE}```\n```bash\nrun\n```",
        '```diff\n--- a\n+++ b\n@@ -1,9 +1,9 @@\n-"""A kernel."""\n+"""Another kernel."""\n TUNABLES = {"A": 1}\n```',
        '```\n<<<<<<< SEARCH\n"""A kernel."""\n=======\n"""Another kernel."""\n>>>>>>> REPLACE\n```',
        '```\n<<<<<<< SEARCH  \n"""A kernel."""\n=======\n"""Another kernel."""\n>>>>>>> REPLACE\n```',
        indent(f"```python\n{WHOLE}```", "   ").replace("   ```", "1. The kernel:\n\n   ```", 1),
        indent(f"~~~python\n{WHOLE}~~~", "      ").replace("      ~~~", "- - the kernel:\n      ~~~", 1),
        f"```python\n{WHOLE}```".replace("\n", "\r\n"),
    ],
    ids=["whole", "words", "longest", "diff", "search and replace", "spaces", "list", "nested list", "CRLF"],
)
def test_a_kernel_is_read_in_every_form(reply: str) -> None:
    assert kernel_from(split(reply), BASE).strip() == WHOLE.strip()


def test_a_marked_site_is_replaced() -> None:
    source = kernel_from(split("```cpp site=copy\nmemcpy(out, x, 2 * n);\n```\nREPORT: memcpy"), BASE)
    assert "memcpy" in source and "out[i] = x[i]" not in source and "// @begin copy" in source
    marked = "```cpp site=copy\n// @begin copy\nmemcpy(out, x, 2 * n);\n// @end copy\n```\nREPORT: memcpy"
    assert kernel_from(split(marked), BASE) == source


def test_includes_at_the_top_of_a_site_go_to_those_of_the_file() -> None:
    base = BASE.replace("// @begin", "#include <cmath>\nvoid f() {\n// @begin").replace("@end copy", "@end copy\n}")
    reply = "```cpp site=copy\n#include <immintrin.h>\n#include <cmath>\n\nmemcpy(out, x, 2 * n);\n```"
    source = kernel_from(split(reply), base)
    assert "#include <cmath>\n#include <immintrin.h>\nvoid f() {\n// @begin copy\nmemcpy" in source
    assert source.count("#include") == 2


def test_an_include_in_a_file_without_one_goes_to_the_top_of_the_text() -> None:
    source = kernel_from(split("```cpp site=copy\n#include <cstring>\nmemcpy(out, x, 2 * n);\n```"), BASE)
    assert 'SOURCE = r"""\n#include <cstring>\n// @begin copy\nmemcpy(out, x, 2 * n);\n// @end copy' in source


def test_a_site_of_includes_keeps_them() -> None:
    base = BASE.replace("for (int i = 0; i < n; ++i) out[i] = x[i];", "#include <cmath>")
    source = kernel_from(split("```cpp site=copy\n#include <cstring>\n#include <cmath>\n```"), base)
    assert "// @begin copy\n#include <cstring>\n#include <cmath>\n// @end copy" in source


@given(
    st.lists(
        st.sampled_from(["#include <a>", "#include <b>", "  # include <c>", "", "int x;", "#define Y"]), max_size=8
    )
)
def test_moved_includes_lose_and_double_nothing(lines: list[str]) -> None:
    text = "\n".join([*lines, "int last;"])
    source = kernel_from(split(f"```cpp site=copy\n{text}\n```"), BASE)
    assert all(source.count(line.strip()) for line in lines)
    body = KernelSource(source).site("copy")
    assert body is not None and not body.lstrip().startswith("#include")
    rest = [line for line in lines if "include" not in line and line]
    assert [line for line in body.split("\n") if line in ("int x;", "#define Y")] == rest


def test_a_line_separator_in_a_string_ends_no_line() -> None:
    whole = WHOLE + 'SEPARATOR = "\u2028"\n'
    assert kernel_from(split(f"```python\n{whole}```"), BASE) == whole


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (f"```python\n{WHOLE}", ReplyError, "cut off"),
        ("no code at all", ReplyError, "no kernel"),
        ("```python\nprint(1)\n```", ReplyError, "no kernel"),
        ("```diff\n@@\n-not there\n+x\n```", PatchError, "occurs 0 times"),
        ("```diff\njust words\n```", PatchError, "no hunk"),
        ("```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n<<<<<<< SEARCH a\n```", PatchError, "something else"),
        ("```cpp site=elsewhere\nx\n```", PatchError, "no site"),
        (f"```\n<<<<<<< SEARCH\n{BASE}```", ReplyError, "no kernel"),
        ('```diff\n@@\n-"""A kernel."""\n+"""A kernel."""\n```', PatchError, "does not alter the base"),
    ],
)
def test_an_invalid_kernel_is_an_error_with_a_reason(reply: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        kernel_from(split(reply), BASE)


def test_report_and_critique_are_read() -> None:
    answer = split(f"CRITIQUE: an index\nis off\n```python\n{WHOLE}```\n**REPORT:** it copies")
    assert schemas.section(answer, "CRITIQUE") == "an index\nis off"
    assert schemas.section(answer, "REPORT") == "it copies"
    assert schemas.section(split("only prose"), "REPORT") == "only prose"


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(1, 8)):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        piece = text[at : at + rng.randrange(60)]
        odd = rng.choice(
            [
                "```",
                "\x00",
                "<think>",
                "</think>",
                "@@",
                "{",
                "\\",
                "\u2028",
                "&a",
                "*a",
                "<<<<<<< SEARCH\n",
                "=======\n",
                "- ",
                ": ",
            ]
        )
        text = rng.choice(
            [
                text[:at] + text[to:],
                text[:at] + odd + text[at:],
                text[:at] + piece * 3 + text[at:],
                text[::-1] if rng.random() < 0.02 else text,
            ]
        )
    return text or "".join(rng.choices(string.printable, k=50))


REPLIES = [
    DESIGN,
    f"```json\n{DESIGN}\n```",
    '{"base": "k00001", "reference": "k00001", "rationale": "r"}',
    f"CRITIQUE: x\n```python\n{WHOLE}```\nREPORT: y",
    '```diff\n@@ -1 +1 @@\n-"""A kernel."""\n+"""Another."""\n```',
    "```cpp site=copy\nx;\n```",
    "```\n<<<<<<< SEARCH\n    x, out = data\n=======\n    out = data[1]\n>>>>>>> REPLACE\n```",
    '{"findings": [{"text": "t", "kernels": ["k00001"]}], "retracted": []}',
]


@pytest.mark.slow
def test_ten_thousand_mutated_replies_become_a_record_or_an_error() -> None:
    rng, results = random.Random(4), {"record": 0, "failure": 0}
    for number in range(10_000):
        reply = _mutated(rng, REPLIES[number % len(REPLIES)])
        for reader in (_design, _selection, _kernel, _findings):
            try:
                reader(reply)
                results["record"] += 1
            except ReplyError as error:
                results["failure"] += 1
                assert str(error) and len(str(error)) < 4000
    assert min(results.values()) > 2000, results


def _design(reply: str) -> Any:
    return record(split(reply), schemas.DesignReply).design()


def _selection(reply: str) -> Any:
    return schemas.selection(split(reply), frozenset({"k00001"}))


def _kernel(reply: str) -> Any:
    answer = split(reply)
    schemas.section(answer, "REPORT")
    return kernel_from(answer, BASE)


def _findings(reply: str) -> Any:
    return record(split(reply), schemas.FindingsReply)


@given(st.text(max_size=400))
def test_any_text_becomes_a_record_or_an_error(text: str) -> None:
    for reader in (_design, _selection, _kernel, _findings):
        try:
            reader(text)
        except ReplyError:
            pass


lines = st.lists(
    st.text("abc \n", min_size=1, max_size=6).filter(lambda s: s.strip()), min_size=3, max_size=12, unique=True
)


@given(lines, st.integers(0, 100))
def test_a_diff_between_two_texts_gives_the_second(texts: list[str], index: int) -> None:
    import difflib

    before = [w.replace("\n", "").rstrip() + f"{i}" for i, w in enumerate(texts)] + ["custom_kernel"]
    after = [*before[: index % len(before)], "new line", *before[index % len(before) + 1 :]]
    diff = "\n".join(difflib.unified_diff(before, after, lineterm="", n=1))
    base = "\n".join(before) + "\n"
    assert kernel_from(split(f"```diff\n{diff}\n```"), base) == "\n".join(after) + "\n"


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "Here is {} as asked."])
@pytest.mark.parametrize("place", ["value", "key"])
def test_a_lone_surrogate_that_json_escapes_is_replaced(form: str, place: str) -> None:
    """JSON's escape is ASCII: only when it is read a text comes of it that cannot be stored."""
    text = '{"best": 1, "why": "a \\ud800 b"}' if place == "value" else '{"best": 1, "\\udfff": 1}'
    try:
        found = str(record(split(form.replace("{}", text)), schemas.JudgeReply))
    except ReplyError as error:
        found = str(error)
    assert found.encode() and ("a ? b" in found or place == "key")
