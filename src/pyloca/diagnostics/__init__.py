"""Whether to trust a fit: its checks on other bursts, error bars, and a null test."""

from pyloca.diagnostics._agreement import Agreement, agreement
from pyloca.diagnostics._diagnose import diagnose
from pyloca.diagnostics._null import ShuffleTest, shuffle_test
from pyloca.findings import Diagnostics, Finding

__all__ = ["Agreement", "Diagnostics", "Finding", "ShuffleTest", "agreement", "diagnose", "shuffle_test"]
