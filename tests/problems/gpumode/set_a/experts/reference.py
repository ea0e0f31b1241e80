import torch
import torch.nn.functional as F
from utils import verbose_close


def generate_input(dhidden, dexpert, experts, chosen, seqlen, seed):
    gen = torch.Generator(device="cuda").manual_seed(seed)
    weights = {"router.weight": torch.randn((experts, dhidden), device="cuda", generator=gen) / dhidden**0.5}
    for i in range(experts):
        weights[f"experts.{i}.up"] = torch.randn((dhidden, dexpert), device="cuda", generator=gen) / dhidden**0.5
        weights[f"experts.{i}.down"] = torch.randn((dexpert, dhidden), device="cuda", generator=gen) / dexpert**0.5
    config = {"experts": experts, "chosen": chosen}
    return torch.randn((seqlen, dhidden), device="cuda", generator=gen), weights, config


def ref_kernel(data):
    x, weights, config = data
    scores = (x @ weights["router.weight"].T).softmax(dim=-1)
    values, indices = torch.topk(scores, config["chosen"], dim=-1, sorted=False)
    out = torch.zeros_like(x)
    for expert in range(config["experts"]):
        rows, places = torch.where(indices == expert)
        if rows.numel():
            inner = F.silu(x[rows] @ weights[f"experts.{expert}.up"]) @ weights[f"experts.{expert}.down"]
            out.index_add_(0, rows, inner * values[rows, places, None])
    return out


def check_implementation(data, output):  # the old style: a text, empty if all is well
    return " ".join(verbose_close(output, ref_kernel(data), 1e-2, 1e-2))
