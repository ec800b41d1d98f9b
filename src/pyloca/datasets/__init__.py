"""The paper's data sets, each drawn anew by a seed: latents X, anchors Y, bursts, and the test sets of the paper."""

from pyloca.datasets._dataset import Dataset, TestSet
from pyloca.datasets._mushroom import frame, mushroom
from pyloca.datasets._sphere import sphere
from pyloca.datasets._wifi import wifi

__all__ = ["Dataset", "TestSet", "frame", "mushroom", "sphere", "wifi"]
