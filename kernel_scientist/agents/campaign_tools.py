"""The tools about campaigns. Their docstrings are the descriptions that a model reads."""

from typing import Annotated, Literal

from mcp.server.fastmcp import FastMCP
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from kernel_scientist.agents.arguments import File, ProblemName, ReadOnly, Source, TargetName
from kernel_scientist.agents.children import Call, Children, Json
from kernel_scientist.records.base import Finite

CampaignName = Annotated[str, Field(description="The campaign's id.")]


def _ordered(gain: tuple[float, float]) -> tuple[float, float]:
    if gain[0] > gain[1]:
        raise PydanticCustomError("gain", "the lowest gain is above the highest")
    return gain


Uplift = Annotated[
    tuple[Finite, Finite],
    AfterValidator(_ordered),
    Field(description="The gain in speed over the base that you expect, lowest and highest, in percent: [5, 20]."),
]
MOST_NAME = 80
"""Characters of a client's name that are recorded."""


def add(server: FastMCP[None], children: Children) -> None:
    """Add the tools to a server."""
    _add_campaigns(server, children)
    _add_history(server, children)


def _add_campaigns(server: FastMCP[None], children: Children) -> None:
    @server.tool()
    async def begin_campaign(
        context: Call,
        problem: ProblemName,
        evaluations: Annotated[int, Field(ge=1, le=10_000, description="How many kernels you may submit.")],
        language: Annotated[
            Literal["cpp", "triton", "hip", "cuda"], Field(description="Language of all its kernels.")
        ] = "cpp",
        target: TargetName = None,
    ) -> Json:
        """Begin a campaign: a recorded search for the fastest kernel of one problem, with a budget in evaluations. Its
        first kernels, the seeds and the standing champion, are evaluated now, which takes a minute. Returns the id and
        these kernels: choose one of them as the base of your first kernel (`kernel` returns its source)."""
        arguments = {"problem": problem, "evaluations": evaluations, "language": language, "target": target}
        return await children.ask(context, "begin", arguments)

    @server.tool()
    async def submit(
        context: Call,
        campaign: CampaignName,
        base: Annotated[str, Field(description="The kernel of this campaign that yours was made from: k00002.")],
        title: Annotated[str, Field(min_length=1, max_length=200, description="The change in a few words.")],
        hypothesis: Annotated[str, Field(min_length=1, description="What you changed, and why it should be faster.")],
        expected_percent: Uplift,
        source: Source = "",
        file: File = "",
    ) -> Json:
        """Have a kernel judged and recorded in a campaign, right or wrong; that takes one evaluation of its budget. It
        is compiled, checked, and timed in one run beside the reference, its base and the incumbent. `check` it before.
        The kernel becomes the incumbent only if the test finds it faster than the incumbent."""
        experiment = {"title": title, "description": hypothesis, "rubric": [], "uplift": expected_percent}
        arguments = {"campaign": campaign, "source": children.source(source, file), "base": base}
        arguments |= {"agent": _client(context), "experiment": experiment | {"innovation": 0}}
        return await children.ask(context, "submit", arguments)

    @server.tool()
    async def confirm(context: Call, campaign: CampaignName) -> Json:
        """End a campaign: its best kernels are timed in a final, and the champion is confirmed in fresh processes on
        new seeds and on cases that nobody saw, beside the seed and the standing champion, which it may replace. Takes
        some minutes. Call it once you have no further ideas or no evaluations left."""
        return await children.ask(context, "confirm", {"campaign": campaign})


def _add_history(server: FastMCP[None], children: Children) -> None:
    @server.tool(annotations=ReadOnly)
    async def history(
        context: Call,
        campaign: Annotated[str, Field(description="The campaign's id; default: the one started last.")] = "",
        most: Annotated[int, Field(ge=1, le=500, description="Most kernels, the latest.")] = 50,
    ) -> Json:
        """Tell of a campaign what was tried: each kernel with its base, verdict and speed, the incumbent, and what the
        confirmation came to. Read it before you choose the next base, so that nothing is tried twice."""
        return await children.ask(context, "history", {"campaign": campaign, "most": most})

    @server.tool(annotations=ReadOnly)
    async def kernel(
        context: Call,
        campaign: CampaignName,
        kernel: Annotated[str, Field(description="The kernel's name: k00002.")],
    ) -> Json:
        """Return a kernel of a campaign with its source, hypothesis, verdict and times."""
        return await children.ask(context, "kernel", {"campaign": campaign, "kernel": kernel})


def _client(context: Call) -> str:
    """Return the name and version of the client, which are recorded as the writer of its kernels."""
    given = context.session.client_params
    told = f"{given.clientInfo.name} {given.clientInfo.version}" if given else "a client without a name"
    return " ".join(told.split())[:MOST_NAME]
