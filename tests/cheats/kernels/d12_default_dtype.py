# cheat: D12 leaves torch with another default type and device for whoever makes tensors next
# problem: identity
# expect: ok incorrect rejected crashed
# gains: false
# Inputs, expected outputs and other contestants live in other processes; it works on one thread.

import torch

# include: copy
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")


# include: copy_call
