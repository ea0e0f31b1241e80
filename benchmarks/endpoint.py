"""A scripted model: a server with OpenAI's chat protocol that replies to each request after a fixed delay.

    python -m benchmarks.endpoint --delay 2

prints its address and serves until it is ended. The replies are made by rule from the prompts: those of the Scientist's
roles, and those of other systems.
"""

import argparse
import asyncio
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
_numbers = itertools.count(1)


@contextmanager
def serving(delay_s: float) -> Generator[str]:
    """Run the server in a process of its own; yield its address."""
    command = [sys.executable, "-m", "benchmarks.endpoint", "--delay", str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def serve(delay_s: float) -> None:
    """Serve until the process ends."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
                body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
                request: dict[str, Any] = json.loads(body) if body else {}
                text = reply(request)
                await asyncio.sleep(delay_s)
                writer.write(_response(request, text).encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=1 << 22)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def _response(request: dict[str, Any], content: str) -> str:
    frame = {"id": "x", "created": 1, "model": request.get("model", "")}
    usage = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
    if not request.get("stream"):
        message = {"role": "assistant", "content": content}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        text = json.dumps({**frame, "object": "chat.completion", "choices": choices, "usage": usage})
        return HEAD.format(kind="application/json", length=len(text.encode())) + text
    frame["object"] = "chat.completion.chunk"
    chunk = {"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    frames = [{"choices": [chunk]}, {"choices": [end]}, {"choices": [], "usage": usage}]
    text = "".join(f"data: {json.dumps({**frame, **part})}\n\n" for part in frames) + "data: [DONE]\n\n"
    return HEAD.format(kind="text/event-stream", length=len(text.encode())) + text


def reply(request: dict[str, Any]) -> str:
    """Return the reply to a request; each is different."""
    messages = request.get("messages", ())
    prompt = "\n\n".join(str(message["content"]) for message in messages)
    if "## How to call a tool" in prompt and not any(message["role"] == "assistant" for message in messages):
        return look(prompt, next(_numbers))
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


def look(prompt: str, number: int) -> str:
    """Return calls of tools: a writer compiles and checks a draft, a designer reads the object code of its base."""
    if "# Implement" not in prompt:
        return "```tool read\n" + json.dumps({"name": "k00001"}) + "\n```"
    draft = write(prompt, number).split("```python\n", 1)[1].split("\n```", 1)[0] + "\n"
    return "\n\n".join(f"```tool {name}\n{json.dumps({'source': draft})}\n```" for name in ("compile", "check"))


def other(prompt: str, number: int) -> str:
    """Return a whole program in the forms that other systems read."""
    return f"<NAME>\nvariant_{number}\n</NAME>\n\n```python\nVALUE = {number}\n```"


def _plan(title: str) -> dict[str, Any]:
    return {"title": title, "description": "because", "rubric": ["do it"], "uplift": [1, 5], "innovation": 50}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=2.0)
    asyncio.run(serve(parser.parse_args().delay))
