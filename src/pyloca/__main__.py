"""``python -m pyloca`` is the command ``pyloca``."""

from pyloca.cli import main

if __name__ == "__main__":
    main()
