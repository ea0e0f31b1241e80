"""A full disk is waited for; room for the first file is said to be there, or not."""

import errno
import re
import threading
from pathlib import Path

import pytest

from kernel_scientist.records import disk
from kernel_scientist.records.errors import InfrastructureError, StoppedError
from tests.small_disk import on_a_disk_of

KEEP = """
import logging, sys, threading
from functools import partial
from pathlib import Path
from kernel_scientist.records import disk, patience
from kernel_scientist.scientist.llm.response_cache import LlmRequest, Reply, ResponseCache
from tests.small_disk import fill

folder, stopped, told = Path(sys.argv[1]), threading.Event(), threading.Event()
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.WARNING)


class Told(logging.Handler):
    def emit(self, record):
        told.set()


patience.progress.addHandler(Told())
disk.POLL_S = 0.1
cache = ResponseCache(folder / "replies")
fill(folder / "filling")
threading.Thread(target=lambda: (told.wait(), (folder / "filling").unlink())).start()
request = LlmRequest(model="m", messages=(), parameters={}, sample=0)
words = " ".join(f"{number:x}" for number in range(20000))
reply = Reply(request=request, text=words, role="writer", call_key="write/k00001/0", campaign="c")
disk.insist(partial(cache.add, reply), folder, stopped)
print(cache.get(request.key).text == words)
told.clear()
disk.await_room(folder, stopped)
print(disk.free_bytes(folder / "not" / "there") > disk.LEAST_BYTES)
"""


def test_a_paid_reply_is_kept_although_the_disk_was_full(tmp_path: Path) -> None:
    done = on_a_disk_of("9m", tmp_path, "-c", KEEP, str(tmp_path))
    assert done.returncode == 0, done.stderr
    waiting, again, kept, free = done.stdout.splitlines()
    assert re.fullmatch(
        rf"waiting since \S+, until \S+, for room on the disk: 0 MB are free for {tmp_path}", waiting
    ), done.stdout
    assert again.startswith("there is room on the disk again, after ") and (kept, free) == ("True", "True")


def test_waiting_for_room_ends(tmp_path: Path) -> None:
    stopped = threading.Event()

    def full() -> None:
        try:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        except OSError as error:
            raise ValueError("not written") from error

    with pytest.raises(InfrastructureError, match=r"the disk was full for .* min \(.* MB are free for .*\).*--resume"):
        disk.insist(full, tmp_path, stopped, wait_s=-1)
    stopped.set()
    with pytest.raises(StoppedError):
        disk.insist(full, tmp_path, stopped)

    def refused() -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(PermissionError):
        disk.insist(refused, tmp_path, threading.Event())
