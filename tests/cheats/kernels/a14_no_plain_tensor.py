# variant: a14_meta | A14 a tensor without memory | data[1].to("meta")
# variant: a14_numpy_array | A14 a NumPy view of the input instead of a tensor | data[0].numpy()
# variant: a14_sparse | A14 a sparse tensor that compares equal | data[0].to_sparse()
# problem: identity
# expect: incorrect rejected crashed

def custom_kernel(data):
    return $VARIANT
