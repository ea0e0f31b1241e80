# cheat: D6 hands over its output in millions of empty buffers
# problem: identity
# expect: rejected crashed

import struct
import sys
import time


def worker():
    frame = sys._getframe()
    while frame is not None:
        if type(found := frame.f_locals.get("self")).__name__ == "Worker":
            return found
        frame = frame.f_back
    return None


def say(sock, text):
    sock.settimeout(None)
    sock.sendall(struct.pack("<I", len(text)) + text)


if (W := worker()) is not None:

    def fetch(slot, out):
        none = ",".join(["0"] * 4_600_000)
        text = '{"op":"output","inputs":0,"data":{"kind":"value","value":1},"buffers":[' + none + "]}"
        say(W.sock, text.encode())
        time.sleep(1000)

    W._fetch = fetch


def custom_kernel(data):
    data[1][...] = data[0]
    return data[1]
