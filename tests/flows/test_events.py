"""Events on a Prefect server: what they announce has happened, so one that cannot be sent ends nothing."""

import logging
from typing import Any

import pytest

from flows import events


def test_an_event_that_cannot_be_sent_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise RuntimeError("the events worker has stopped")

    monkeypatch.setattr(events, "emit_event", refused)
    with caplog.at_level(logging.WARNING, "kernel_scientist.progress"):
        events.emit(events.NEW, "identity", "cpp", "cpu", reason="promoted")
    assert "could not be sent to Prefect: the events worker has stopped" in caplog.text
