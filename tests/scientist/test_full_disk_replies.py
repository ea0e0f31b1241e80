"""A full disk while replies are paid for: none is paid for twice, and the campaign waits for room."""

from pathlib import Path

from tests.small_disk import on_a_disk_of

ASK = """
import logging, sys, threading, time
from pathlib import Path
from kernel_scientist.records import disk, patience
from kernel_scientist.records.params import Budget
from kernel_scientist.scientist.llm.client import MOST_TIMES
from kernel_scientist.scientist.llm.parsing import ReplyError
from tests.scientist.model_server import Response, serving
from tests.scientist.test_llm_client import ask, in_order, make_client
from tests.small_disk import fill

TIMEOUT_S, USD = 4, 1.0
folder, told = Path(sys.argv[1]), threading.Event()


class Told(logging.Handler):
    def emit(self, record):
        told.set()


patience.progress.addHandler(Told())
disk.POLL_S = 0.1


def full():
    fill(folder / "filling")
    told.clear()
    threading.Thread(target=empty).start()


def empty():
    told.wait()
    with client.budget.call(USD - client.budget.usd - 1e-9, 1):
        print("its cost is booked, and nothing else is reserved")
    if not parsed:
        time.sleep(MOST_TIMES * TIMEOUT_S + 1)
    (folder / "filling").unlink()


def parse(reply):
    parsed.append(reply.text)
    if len(parsed) == 1:
        full()
        raise ReplyError("it is bad")
    return reply.text


parsed = []
with serving(in_order(Response("loads litellm"), Response("first"), Response("second"))) as server:
    client = make_client(server, folder / "replies", Budget(usd=USD), timeout_s=TIMEOUT_S)
    ask(client, "write/k00001", sample=1)
    full()
    ask(client, "write/k00002", parse=parse)
    print(len(server.requests), parsed, [(reply.text, reply.fault) for reply in client.cache.paid_by("c1")])
"""


def test_a_reply_that_waits_for_room_is_not_asked_for_again(tmp_path: Path) -> None:
    done = on_a_disk_of("9m", tmp_path / "disk", "-c", ASK, str(tmp_path / "disk"))
    assert done.returncode == 0, done.stderr
    *booked, result = done.stdout.splitlines()
    replies = [("loads litellm", ""), ("first", "it is bad"), ("second", "")]
    assert result == f"3 {['first', 'second']} {replies}"
    assert booked == ["its cost is booked, and nothing else is reserved"] * 2
