# honest: decoded panels of both operands in workspaces kept by shape, decoded anew in each call
# problem: fp8-blockwise-gemm
# expect: ok

# include: gemm
