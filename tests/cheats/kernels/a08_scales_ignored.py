# cheat: A8 the quantised task computed with every scale taken as one
# problem: fp8-blockwise-gemm
# expect: incorrect rejected

def custom_kernel(data):
    a, b, _, _, c = data
    return c.copy_(a.float() @ b.float().T)
