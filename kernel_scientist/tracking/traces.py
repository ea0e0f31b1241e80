"""Model calls as MLflow traces: one per reply that a campaign paid for.

A trace is linked to the run of the kernel that the reply led to, if there is one, otherwise to the campaign's run.

A trace's id is a digest of the reply's identity, so writing a reply again changes nothing. The tracing client is used
with explicit ids: the fluent API would write to the store that the process used last.
"""

import base64
import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from kernel_scientist.records.kernel import digest
from kernel_scientist.scientist.llm.response_cache import Reply

PREVIEW = 1000
"""Characters of request and reply in the list of traces."""


class Made(NamedTuple):
    """A reply, the kernel that it led to (empty: none) and the id of the run that it belongs to."""

    reply: Reply
    kernel: str
    run_id: str


def kernel(reply: Reply) -> str | None:
    """Return the name of the kernel that a call was made for; None if it was for a whole generation."""
    named = re.search(r"/(k\d+)\b", reply.call_key)
    return named[1] if named else None


def write(client: Any, experiment_id: str, replies: Sequence[Made]) -> None:
    """Write replies as traces by MLflow's tracing client. Not thread-safe."""
    for made in replies:
        client.start_trace(_info(experiment_id, made))
    client.log_spans(experiment_id, [_span(made.reply) for made in replies])


def _info(experiment_id: str, made: Made) -> Any:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    reply = made.reply
    tags = {"mlflow.traceName": reply.role, "role": reply.role}
    tags |= {"call_key": reply.call_key, "model": reply.request.model}
    if made.kernel:
        tags["kernel"] = made.kernel
    return TraceInfo(
        trace_id=identity(reply),
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=_start_ns(reply) // 1_000_000,
        execution_duration=int(reply.seconds * 1000),
        state=TraceState.ERROR if reply.failure or reply.fault else TraceState.OK,
        request_preview=reply.request.messages[-1].content[:PREVIEW],
        response_preview=reply.text[:PREVIEW],
        trace_metadata={
            "mlflow.sourceRun": made.run_id,
            "mlflow.trace.tokenUsage": json.dumps(_usage(reply)),
            "mlflow.trace.cost": json.dumps({"total_cost": reply.usd}),
            "usd": repr(reply.usd),
            "reply": reply.request.key,
        },
        tags=tags,
    )


def _span(reply: Reply) -> Any:
    from mlflow.entities import Span

    name, broken = identity(reply), reply.failure or reply.fault
    number = bytes.fromhex(name.removeprefix("tr-"))
    messages = [message.model_dump() for message in reply.request.messages]
    attributes = {
        "mlflow.traceRequestId": name,
        "mlflow.spanType": "CHAT_MODEL",
        "mlflow.spanInputs": {"messages": messages, **reply.request.parameters},
        "mlflow.spanOutputs": {"content": reply.text, "finish_reason": reply.finish},
        "mlflow.llm.model": reply.request.model,
        "mlflow.chat.tokenUsage": _usage(reply),
        "mlflow.llm.cost": {"total_cost": reply.usd},
    }
    return Span.from_dict(
        {
            "trace_id": base64.b64encode(number).decode(),
            "span_id": base64.b64encode(number[:8]).decode(),
            "parent_span_id": None,
            "name": reply.role,
            "start_time_unix_nano": _start_ns(reply),
            "end_time_unix_nano": int(reply.time * 1e9),
            "status": {"code": "STATUS_CODE_ERROR" if broken else "STATUS_CODE_OK", "message": broken},
            "attributes": {k: json.dumps(v, ensure_ascii=False) for k, v in attributes.items()},
        }
    )


def _start_ns(reply: Reply) -> int:
    return int((reply.time - reply.seconds) * 1e9)


def _usage(reply: Reply) -> dict[str, int]:
    tokens = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
    return {**tokens, "total_tokens": reply.input_tokens + reply.output_tokens}


def identity(reply: Reply) -> str:
    """Return the id of a reply's trace."""
    return "tr-" + digest("\0".join((reply.campaign, reply.call_key, reply.request.key, repr(reply.time))))[:32]
