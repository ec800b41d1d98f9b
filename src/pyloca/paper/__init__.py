"""The paper's experiments, `pyloca reproduce` and `pyloca demo`.

Nothing else in the library depends on this package.
"""

__all__: list[str] = []
