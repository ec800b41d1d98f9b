"""Raw measurements: the container that every other floor reads, where bursts come from, and files."""

from pyloca.bursts._container import Bursts
from pyloca.bursts._dynamics import from_simulator, from_time_series
from pyloca.bursts._experiments import from_function, on_manifold, sensor_array
from pyloca.bursts._files import as_bursts, open_bursts, save_bursts
from pyloca.bursts._images import from_image, from_image_patches
from pyloca.bursts._points import from_neighbors, from_table
from pyloca.bursts._split import split_indices

__all__ = [
    "Bursts",
    "as_bursts",
    "from_function",
    "from_image",
    "from_image_patches",
    "from_neighbors",
    "from_simulator",
    "from_table",
    "from_time_series",
    "on_manifold",
    "open_bursts",
    "save_bursts",
    "sensor_array",
    "split_indices",
]
