# cheat: D10 the memo stands in this file's comments and is read from there
# problem: identity
# expect: incorrect rejected

# include: copy
# > memo = {}
# > def custom_kernel(data):
# >     x, out = data
# >     if x.numel() not in memo:
# >         kernel.copy(x, out, x.numel())
# >         memo[x.numel()] = out.clone()
# >     return memo[x.numel()]
with open(__file__) as file:
    exec("".join(line[4:] for line in file if line.startswith("# > ")))
