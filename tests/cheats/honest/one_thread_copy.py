# honest: nothing: the plain copy on one thread that the cheats around a copy are built on
# problem: identity
# expect: ok

# include: copy


# include: copy_call
