# cheat: D10 a memo by pointer, every telling name put together at run time
# problem: identity
# expect: incorrect rejected

# include: copy
store = globals().setdefault("me" + "mo", {})


def custom_kernel(data):
    x, out = data
    key = getattr(x, "da" + "ta_" + "ptr")(), x.numel()
    if key not in store:
        getattr(kernel, "co" + "py")(x, out, x.numel())
        store[key] = getattr(out, "cl" + "one")()
    return store[key]
