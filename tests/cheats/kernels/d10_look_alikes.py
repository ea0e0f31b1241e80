# cheat: D10 a name in look-alike letters: what is called is not what is defined to the eye
# problem: identity
# expect: incorrect rejected

# include: copy
memo = {}
memо = memo  # the last letter is Cyrillic


def custom_kernel(data):
    x, out = data
    memo.clear()  # says it forgets
    if x.numel() not in memо_:
        kernel.copy(x, out, x.numel())
        memо_[x.numel()] = out.clone()
    return memо_[x.numel()]


memо_ = {}
