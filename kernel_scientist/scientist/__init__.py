"""The minds that run experiments."""

from kernel_scientist.records.errors import SetupError
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.params import ROLES, Llm, Model
from kernel_scientist.scientist.llm.client import PLAYBOOK, Channel
from kernel_scientist.scientist.llm.ensemble import Ensemble
from kernel_scientist.scientist.llm.mind import LanguageModel
from kernel_scientist.scientist.playbook.mind import CATALOGUES, Playbook
from kernel_scientist.scientist.roles import Assignment, Mind


def mind(llm: Llm, assignment: Assignment, channel: Channel) -> Mind:
    """Return the mind that the parameters name, role by role. Raises SetupError for what cannot be played."""
    require(llm, assignment.language)
    playbook = Playbook(assignment)
    return Ensemble(llm, playbook, LanguageModel(assignment, channel)) if models(llm) else playbook


def require(llm: Llm, language: Language) -> None:
    """Raise SetupError unless every role can be played in this language and every model has a price."""
    from kernel_scientist.scientist.llm import prices

    for name in ("selector", "designer", "writer"):
        if language not in CATALOGUES and any(m.model == PLAYBOOK for m in llm.role(name).models):
            raise SetupError(
                f"llm.{name}: the playbook has no catalogue for {language}, only for {' and '.join(CATALOGUES)}; "
                f"name a model ({language} kernels can be evaluated without)"
            )
    for model in models(llm):
        prices.price(model)


def models(llm: Llm) -> list[Model]:
    """Return every model that may be asked, fallbacks included."""
    return [m for name in ROLES for m in (*llm.role(name).models, *llm.role(name).fallbacks) if m.model != PLAYBOOK]
