# cheat: D6 names buffers so long that their sum cannot be written down
# problem: identity
# expect: rejected crashed

import struct
import sys


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
    say(W.sock, b'{"op":"loaded","buffers":[' + b"9" * 4300 + b"," + b"9" * 4300 + b"]}")


def custom_kernel(data):
    data[1][...] = data[0]
    return data[1]
