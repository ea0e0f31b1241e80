"""The background of a prompt: how much it may take, and which documents and cards of symptoms it is."""

from collections.abc import Sequence

from kernel_scientist.records.evaluation import Trial
from kernel_scientist.scientist import knowledge, symptoms
from kernel_scientist.scientist.context import observed
from kernel_scientist.scientist.context.gpu_facts import PredictedLimit
from kernel_scientist.scientist.knowledge import Background, Document
from kernel_scientist.scientist.prompts import Prompt
from kernel_scientist.scientist.proposals import ExperimentTask
from kernel_scientist.scientist.roles import Assignment
from kernel_scientist.scientist.symptoms import Symptom

BACKGROUND = 0.3
"""Largest share of background in a prompt; with its headings it stays below a third."""
PITFALLS = "What bites"
"""The section of a document that a judge gets."""


def room(assignment: Assignment, prompt: Prompt) -> int:
    """Return the tokens that a prompt's background may take: `BACKGROUND` of the whole, at most `knowledge.tokens`.

    prompt: it without background.
    """
    rest = sum(len(message.content) for message in prompt.messages if message.role == "user")
    return min(assignment.knowledge_tokens, int(rest * BACKGROUND / (1 - BACKGROUND) / knowledge.CHARACTERS_PER_TOKEN))


def chosen(assignment: Assignment, query: str, tokens: int, plan: str = "") -> Background:
    """Return the documents for a query beside the problem's text, within a budget of tokens."""
    problem, (language, backend, bound, about) = assignment.problem, assignment.subject
    query = f"{problem.name} {problem.description} {query}"
    return knowledge.choose(assignment.knowledge, query, language, backend, tokens, bound, about, plan)


def for_plan(assignment: Assignment, task: ExperimentTask, base: str, prompt: Prompt) -> Sequence[Document]:
    """Return the documents for who writes a kernel. base: its source. prompt: it without documents."""
    idea = task.experiment
    plan = " ".join((idea.title, idea.description, *idea.rubric))
    return chosen(assignment, f"{plan} {base}", room(assignment, prompt), plan).documents


def pitfalls(assignment: Assignment) -> list[Document]:
    """Return the section on pitfalls of each document that applies."""
    return [section for document in assignment.documents if (section := document.section(PITFALLS)).text]


def cards(assignment: Assignment, trial: Trial, tokens: int) -> tuple[list[Symptom], int]:
    """Return the symptoms in a kernel's report that fit into a budget, the most costly first, and the tokens left."""
    shown = list[Symptom]()
    facts = observed.facts(assignment, trial)
    for one in symptoms.matching(assignment.symptoms, facts, assignment.language, assignment.backend):
        if (cost := knowledge.estimated_tokens(one.text)) <= tokens:
            shown, tokens = [*shown, one], tokens - cost
    return shown, tokens


def without_remedies(limits: Sequence[PredictedLimit], shown: Sequence[Symptom]) -> list[PredictedLimit]:
    """Return predicted limits without the remedies that the symptoms say more fully."""
    said = [remedy for one in shown for remedy in one.replaces]
    return [row.with_advice([_without(line, said) for line in row.advice]) for row in limits]


def _without(line: str, remedies: Sequence[str]) -> str:
    for remedy in remedies:
        line = line.replace(remedy, "")
    return line
