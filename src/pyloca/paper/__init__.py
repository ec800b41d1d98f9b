"""The paper kit, above everything else: its experiments, `pyloca reproduce` and `pyloca demo`."""

__all__: list[str] = []
