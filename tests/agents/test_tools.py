"""Tools that record nothing, called by the official SDK's client over stdio."""

import shutil
from pathlib import Path
from typing import Any

from mcp import ClientSession

from tests.agents.client import over_stdio, refusal, result

WRONG = "def custom_kernel(data):\n    return data[1]\n"
BROKEN = (
    'from kernel_scientist import load\nkernel = load("int f( {")\n\ndef custom_kernel(data):\n    return data[1]\n'
)
KERNEL = {"campaign": "absent", "base": "k00001", "title": "edit", "hypothesis": "faster", "source": WRONG}


def seed(lab: Path, name: str = "cpp_blocked.py") -> str:
    return (lab / "problems" / "identity" / "seeds" / name).read_text()


def test_a_kernel_is_described_compiled_checked_timed_and_profiled(lab: Path) -> None:
    heard: list[str] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def talk(session: ClientSession) -> None:
        listed = await session.list_tools()
        assert all(one.description and one.inputSchema["type"] == "object" for one in listed.tools)
        problems = (await result(session, "problems"))["problems"]
        assert {"identity", "rmsnorm"} <= {row["problem"] for row in problems}
        shown = await result(session, "problem", problem="identity")
        assert "Copy a vector" in shown["description"] and "ref_kernel" in shown["reference"]
        assert (await result(session, "problem", problem="identity", seed="cpp_naive.py"))["source"] == seed(
            lab, "cpp_naive.py"
        )
        kernel: dict[str, Any] = {"problem": "identity", "source": seed(lab)}
        compiled = await result(session, "compile", **kernel)
        assert compiled["verdict"] == "ok" and compiled["compile"]["instructions"]
        assert (await result(session, "check", **kernel))["verdict"] == "ok"
        wrong = await result(session, "check", problem="identity", source=WRONG)
        assert wrong["verdict"] == "incorrect" and wrong["reason"]
        broken = await result(session, "compile", problem="identity", source=BROKEN)
        assert broken["verdict"] == "compile_error" and "/tmp" not in broken["reason"]
        done = await session.call_tool("evaluate", kernel, progress_callback=hear)
        timed = done.structuredContent
        assert timed is not None and timed["verdict"] == "ok" and timed["speedup"]["against"] == "reference"
        file = "problems/identity/seeds/cpp_naive.py"
        beside = await result(session, "profile", problem="identity", file=file)
        assert beside["compile"]["compiler"] and ("unprofiled" in beside or beside["sampled"][0]["lines"])
        absent = await session.call_tool("profile", {**kernel, "case": "elsewhere"})
        assert absent.isError and "problem identity has no timed case 'elsewhere'; it has size" in str(absent.content)

    over_stdio(lab, talk)
    assert any("checking" in one for one in heard) and any("timing" in one for one in heard)


def test_bad_input_gives_a_sentence(lab: Path) -> None:
    async def talk(session: ClientSession) -> None:
        source = seed(lab)
        calls: list[tuple[str, dict[str, Any], str]] = [
            ("fly", {}, "there is no tool 'fly'; there are problems,"),
            ("problem", {}, "problem: argument 'problem': Field required"),
            ("problem", {"problem": 7}, "argument 'problem': Input should be a valid string"),
            ("problem", {"problem": "nothing"}, "unknown problem 'nothing'; known: "),
            ("problem", {"problem": "identity", "seed": "x"}, "no seed 'x'; its seeds: cpp_blocked.py, "),
            ("check", {"problem": "identity"}, "give either `source`"),
            ("check", {"problem": "identity", "source": source, "file": "x.py"}, "give either `source`"),
            ("check", {"problem": "identity", "file": "absent.py"}, "absent.py: No such file"),
            ("check", {"problem": "identity", "file": "problems/identity/lab.yml"}, "a kernel is a Python file"),
            ("check", {"problem": "identity", "source": source, "tagret": "cpu"}, "no argument 'tagret'; it has "),
            ("check", {"problem": "identity", "source": "x = 1"}, "kernel.py defines no custom_kernel(data)"),
            ("check", {"problem": "identity", "source": source, "target": "moon"}, "expected auto, cpu, "),
            ("check", {"problem": "identity", "source": source, "target": "kernelbot"}, "expected auto, cpu, "),
            ("begin_campaign", {"problem": "identity", "evaluations": 1, "target": "kernelbot"}, "expected auto, "),
            ("submit", {**KERNEL, "expected_percent": [20, 5]}, "'expected_percent': the lowest gain is above the "),
            ("compile", {"problem": "identity", "source": "@triton.jit\ncustom_kernel = 1", "machine": "moon"}, "moon"),
            ("compare", {"first": ["a"], "second": []}, "argument 'second': List should have at least 1 item"),
            ("compare", {"first": ["a"], "second": ["b"]}, "there is no campaign 'a'"),
        ]
        for tool, arguments, expected in calls:
            assert expected in await refusal(session, tool, **arguments)

    over_stdio(lab, talk)


def test_only_a_listed_problem_is_loaded_and_nothing_tells_how_its_held_out_cases_are_made(lab: Path) -> None:
    here, elsewhere, ran = lab / "problems" / "bare", lab / "elsewhere", lab / "ran"
    shutil.copytree(lab / "problems" / "identity", here)
    (here / "lab.yml").unlink()
    shutil.copytree(here, elsewhere)
    reference = elsewhere / "reference.py"
    reference.write_text(f"open({str(ran)!r}, 'w')\n{reference.read_text()}")

    async def talk(session: ClientSession) -> None:
        shown = await result(session, "problem", problem="bare")
        assert shown["description"] and "assumed" not in shown and "held" not in str(shown)
        for name in (str(elsewhere), "../elsewhere", "elsewhere", f"{elsewhere}@fp16"):
            assert "unknown problem" in await refusal(session, "problem", problem=name)
            assert "unknown problem" in await refusal(session, "begin_campaign", problem=name, evaluations=1)
            for tool in ("compile", "check", "evaluate", "profile"):
                assert "unknown problem" in await refusal(session, tool, problem=name, source=seed(lab))

    over_stdio(lab, talk)
    assert not ran.exists()
