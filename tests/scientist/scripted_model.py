"""A model that fills every role by rule; its replies depend only on the prompts."""

import json
import re
from collections import Counter
from typing import Any

from tests.scientist.model_server import Response

KINDS = ("good", "compile error", "wrong", "unreadable", "crash", "good", "cheat", "hang", "good")
"""Results of the experiments, in the order in which they are chosen."""
PLANS = ([0, 5, 1], [0, 50, 0], [20, 21, 0], [1, 2, 0], [1, 3, 0])
"""Uplift and innovation of five plans; the campaign picks the first three."""


class ScriptedModel:
    """Replies to requests; `kinds` are the results of its experiments, by the number in their titles."""

    def __init__(self, kinds: tuple[str, ...] = KINDS) -> None:
        self.kinds = kinds
        self.designs: dict[str, int] = {}
        self.drafts: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any], number: int) -> Response:
        first = request["messages"][1]["content"]
        heading = first.split("\n", 1)[0]
        for start, role in (
            ("# Select", self.select),
            ("# Design", self.design),
            ("# Implement", self.write),
            ("# Repair", self.repair),
            ("# Summarise", self.summarise),
            ("# Choose the best draft", self.judge),
        ):
            if heading.startswith(start):
                return Response(role(first), tokens=(len(first) // 4, 100))
        return Response("unknown prompt", status=400)

    def select(self, prompt: str) -> str:
        """Take the fastest kernel, and the first."""
        kernels: list[tuple[float, str]] = []
        for line in prompt.splitlines():
            cells = [c.strip() for c in line.split("|")]
            if len(cells) > 6 and re.fullmatch(r"k\d+", cells[1]) and cells[5] == "ok":
                kernels.append((float(cells[6]), cells[1]))
        base, reference = max(kernels)[1], kernels[0][1]
        return json.dumps({"base": base, "reference": reference, "rationale": "the fastest, and the first"})

    def design(self, prompt: str) -> str:
        """Plan five experiments; the campaign picks the first three."""
        first = 3 * self.designs.setdefault(prompt, len(self.designs))  # the same prompt gets the same reply
        plans = [
            {
                "title": f"plan {first + i if i < 3 else 1000 + i}: {self.kinds[(first + i) % len(self.kinds)]}",
                "description": "because",
                "rubric": ["do it"],
                "uplift": [low, high],
                "innovation": new,
            }
            for i, (low, high, new) in enumerate(PLANS)
        ]
        avenues = [{"title": f"avenue {i}", "examine": "everything"} for i in range(10)]
        return f"```json\n{json.dumps({'avenues': avenues, 'plans': plans})}\n```"

    def write(self, prompt: str) -> str:
        """Change the base as the experiment's title says."""
        number, kind = self._plan(prompt)
        source = _changed(block_after(prompt, "## The base: "), number, kind)
        self.drafts[prompt] += 1
        if (draft := self.drafts[prompt]) > 1:  # the same prompt again: another draft
            source = source.replace('r"""\n', f'r"""\nstatic const int plan_{number}_draft_{draft} = 0;\n', 1)
        return self._reply(source, f"carried out plan {number}, draft {draft}", kind)

    def judge(self, prompt: str) -> str:
        """Take the last draft."""
        return json.dumps({"best": max(int(n) for n in re.findall(r"^## Draft (\d+)", prompt, re.M)), "why": "newer"})

    def repair(self, prompt: str) -> str:
        """Repair what does not compile; leave other kernels wrong. Write nothing where nothing was written."""
        _, kind = self._plan(prompt)
        if kind == "unreadable":
            return self._reply("", "", kind)
        source = block_after(prompt, "## The kernel that failed")
        repaired = source.replace("this is no C++;\n", "") + "# repaired\n"
        return "CRITIQUE: something was off\n\n" + self._reply(repaired, "repaired", kind).removeprefix("Here it is.")

    def summarise(self, prompt: str) -> str:
        """State one finding, on the first kernel of the sample."""
        name = re.search(r"^### (k\d+):", prompt, re.M)
        assert name is not None
        findings = [{"text": f"{name[1]} is worth a look.", "kernels": [name[1]]}]
        return json.dumps({"findings": findings, "retracted": []})

    def _plan(self, prompt: str) -> tuple[int, str]:
        experiment = prompt[max(prompt.rfind("## The experiment: "), prompt.rfind("this experiment on ")) :]
        match = re.search(r"plan (\d+): ([a-z ]+)", experiment)
        assert match is not None, prompt[-3000:]
        return int(match[1]), match[2].strip()

    def _reply(self, source: str, report: str, kind: str) -> str:
        if kind == "unreadable":
            return "I would rather talk about it."
        return f"Here it is.\n\n```python\n{source}```\n\nREPORT: {report}"


def block_after(prompt: str, heading: str) -> str:
    rest = prompt[prompt.index(heading) :]
    return rest.split("```python\n", 1)[1].split("\n```", 1)[0] + "\n"


def _changed(source: str, number: int, kind: str) -> str:
    source = source.replace('SOURCE = r"""\n', f'SOURCE = r"""\nstatic const int plan_{number} = {number};\n', 1)
    tail = {
        "compile error": "",
        "wrong": "\n\ninner = custom_kernel\n\n\ndef custom_kernel(data):\n    return inner(data).zero_()\n",
        "crash": "\n\ndef custom_kernel(data):\n    import ctypes\n    ctypes.string_at(8)\n",
        "hang": "\n\ndef custom_kernel(data):\n    while True:\n        pass\n",
        "cheat": "\n\ndef custom_kernel(data):\n    import os\n    os.fork()\n    return data[-1]\n",
    }.get(kind, "")
    if kind == "compile error":
        source = source.replace(f"plan_{number} = {number};\n", f"plan_{number} = {number};\nthis is no C++;\n", 1)
    return source + tail
