import torch


def custom_kernel(data):
    x, parameters, (features, outputs, scale) = data
    return torch.relu(torch.nn.functional.linear(x, parameters["linear.weight"], parameters["linear.bias"])) * scale
