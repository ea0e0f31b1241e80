"""What a campaign's models will cost, before it starts: a prediction from the sizes of what prompts will hold."""

from kernel_scientist.problems.taskfolder import Problem
from kernel_scientist.records.params import Params
from kernel_scientist.scientist.llm import prices
from kernel_scientist.scientist.llm.client import PLAYBOOK
from kernel_scientist.scientist.llm.endpoint import estimated_tokens

TEMPLATE_TOKENS, ROW_TOKENS = 1500, 60
"""Of a prompt beside sources and digests; and of one kernel in the Selector's table."""
REPLY_TOKENS = {"selector": 200, "designer": 2500, "distiller": 600, "judge": 150}
REPAIRED = 0.4
"""Share of kernels that need a repair: what agents in the literature report at best (STARK, table 2)."""


def usd(params: Params, problem: Problem, seeds: int) -> float:
    """Return the predicted cost in USD, each role at its own model's price."""
    files = problem.seeds(params.language)
    source = max((estimated_tokens(f.read_text()) for f in files), default=1000)
    task = estimated_tokens(problem.description) + estimated_tokens((problem.folder / "reference.py").read_text())
    rounds = params.search.generations
    kernels = min(rounds * params.search.experiments, max(0, params.budget.kernels - seeds))
    common, read = TEMPLATE_TOKENS + task, params.knowledge.tokens
    drafts = params.llm.drafts
    every = params.knowledge.distil_every
    calls: dict[str, tuple[float, int, int]] = {
        "selector": (rounds, TEMPLATE_TOKENS + ROW_TOKENS * (seeds + kernels), REPLY_TOKENS["selector"]),
        "designer": (rounds, common + source + read, REPLY_TOKENS["designer"]),
        "writer": (kernels * drafts, common + 2 * source + read, source + 300),
        "judge": (kernels if drafts > 1 else 0, common + (1 + drafts) * source, REPLY_TOKENS["judge"]),
        "repairer": (kernels * REPAIRED if params.repair.rounds else 0, common + 2 * source, source + 300),
        "distiller": (rounds // every if every else 0, TEMPLATE_TOKENS + 6 * 300, REPLY_TOKENS["distiller"]),
    }
    total = 0.0
    for role, (count, asked, answered) in calls.items():
        model = params.llm.role(role)
        if model.model != PLAYBOOK:
            total += count * prices.price(model).of(asked, answered)
    return round(total, 4)
