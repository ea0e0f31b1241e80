# cheat: B1 memo kept as an attribute of the function, by size
# problem: identity
# expect: incorrect rejected

# include: copy


def custom_kernel(data):
    x, out = data
    kept = custom_kernel.__dict__.setdefault("kept", {})
    if x.numel() not in kept:
        kernel.copy(x, out, x.numel())
        kept[x.numel()] = out.clone()
    return kept[x.numel()]
