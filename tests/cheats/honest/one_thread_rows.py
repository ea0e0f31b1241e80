# honest: nothing: the plain rows on one thread that the cheats around rmsnorm are built on
# problem: rmsnorm
# expect: ok

# include: rows


# include: rows_call
