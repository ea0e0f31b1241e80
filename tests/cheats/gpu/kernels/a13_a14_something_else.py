# variant: a13_float64 | A13 the right values as float64 | data[0].double()
# variant: a14_returns_the_input | A14 returns its input | data[0]
# variant: a14_stride_zero | A14 an expanded single element of stride 0 | data[0][:1].expand(data[0].shape)
# problem: identity
# expect: incorrect rejected
# stopped by: the output's type, strides and memory are checked

def custom_kernel(data):
    return $VARIANT
