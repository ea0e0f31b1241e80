# cheat: D13 fills the file system that all workers write to when it is imported
# problem: identity
# expect: ok rejected crashed timeout
# gains: false
# Others still find room, or it fails itself; it copies on both threads like honest work.

import os

# include: copy_on_all_threads

megabyte = bytes(1 << 20)
try:
    for i in range(400):
        with open(f"filler{i}", "wb") as file:
            for _ in range(4):
                file.write(megabyte)
except OSError:
    pass


# include: copy_call
