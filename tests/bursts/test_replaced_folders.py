"""Zarr folders are replaced whole, one writer at a time, also after a writer was killed."""

from pathlib import Path

import pytest

from helpers import planar_bursts
from pyloca.bursts import Bursts, open_bursts, replace_folder, save_bursts


def test_a_folder_that_a_killed_writer_moved_away_comes_back(tmp_path):
    path, work = tmp_path / "b.zarr", tmp_path / ".b.zarr.writing"
    save_bursts(Bursts(planar_bursts(20, 8)[1]), path)
    work.mkdir()
    path.rename(work / "old")  # killed here
    (work / "new").mkdir()

    def fail(_):
        assert path.is_dir()  # before anything is written
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        replace_folder(path, fail)
    assert len(open_bursts(path)) == 20 and [one.name for one in tmp_path.iterdir()] == ["b.zarr"]


def test_one_writer_at_a_time(tmp_path):
    def write(folder):
        folder.mkdir()
        with pytest.raises(BlockingIOError, match=r"x\.zarr: another process is writing it"):
            replace_folder(tmp_path / "x.zarr", Path.mkdir)

    assert replace_folder(tmp_path / "x.zarr", write).is_dir()
    assert [one.name for one in tmp_path.iterdir()] == ["x.zarr"]
