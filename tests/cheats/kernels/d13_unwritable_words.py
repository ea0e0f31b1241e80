# cheat: D13 raises an error whose words no file can hold
# problem: identity
# expect: crashed rejected

# include: copy


def custom_kernel(data):
    raise ValueError("\ud800 is half a character")
