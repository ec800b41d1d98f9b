"""``python -m pyloca`` is the command ``pyloca``."""

from pyloca._signals import heed

__all__ = ["main"]


def main() -> None:
    """Entry point of the console script."""
    heed()  # before the imports, which take a while
    from pyloca.cli import main

    main()


if __name__ == "__main__":
    main()
