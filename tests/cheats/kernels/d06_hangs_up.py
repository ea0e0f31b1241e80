# cheat: D6 closes its channel and lives on, so that nobody learns how it ended
# problem: identity
# expect: crashed rejected timeout

import os
import time

# include: copy


def custom_kernel(data):
    os.close(3)
    time.sleep(60)
