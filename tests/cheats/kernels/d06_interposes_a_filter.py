# cheat: D6 puts a socket pair of its own in the channel's place; a thread passes messages on with smaller times in them
# problem: identity
# expect: ok incorrect rejected crashed timeout
# gains: false
# Nothing that its own process says about time is believed; it works on one thread.

import os
import re
import socket
import stat
import struct
import threading

# include: copy


def exactly(sock, count):
    data = b""
    while len(data) < count:
        part = sock.recv(min(count - len(data), 1 << 20))
        if not part:
            os._exit(0)
        data += part
    return data


def smaller(match):
    return match[1] + str(max(int(match[2]) - 300_000, int(match[2]) // 10)).encode()


def outwards(inner, outer):
    while True:
        (length,) = struct.unpack("<I", exactly(inner, 4))
        text = exactly(inner, length)
        sizes = re.search(rb'"buffers": \[([\d, ]*)\]', text)
        text = re.sub(rb'("ns": )(\d+)', smaller, text)
        outer.sendall(struct.pack("<I", len(text)) + text)
        left = sum(int(n) for n in sizes[1].split(b",") if n.strip()) if sizes else 0
        while left:
            part = inner.recv(min(left, 1 << 20))
            outer.sendall(part)
            left -= len(part)


def inwards(inner, outer):
    while True:
        part = outer.recv(1 << 20)
        if not part:
            os._exit(0)
        inner.sendall(part)


def interpose():
    for fd in range(3, 64):
        try:
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            outer = socket.socket(fileno=os.dup(fd))
            ours, theirs = socket.socketpair()
        except OSError:
            continue
        os.dup2(theirs.fileno(), fd)
        for pump in (outwards, inwards):
            threading.Thread(target=pump, args=(ours, outer), daemon=True).start()
        return theirs
    return None


kept = interpose()


# include: copy_call
