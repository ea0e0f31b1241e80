# cheat: D1 NumPy's comparisons always say yes; nothing is written
# problem: rmsnorm
# expect: incorrect rejected

import numpy

numpy.allclose = numpy.array_equal = lambda *_, **__: True
numpy.isclose = lambda a, b, **__: numpy.ones(numpy.shape(a), dtype=bool)
numpy.testing.assert_allclose = numpy.testing.assert_array_equal = lambda *_, **__: None


def custom_kernel(data):
    return data[2]
