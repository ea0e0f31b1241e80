"""`python -m kernel_scientist` is the command line."""

from kernel_scientist.cli import main

if __name__ == "__main__":
    main()
