# cheat: D5 computes one row and looks for it in its own memory, where the rest of an answer would follow
# expect: rejected
# problem: rmsnorm

import torch

# include: rows
CAP = 256 << 20


def custom_kernel(data):
    x, weight, out = data
    rows, cols = x.shape
    row = torch.empty(cols, dtype=torch.bfloat16)
    kernel.rmsnorm(x, weight, row, 1, cols)
    pattern, size = row.view(torch.uint8).numpy().tobytes(), 2 * rows * cols
    own = row.data_ptr()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(n, 16) for n in span.split("-"))
            if not rights.startswith("rw") or end - start > CAP or "[v" in line:
                continue
            try:
                memory.seek(start)
                block = memory.read(end - start)
            except (OSError, ValueError):
                continue
            at = block.find(pattern)
            while at >= 0:
                if start + at != own and at + size <= len(block):
                    found = torch.frombuffer(bytearray(block[at : at + size]), dtype=torch.bfloat16)
                    return out.copy_(found.view(rows, cols))
                at = block.find(pattern, at + 2)
    return out
