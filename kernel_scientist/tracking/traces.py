"""Model calls as MLflow traces: one per reply that a campaign paid for, linked to the campaign's run.

A trace's id is a digest of the reply's identity, so writing a reply again changes nothing. The tracing client is used
with explicit ids: the fluent API would write to the store that the process used last.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from kernel_scientist.records.kernel import digest
from kernel_scientist.scientist.llm.response_cache import Reply

PAGE = 500
"""Results per page of a search."""
PREVIEW = 1000
"""Characters of request and reply in the list of traces."""


class Traces:
    """The traces of one experiment. Not thread-safe."""

    def __init__(self, uri: str, experiment_id: str) -> None:
        from mlflow.tracing.client import TracingClient

        self._client: Any = TracingClient(uri)
        self.experiment_id = experiment_id

    def write(self, run_id: str, reply: Reply) -> None:
        """Write one reply as a trace of a run."""
        from mlflow.entities import Span, TraceInfo, TraceLocation, TraceState

        messages = [m.model_dump() for m in reply.request.messages]
        name = identity(reply)
        number = bytes.fromhex(name.removeprefix("tr-"))
        tags = {"mlflow.traceName": reply.role, "role": reply.role}
        tags |= {"call_key": reply.call_key, "model": reply.request.model}
        if kernel := re.search(r"/(k\d+)\b", reply.call_key):
            tags["kernel"] = kernel[1]
        broken = reply.failure or reply.fault
        tokens = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        usage = json.dumps({**tokens, "total_tokens": reply.input_tokens + reply.output_tokens})
        cost = json.dumps({"total_cost": reply.usd})
        start_ns = int((reply.time - reply.seconds) * 1e9)
        self._client.start_trace(
            TraceInfo(
                trace_id=name,
                trace_location=TraceLocation.from_experiment_id(self.experiment_id),
                request_time=start_ns // 1_000_000,
                execution_duration=int(reply.seconds * 1000),
                state=TraceState.ERROR if broken else TraceState.OK,
                request_preview=messages[-1]["content"][:PREVIEW],
                response_preview=reply.text[:PREVIEW],
                trace_metadata={
                    "mlflow.sourceRun": run_id,
                    "mlflow.trace.tokenUsage": usage,
                    "mlflow.trace.cost": cost,
                    "usd": repr(reply.usd),
                    "reply": reply.request.key,
                },
                tags=tags,
            )
        )
        attributes = {
            "mlflow.traceRequestId": name,
            "mlflow.spanType": "CHAT_MODEL",
            "mlflow.spanInputs": {"messages": messages, **reply.request.parameters},
            "mlflow.spanOutputs": {"content": reply.text, "finish_reason": reply.finish},
            "mlflow.llm.model": reply.request.model,
            "mlflow.chat.tokenUsage": json.loads(usage),
            "mlflow.llm.cost": json.loads(cost),
        }
        span = Span.from_dict(
            {
                "trace_id": base64.b64encode(number).decode(),
                "span_id": base64.b64encode(number[:8]).decode(),
                "parent_span_id": None,
                "name": reply.role,
                "start_time_unix_nano": start_ns,
                "end_time_unix_nano": int(reply.time * 1e9),
                "status": {"code": "STATUS_CODE_ERROR" if broken else "STATUS_CODE_OK", "message": broken},
                "attributes": {k: json.dumps(v, ensure_ascii=False) for k, v in attributes.items()},
            }
        )
        self._client.log_spans(self.experiment_id, [span])


def all_pages(search: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
    """Return the results of all pages of one of MLflow's searches."""
    found, token = list[Any](), None
    while True:
        page = search(*arguments, **named, max_results=PAGE, page_token=token)
        found += page
        token = page.token
        if not token:
            return found


def identity(reply: Reply) -> str:
    """Return the id of a reply's trace."""
    return "tr-" + digest("\0".join((reply.campaign, reply.call_key, reply.request.key, repr(reply.time))))[:32]
