"""``python -m pypoplar.poprun``: the `poprun` command."""

from pypoplar.poprun.command import main

if __name__ == "__main__":
    main()
