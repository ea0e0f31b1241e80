"""The tools about problems and kernels: what a model may call. Their docstrings are the descriptions that it reads."""

from typing import Annotated

from mcp.server.fastmcp import FastMCP
from pydantic import Field

from kernel_scientist.agents import campaign_tools
from kernel_scientist.agents.arguments import File, ProblemName, ReadOnly, Source, TargetName
from kernel_scientist.agents.children import Call, Children, Json

COUNTED = "to have a kernel counted, `submit` it to a campaign."
"""The end of the description of `evaluate`: where there is no `submit`, it has another one."""


def add(server: FastMCP[None], children: Children) -> None:
    """Add the tools to a server."""
    _add_problems(server, children)
    _add_checks(server, children)
    _add_timings(server, children)
    campaign_tools.add(server, children)


def _add_problems(server: FastMCP[None], children: Children) -> None:
    @server.tool(annotations=ReadOnly)
    async def problems(context: Call) -> Json:
        """List the problems for which kernels can be written, with what each computes. Call this first."""
        return await children.ask(context, "problems", {})

    @server.tool(annotations=ReadOnly)
    async def problem(
        context: Call,
        problem: ProblemName,
        seed: Annotated[str, Field(description="Return the source of this seed kernel instead.")] = "",
    ) -> Json:
        """Describe one problem: what custom_kernel(data) receives and returns, tolerance, reference in PyTorch, public
        cases with their roofline floors, names of seed kernels. With `seed` you get that seed's source: the best way to
        see the form of a kernel. Other cases than these are used to confirm a champion; do not special-case sizes."""
        return await children.ask(context, "problem", {"problem": problem, "seed": seed})


def _add_checks(server: FastMCP[None], children: Children) -> None:
    @server.tool(annotations=ReadOnly)
    async def compile(
        context: Call,
        problem: ProblemName,
        source: Source = "",
        file: File = "",
        machine: Annotated[str, Field(description="GPU for Triton and HIP: mi300x, mi325x, h100, ...")] = "mi300x",
    ) -> Json:
        """Compile a kernel: some seconds. C++ is compiled for this CPU, and no call is made. Triton and HIP are
        compiled for a GPU that need not be here; their answer has `ok`, and no `verdict` if they compile. Tells
        compiler errors, registers, spills, LDS, occupancy, findings."""
        text = children.source(source, file)
        return await children.ask(context, "compile", {"problem": problem, "source": text, "machine": machine})

    @server.tool(annotations=ReadOnly)
    async def check(
        context: Call,
        problem: ProblemName,
        source: Source = "",
        file: File = "",
        target: TargetName = None,
    ) -> Json:
        """Compile a kernel and compare its outputs with the reference's on every public checking case, with fresh
        inputs, in a sandbox; nothing is timed. `verdict` is ok, compile_error, incorrect, crashed, timeout or rejected;
        `reason` says what is wrong and where. Use it until the verdict is ok."""
        text = children.source(source, file)
        return await children.ask(context, "check", {"problem": problem, "source": text, "target": target})


def _add_timings(server: FastMCP[None], children: Children) -> None:
    @server.tool(annotations=ReadOnly)
    async def evaluate(
        context: Call,
        problem: ProblemName,
        source: Source = "",
        file: File = "",
        target: TargetName = None,
        against: Annotated[str, Field(description="Text of another kernel that is timed in the same run.")] = "",
    ) -> Json:
        """Compile, check and time a kernel: half a minute to some minutes. `speedup` is over the reference, or over
        `against`, timed in the same run: believe it only if `resolved` is true; `faster` is the test's decision, and
        `interval` the 95 % interval of the ratio. Two kernels are compared by `against`, never by two calls. Records
        nothing: to have a kernel counted, `submit` it to a campaign."""
        arguments = {"problem": problem, "source": children.source(source, file), "target": target}
        return await children.ask(context, "evaluate", arguments | {"against": against or None})

    @server.tool(annotations=ReadOnly)
    async def profile(
        context: Call,
        problem: ProblemName,
        source: Source = "",
        file: File = "",
        target: TargetName = None,
        case: Annotated[str, Field(description="A timed case; empty: the one that moves most bytes.")] = "",
    ) -> Json:
        """Check a kernel and profile its calls on one timed case; half a minute, and counts for no campaign's budget.
        Use it when you do not know what limits a kernel; only `evaluate` says how fast it is. On a CPU:
        `sampled`, shares (0 to 1) of the CPU time of all threads by line of your file and outside of its code, a hint
        from the kernel's own process, rough below 100 samples. On a GPU: `counters`. On model targets: `predicted`, the
        lines that take the time, and why. In `compile`: the machine code of the innermost loop with the most vector
        work, which is found without running it. `unprofiled` says why a profiler found nothing. A target `pool:NAME`
        evaluates the kernel instead."""
        arguments = {"problem": problem, "source": children.source(source, file), "target": target, "case": case}
        return await children.ask(context, "profile", arguments)

    @server.tool(annotations=ReadOnly)
    async def compare(
        context: Call,
        first: Annotated[list[str], Field(min_length=1, description="Ids of campaigns.")],
        second: Annotated[list[str], Field(min_length=1, description="Ids of the campaigns to compare with.")],
        recorded: Annotated[bool, Field(description="Time nothing: only compare what was recorded.")] = False,
    ) -> Json:
        """Compare two campaigns of one problem, or two lists of repeats, at equal budget: their incumbents are timed
        against each other in one run. To compare two kernels use `evaluate` with `against`."""
        return await children.ask(context, "compare", {"first": first, "second": second, "recorded": recorded})
