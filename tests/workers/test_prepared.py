"""The pool that a command starts before its flow is the one that the flow uses."""

import psutil

from kernel_scientist.campaign import preflight
from kernel_scientist.campaign.evaluation_context import EvaluationContext, evaluation_context
from kernel_scientist.campaign.targets.local import Local
from kernel_scientist.records import environment
from kernel_scientist.records.params import Params, load
from kernel_scientist.workers import prepared


def _params(*overrides: str) -> Params:
    return load(environment.root() / "params.yaml", ["problem=identity", *overrides])


def _fork_server(context: EvaluationContext) -> int:
    assert isinstance(context.target, Local)
    process = context.target.evaluator.pool._process
    assert process is not None
    return process.pid


def test_a_context_uses_the_pool_that_was_started_ahead_and_closes_it() -> None:
    with prepared.started_ahead(_params(), *preflight.resolve(_params())):
        ((_, ahead),) = prepared._ahead
        assert ahead._process is not None
        fork_server = ahead._process.pid
        with evaluation_context(_params()) as context:
            assert _fork_server(context) == fork_server
        assert not psutil.pid_exists(fork_server)
        with evaluation_context(_params()) as later:
            assert _fork_server(later) != fork_server


def test_a_context_with_other_parameters_has_a_pool_of_its_own() -> None:
    with prepared.started_ahead(_params(), *preflight.resolve(_params())):
        ((_, ahead),) = prepared._ahead
        assert ahead._process is not None
        with evaluation_context(_params("harness.blocks=9")) as context:
            assert _fork_server(context) != ahead._process.pid
        unused = ahead._process.pid
    assert not psutil.pid_exists(unused) and not prepared._ahead
