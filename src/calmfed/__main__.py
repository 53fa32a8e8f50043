"""``python -m calmfed``."""

from calmfed.cli.main import main

if __name__ == "__main__":
    main()
