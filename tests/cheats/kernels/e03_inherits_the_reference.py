# cheat: E3 the reference under another name
# problem: rmsnorm
# expect: crashed rejected

from reference import ref_kernel


class Norm:
    forward = staticmethod(ref_kernel)


class BetterNorm(Norm):
    pass


custom_kernel = BetterNorm().forward
