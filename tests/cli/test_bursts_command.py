"""``pyloca bursts``: recordings and frames from the shell."""

import numpy as np
import pytest
from click.testing import CliRunner

from pyloca.bursts import from_spots, open_bursts
from pyloca.cli import cli


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="pyloca")


def write(path, times):
    values = np.cumsum(np.random.RandomState(0).standard_normal((len(times), 2)), axis=0)
    rows = [f"{t},{a},{b},fine" for t, (a, b) in zip(times, values, strict=True)]
    path.write_text("\n".join(["t,p,T,note", *rows]) + "\n")
    return path


def test_a_recording_becomes_bursts(tmp_path):
    table = write(tmp_path / "r.csv", np.arange(1000) / 100)
    done = run("bursts", table, "--time", "t", "--diffusion", 10, "--units", "p=Pa", "-o", tmp_path / "b.npz")
    assert done.exit_code == 0, done.output
    assert "N = 49, M = 20, D = 2" in done.stderr and "lag 1" in done.stderr
    bursts = open_bursts(tmp_path / "b.npz")
    assert bursts.feature_label(0) == "p (Pa)" and abs(bursts.burst_std - 1) < 1e-6


def test_uneven_times_and_clocks_are_refused(tmp_path):
    table = write(tmp_path / "r.csv", [*range(100), *range(105, 900)])
    done = run("bursts", table, "--time", "t", "-o", tmp_path / "b.npz")
    assert done.exit_code == 3 and "row 101" in done.stderr
    done = run("bursts", write(tmp_path / "s.csv", range(900)), "-o", tmp_path / "b.npz")
    assert done.exit_code == 3 and "--time t" in done.stderr
    assert run("bursts", table, "--eps", "2", "-o", tmp_path / "b.npz").exit_code == 2


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--window", "abc"], 2, "expected 'auto' or an integer of at least 2; got 'abc'"),
        (["--window", "5000"], 3, "a window of 5000 steps needs 5001"),
        (["--window", "auto", "--time", "clock"], 3, "there is no column 'clock'"),
        (["-o", "b.txt"], 2, "expected a .npz or .npy or .csv or .parquet or .zarr file"),
    ],
)
def test_wrong_options_of_a_recording(options, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "r.csv", np.arange(1000) / 100)
    done = run("bursts", "r.csv", "--time", "t", "-o", "b.npz", *options)
    assert done.exit_code == code and message in done.stderr, done.output
    assert not (tmp_path / "b.npz").exists()


# -- frames of a camera, one flash in each ------------------------------------------------------------------------


def flashes(n=6, shape=(40, 50)):
    """Frames (n, h, w) of 8 bits, each with a spot of its own place and shape."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    places = np.random.RandomState(0).uniform(15, 25, size=(n, 2))
    spots = [np.exp(-(((x - a) / (2 + 0.1 * i)) ** 2 + ((y - b) / 3) ** 2) / 2) for i, (a, b) in enumerate(places)]
    return np.rint(20 + 200 * np.array(spots)).astype(np.uint8)


@pytest.fixture
def frames(tmp_path, monkeypatch):
    """A folder with the same frames as pictures, as pages of one picture, and as arrays; and a few that are bad."""
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    stack = flashes()
    pictures = [image.fromarray(frame) for frame in stack]
    for i, picture in enumerate(pictures):
        picture.save(f"flash{i}.png")
    pictures[0].save("pages.gif", save_all=True, append_images=pictures[1:])
    image.fromarray(np.full((40, 50), 20, np.uint8)).save("dark.png")
    image.fromarray(stack[0][:30]).save("cropped.png")
    image.fromarray(np.stack([stack[0], stack[0] // 2, stack[0] // 2], axis=2)).save("colour.png")
    (tmp_path / "words.png").write_text("no picture")
    np.save("stack.npy", stack)
    np.savez("stack.npz", frames=stack, times=np.arange(6))
    np.savez("two.npz", a=stack, b=stack)
    return stack


@pytest.mark.parametrize("data", [[f"flash{i}.png" for i in range(6)], ["pages.gif"], ["stack.npy"], ["stack.npz"]])
def test_frames_become_bursts(data, frames):
    done = run("bursts", *data, "--flashes", "--pixel-size", 0.5, "-o", "b.npz")
    assert done.exit_code == 0, done.output
    made, expected = open_bursts("b.npz"), from_spots(frames, pixel_size=0.5)
    np.testing.assert_allclose(made.to_array(), expected.to_array(), atol=1e-9)
    np.testing.assert_allclose(made.effective_counts, expected.effective_counts, rtol=1e-9)
    assert made.ids.tolist() == ([f"flash{i}" for i in range(6)] if len(data) > 1 else list(range(6)))


def test_colours_are_averaged_and_bad_frames_dropped_by_name(frames):
    done = run("bursts", "colour.png", "dark.png", "flash1.png", "--flashes", "--on-bad", "drop", "-o", "b.npz")
    assert done.exit_code == 0 and "1 without a spot (frame 'dark')" in done.stderr
    assert open_bursts("b.npz").ids.tolist() == ["colour", "flash1"]
    np.testing.assert_allclose(open_bursts("b.npz")[0], from_spots(frames[:1])[0], atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["flash0.png", "dark.png", "--flashes"], 3, "without a spot (frame 'dark'). Remove them, or drop them"),
        (["flash0.png", "cropped.png", "--flashes"], 3, "frame 1 has shape (30, 50), the first one (40, 50)"),
        (["flash0.png", "pages.gif", "--flashes"], 3, "pages.gif: has 6 pages; of several files"),
        (["flash0.png", "words.png", "--flashes"], 3, "words.png: not a readable picture"),
        (["lost.png", "flash0.png", "--flashes"], 3, "lost.png: there is no such file"),
        (["lost.npy", "--flashes"], 3, "lost.npy: there is no such file"),
        (["words.npy", "--flashes"], 3, "words.npy: not a readable file of numbers"),
        (["two.npz", "--flashes"], 3, "holds a, b; expected one array, or one called frames"),
        (["stack.npy", "stack.npz", "--flashes"], 3, "expected one, since an array holds all frames"),
        (["r.csv", "--flashes"], 2, "r.csv: frames are pictures"),
        (["stack.npy"], 2, "Frames with one bright spot each need --flashes"),
        (["stack.npy", "--flashes", "--window", "9"], 2, "--window is not an option for a frame"),
        (["stack.npy", "--flashes", "--threshold", "0.5"], 2, "--threshold is not an option for a frame"),
        (["stack.npy", "--flashes", "--pixel-size", "-1"], 2, "pixel_size must be a number > 0"),
        (["flash0.png", "--threshold", "0.5", "--on-bad", "drop"], 2, "--on-bad is not an option for a picture"),
        (["flash0.png", "flash1.png"], 2, "2 files were given; expected one photograph of spots"),
        (["pages.gif"], 2, "a picture needs --threshold"),
    ],
)
def test_wrong_frames(arguments, code, message, frames, tmp_path):
    (tmp_path / "words.npy").write_text("no array")
    done = run("bursts", *arguments, "-o", "b.npz")
    assert done.exit_code == code and message in done.stderr, done.output
    assert not (tmp_path / "b.npz").exists()
