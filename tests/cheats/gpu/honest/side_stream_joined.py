# honest: half of the work is on a side stream, which waits for the default one and is waited for
# problem: rmsnorm
# expect: ok

import torch
# include: triton_rows


streams = []


def custom_kernel(data):
    x, weight, out = data
    if not streams:
        streams.append(torch.cuda.Stream())
    half, main = x.shape[0] // 2, torch.cuda.current_stream()
    streams[0].wait_stream(main)
    with torch.cuda.stream(streams[0]):
        rows(x[half:], weight, out[half:])
    if half:
        rows(x[:half], weight, out[:half])
    main.wait_stream(streams[0])
    return out
