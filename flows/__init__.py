"""Prefect flows: the order of the tasks, and how many run at once."""

import logging

from kernel_scientist.records import environment

environment.prepare()  # before Prefect is imported: a Prefect worker imports flows without the command line


class _TimeoutWarnings(logging.Filter):
    """Drop Prefect's warning that a task's timeout cannot interrupt native code in a thread.

    Every kernel runs in a subprocess with its own deadlines, so the tasks' timeouts need not interrupt it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return "but the task is running in a worker thread" not in record.getMessage()


class _ReportedErrors(logging.Filter):
    """Drop Prefect's tracebacks of errors that the command line reports in one sentence, and of Ctrl-C."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not any(name in message for name in ("SetupError", "StoppedError", "KeyboardInterrupt"))


logging.getLogger("prefect.task_runs").addFilter(_TimeoutWarnings())
for _name in ("prefect.task_runs", "prefect.flow_runs"):
    logging.getLogger(_name).addFilter(_ReportedErrors())
