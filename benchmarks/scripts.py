"""What the scripted model replies: the roles of the Scientist, and the prompts of other systems."""

import itertools
import json
import re
from typing import Any

_numbers = itertools.count(1)


def reply(request: dict[str, Any]) -> str:
    """Return the reply to a request; each is different."""
    prompt = "\n\n".join(str(message["content"]) for message in request.get("messages", ()))
    for heading, role in (("# Select", select), ("# Design", design), ("# Implement", write)):
        if re.search(f"^{heading}", prompt, re.MULTILINE):
            return role(prompt, next(_numbers))
    return other(prompt, next(_numbers))


def select(prompt: str, number: int) -> str:
    """Take the fastest kernel of the table as base, the first as reference."""
    rows = re.findall(r"^\| (k\d+) \|.*?\| ok \| ([\d.e+-]+) \|", prompt, re.MULTILINE)
    base = max(rows, key=lambda row: float(row[1]))[0]
    return json.dumps({"base": base, "reference": rows[0][0], "rationale": "the fastest, and the first"})


def design(prompt: str, number: int) -> str:
    """Return ten avenues and five plans."""
    plans = [_plan(f"plan {number}.{i}") for i in range(1, 6)]
    return json.dumps({"avenues": [{"title": f"avenue {i}", "examine": "all"} for i in range(10)], "plans": plans})


def write(prompt: str, number: int) -> str:
    """Return the base with one more constant, and a plan if the prompt asks for one."""
    source = prompt[prompt.index("## The base: ") :].split("```python\n", 1)[1].split("\n```", 1)[0]
    plan = f"```json\n{json.dumps(_plan(f'idea {number}'))}\n```\n\n" if "## Your experiment" in prompt else ""
    lines = [line for line in source.splitlines() if not line.startswith("VARIANT = ")]
    return f"{plan}```python\n{chr(10).join(lines)}\nVARIANT = {number}\n```\n\nREPORT: variant {number}"


def other(prompt: str, number: int) -> str:
    """Return a whole program in the forms that other systems read."""
    return f"<NAME>\nvariant_{number}\n</NAME>\n\n```python\nVALUE = {number}\n```"


def _plan(title: str) -> dict[str, Any]:
    return {"title": title, "description": "because", "rubric": ["do it"], "uplift": [1, 5], "innovation": 50}
