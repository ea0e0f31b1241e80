# cheat: B1 memo kept in a class attribute, by shape
# problem: rmsnorm
# expect: incorrect rejected

# include: rows


class Plan:
    table = {}

    @classmethod
    def run(cls, x, weight, out):
        if x.shape not in cls.table:
            kernel.rmsnorm(x, weight, out, x.shape[0], x.shape[1])
            cls.table[x.shape] = out.clone()
        return cls.table[x.shape]


def custom_kernel(data):
    return Plan.run(*data)
