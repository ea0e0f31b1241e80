"""The resources: what a client may read without calling a tool."""

from importlib import resources as files

from mcp.server.fastmcp import FastMCP

from kernel_scientist.agents.children import Children, Json

SCHEME = "kernel-scientist://"
JSON = "application/json"


def add(server: FastMCP[None], children: Children) -> None:
    """Add the resources to a server."""

    @server.resource(f"{SCHEME}skill", mime_type="text/markdown")
    def skill() -> str:
        """How to improve a kernel with these tools: the skill file that the package carries."""
        return files.files("kernel_scientist.agents").joinpath("SKILL.md").read_text()

    @server.resource(f"{SCHEME}problems", mime_type=JSON)
    async def problems() -> Json:
        """The problems."""
        return await children.ask(None, "problems", {})

    @server.resource(f"{SCHEME}problems/{{problem}}", mime_type=JSON)
    async def problem(problem: str) -> Json:
        """One problem, as the tool `problem` describes it."""
        return await children.ask(None, "problem", {"problem": problem})

    @server.resource(f"{SCHEME}campaigns/{{campaign}}", mime_type=JSON)
    async def campaign(campaign: str) -> Json:
        """One campaign, as the tool `history` tells of it."""
        return await children.ask(None, "history", {"campaign": campaign})

    @server.resource(f"{SCHEME}campaigns/{{campaign}}/kernels/{{kernel}}", mime_type=JSON)
    async def kernel(campaign: str, kernel: str) -> Json:
        """One kernel of a campaign with its source."""
        return await children.ask(None, "kernel", {"campaign": campaign, "kernel": kernel})
