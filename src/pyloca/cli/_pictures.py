"""Pictures in files: a photograph of spots, or frames of a camera, one flash in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca.cli._data import read_array
from pyloca.cli._main import require
from pyloca.errors import BurstError

__all__ = ["Frames", "is_stack", "read_frames", "read_picture"]

Array = NDArray[np.float64]
ARRAYS = (".npy", ".npz")
STACK = "frames"  # the array of a .npz file that has several


class Frames(NamedTuple):
    """What files of frames hold.

    Attributes
    ----------
    frames : iterable of (height, width) arrays
        Read one by one.
    ids : list of str, optional
        Names of the files; None where the frames of one file are numbered.
    """

    frames: Iterable[NDArray[Any]]
    ids: list[str] | None


def read_picture(data: str) -> Array:
    """Read grey values from 0 to 1 from a picture, or as they are from a .npy file."""
    if Path(data).suffix.lower() == ".npy":
        return read_array(data)
    require("matplotlib", "report")
    from matplotlib.image import imread

    try:
        pixels = np.asarray(imread(data))
    except FileNotFoundError:
        raise BurstError(f"{data}: there is no such file.") from None
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for a damaged file
        raise BurstError(f"{data}: not a readable picture ({error}).") from error
    picture = pixels / 255.0 if pixels.dtype == np.uint8 else pixels.astype(float)
    return picture[..., :3].mean(axis=-1) if picture.ndim == 3 else picture  # a fourth channel is transparency


def read_frames(data: tuple[str, ...]) -> Frames:
    """Open frames: a picture per frame, a picture with many pages, or an array (N, height, width)."""
    suffixes = {Path(path).suffix.lower() for path in data}
    if suffixes & set(ARRAYS):
        if len(data) > 1:
            raise BurstError(f"{len(data)} files were given; expected one, since an array holds all frames.")
        return Frames(_read_stack(data[0]), None)
    if len(data) == 1:
        return Frames(_pages(data), None)
    stems = [Path(path).stem for path in data]
    return Frames(_pages(data, single=True), stems if len(set(stems)) == len(stems) else list(data))


def is_stack(path: str) -> bool:
    """Whether a .npy file has three axes; others are not opened, and bad ones are refused elsewhere."""
    if Path(path).suffix.lower() != ".npy":
        return False
    try:
        return bool(np.load(path, mmap_mode="r", allow_pickle=False).ndim == 3)
    except (OSError, ValueError, EOFError):
        return False


def _read_stack(path: str) -> NDArray[Any]:
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            names = loaded.files
            name = STACK if STACK in names else names[0] if len(names) == 1 else None
            if name is None:
                raise BurstError(f"{path}: holds {', '.join(names)}; expected one array, or one called {STACK}.")
            return np.asarray(loaded[name])
    except FileNotFoundError:
        raise BurstError(f"{path}: there is no such file.") from None
    except BurstError:
        raise
    except (OSError, ValueError, EOFError) as error:  # ValueError: Python objects; EOFError: an empty file
        raise BurstError(
            f"{path}: not a readable file of numbers; it is truncated, or holds Python objects."
        ) from error


def _pages(data: tuple[str, ...], *, single: bool = False) -> Iterator[NDArray[Any]]:
    """Yield the frames of pictures; `single`: one per file, as their names promise."""
    for path in data:
        with _opened(path) as picture:
            pages = getattr(picture, "n_frames", 1)
            if single and pages > 1:
                raise BurstError(f"{path}: has {pages} pages; of several files, each must hold one frame.")
            for page in range(pages):
                picture.seek(page)
                yield _grey(picture)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    require("PIL", "report")
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            yield picture
    except FileNotFoundError:
        raise BurstError(f"{path}: there is no such file.") from None
    except (UnidentifiedImageError, OSError, SyntaxError) as error:  # what Pillow raises for a damaged file
        raise BurstError(f"{path}: not a readable picture ({error}).") from error


def _grey(picture: Any) -> NDArray[Any]:
    """Return the page as (height, width); colours are averaged, a fourth channel is transparency."""
    if picture.mode in ("1", "P", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
        picture = picture.convert("RGB")
    pixels = np.asarray(picture)
    if pixels.ndim == 2:
        return pixels
    colours = pixels[..., : 1 if picture.mode == "LA" else 3]
    # Grey that was stored as colours stays integer: its rounding is noise that `from_spots` knows of.
    return colours[..., 0] if (colours == colours[..., :1]).all() else colours.mean(axis=-1)
