# honest: the shortest honest kernel: one pass into the given buffer, which it returns
# problem: identity
# expect: ok

# include: copy_on_all_threads


# include: copy_call
