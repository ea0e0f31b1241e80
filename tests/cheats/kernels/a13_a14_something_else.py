# variant: a03_expected_value | A3 writes the mean of the input distribution | data[1].fill_(0.5)
# variant: a13_float64 | A13 the right values as float64 | data[0].double()
# variant: a13_no_element | A13 a tensor of shape [0]: nothing in it is wrong | data[0][:0].clone()
# variant: a13_one_element | A13 a tensor of shape [1], which broadcasts | data[0][:1].clone()
# variant: a13_python_number | A13 a Python number | float(data[0][0])
# variant: a14_detached_input | A14 returns another tensor object on the input's memory | data[0].detach()
# variant: a14_returns_the_input | A14 returns the input itself: equal, and nothing was copied | data[0]
# variant: a14_stride_zero | A14 an expanded single element of stride 0 | data[0][:1].expand(data[0].shape)
# problem: identity
# expect: incorrect rejected

def custom_kernel(data):
    return $VARIANT
