"""Raw measurements: the container that every other floor reads, where bursts come from, and files."""

from pyloca.bursts._container import Bursts
from pyloca.bursts._csv import Table, read_table, table_text
from pyloca.bursts._images import from_image, from_image_patches
from pyloca.bursts._instruments import from_function, on_manifold, sensor_array
from pyloca.bursts._labelled import from_xarray
from pyloca.bursts._lazy import along_rows
from pyloca.bursts._missing import MissingCells, count_missing, drop_missing
from pyloca.bursts._neighbors import from_neighbors
from pyloca.bursts._pass import Keep, map_parts
from pyloca.bursts._positions import from_positions
from pyloca.bursts._recordings import from_time_series
from pyloca.bursts._simulator import from_simulator
from pyloca.bursts._split import split_indices
from pyloca.bursts._spots import from_spots
from pyloca.bursts._storage import as_bursts, column_names, open_bursts, save_bursts
from pyloca.bursts._table_files import read_csv, read_parquet
from pyloca.bursts._tables import BURST_ID, from_table
from pyloca.bursts._zarr import create_array, replace_folder

__all__ = [
    "BURST_ID",
    "Bursts",
    "Keep",
    "MissingCells",
    "Table",
    "along_rows",
    "as_bursts",
    "column_names",
    "count_missing",
    "create_array",
    "drop_missing",
    "from_function",
    "from_image",
    "from_image_patches",
    "from_neighbors",
    "from_positions",
    "from_simulator",
    "from_spots",
    "from_table",
    "from_time_series",
    "from_xarray",
    "map_parts",
    "on_manifold",
    "open_bursts",
    "read_csv",
    "read_parquet",
    "read_table",
    "replace_folder",
    "save_bursts",
    "sensor_array",
    "split_indices",
    "table_text",
]
