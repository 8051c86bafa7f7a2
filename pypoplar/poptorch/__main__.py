"""``python -m pypoplar.poptorch SCRIPT`` runs a program that was written for PopTorch."""

import sys

from pypoplar.poptorch.script_runner import main

if __name__ == "__main__":
    main(sys.argv[1:])
