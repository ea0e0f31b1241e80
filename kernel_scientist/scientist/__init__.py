"""The minds that run experiments."""

from kernel_scientist.errors import SetupError
from kernel_scientist.params import Llm
from kernel_scientist.records import Language
from kernel_scientist.scientist.mind import Assignment, Mind
from kernel_scientist.scientist.playbook import Playbook


def mind(llm: Llm, assignment: Assignment) -> Mind:
    """Return the mind that the parameters name. Raises SetupError for one that is not there."""
    require(llm, assignment.language)
    return Playbook(assignment)


def require(llm: Llm, language: Language) -> None:
    """Raise SetupError unless there is a mind for these roles and this language."""
    models = {llm.selector.model, llm.designer.model, llm.writer.model}
    if models != {"playbook"}:
        other = sorted(models - {"playbook"})[0]
        raise SetupError(f"llm: model {other!r}: only the playbook is there yet; set every role's model to playbook")
    if language != "cpp":
        raise SetupError(f"language {language!r}: the playbook's catalogue is for cpp yet; evaluate works for triton")
