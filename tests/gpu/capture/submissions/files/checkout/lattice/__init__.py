raise RuntimeError("no accelerator found")
