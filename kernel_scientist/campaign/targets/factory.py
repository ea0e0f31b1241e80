"""Opens targets: imports the module that an address names."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Protocol, cast

from kernel_scientist.campaign.target import Target
from kernel_scientist.campaign.transport import Connect
from kernel_scientist.hardware.addresses import Address
from kernel_scientist.problems.problem import Problem
from kernel_scientist.records.kernel import Language
from kernel_scientist.records.params import Params


class Leaf(Protocol):
    """What a module of this package has."""

    def require(self, params: Params, problem: Problem, address: Address) -> None:
        """Raise SetupError if the target cannot be used, as far as that is known before anything starts."""
        ...

    def opened(
        self, params: Params, problem: Problem, address: Address, connect: Connect | None
    ) -> AbstractContextManager[Target]:
        """Return the target, open as long as the context is. `connect` reaches pools. May raise SetupError."""
        ...

    def toolchain(self, language: Language, address: Address) -> str:
        """Return what compiles and times kernels of a language there, with versions: results depend on it.

        Empty if that is not known on this host.
        """
        ...


def require(params: Params, problem: Problem, address: Address) -> None:
    """Raise SetupError if a target cannot be used, as far as that is known before anything starts."""
    _leaf(address).require(params, problem, address)


@contextmanager
def opened(params: Params, problem: Problem, address: Address, connect: Connect | None = None) -> Generator[Target]:
    """Open a target for a problem; end its work on exit. Raises SetupError."""
    with _leaf(address).opened(params, problem, address, connect) as target:
        yield target


def toolchain(language: Language, address: Address) -> str:
    """Return what compiles and times kernels of a language on a target, with versions, as far as it is known here."""
    return _leaf(address).toolchain(language, address)


def _leaf(address: Address) -> Leaf:
    return cast(Leaf, import_module(f"{__package__}.{address.module}"))
