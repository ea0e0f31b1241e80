"""What runs: in which order, how many at once. Prefect flows over `tasks`."""

import logging

from kernel_scientist.records import environment

environment.prepare()  # before Prefect is imported: a worker enters here, not through our command line


class _KnownTimeouts(logging.Filter):
    """Drop Prefect's warning that a task's timeout cannot interrupt native code in a thread.

    True, and known: every kernel runs in a subprocess with deadlines of its own. The tasks' timeouts are the backstop.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return "but the task is running in a worker thread" not in record.getMessage()


class _UsersMistakes(logging.Filter):
    """Drop Prefect's tracebacks of what the command line says in one sentence, and of Ctrl-C."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return not any(name in message for name in ("SetupError", "StoppedError", "KeyboardInterrupt"))


logging.getLogger("prefect.task_runs").addFilter(_KnownTimeouts())
for _name in ("prefect.task_runs", "prefect.flow_runs"):
    logging.getLogger(_name).addFilter(_UsersMistakes())
