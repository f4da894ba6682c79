"""Run the command line as `python -m labelclean`."""

from labelclean.cli import main

if __name__ == "__main__":
    main()
