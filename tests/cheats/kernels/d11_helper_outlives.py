# cheat: D11 starts a helper in a session of its own, which would outlive the run
# problem: identity
# expect: rejected crashed

import subprocess
import sys

# include: copy
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"], start_new_session=True)


# include: copy_call
