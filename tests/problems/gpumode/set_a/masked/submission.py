from task import input_t, output_t

import torch


def custom_kernel(data: input_t) -> output_t:
    x, mask = data
    return torch.where(mask[:, None], torch.tanh(x), -x)
