"""Large data from the shell: Zarr, `pyloca statistics`, workers of Dask."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

from helpers import HANG, planar_bursts
from pyloca.bursts import Bursts, open_bursts, save_bursts
from pyloca.cli import _cluster, cli
from pyloca.geometry import read_statistics

FIT = ("--hidden-layers", "8", "--max-iter", "40", "-q")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def folder(tmp_path):
    bursts = Bursts(planar_bursts(200, 12)[1], ids=[f"r{i}" for i in range(200)], burst_std=0.01)
    save_bursts(bursts, tmp_path / "b.zarr")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="pyloca")


def test_from_a_store_by_statistics_to_a_model(folder):
    done = run("statistics", folder / "b.zarr", "-o", folder / "s.zarr", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["intrinsic_dim"] == 2
    assert "200 bursts of 3 features, k = 2 directions each." in done.stderr
    assert len(read_statistics(folder / "s.zarr")) == 200
    for source, name in (("b.zarr", "raw"), ("s.zarr", "statistics")):
        done = run(
            "fit", folder / source, *FIT, "-o", folder / f"{name}.safetensors", "--embedding", folder / f"{name}.csv"
        )
        assert done.exit_code == 4, done.output  # 40 iterations are too few
    assert (folder / "raw.csv").read_text().startswith("burst_id,z0,z1\nr0,")
    assert (folder / "statistics.csv").read_text().startswith("burst_id,z0,z1\nr0,")
    done = run("transform", folder / "raw.safetensors", folder / "b.zarr", "-o", folder / "again.csv")
    assert done.exit_code == 0, done.output
    assert (folder / "again.csv").read_text() == (folder / "raw.csv").read_text()


def test_statistics_know_the_column_that_names_the_bursts(folder):
    data = planar_bursts(60, 8)[1]
    rows = [f"s{i},{','.join(map(str, point))}" for i, burst in enumerate(data) for point in burst]
    (folder / "t.csv").write_text("state,p,q,r\n" + "\n".join(rows) + "\n")
    assert run("statistics", folder / "t.csv", "--burst-id", "state", "-o", folder / "t.zarr").exit_code == 0
    model = folder / "m.safetensors"
    done = run("fit", folder / "t.zarr", *FIT, "-o", model, "--embedding", folder / "z.csv")
    assert done.exit_code == 4, done.output
    assert (folder / "z.csv").read_text().startswith("state,z0,z1\ns0,")
    done = run("transform", model, folder / "t.csv", "--bursts")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("state,z0,z1\ns0,")


def test_noise_is_not_given_twice(folder):
    assert run("statistics", folder / "b.zarr", "-o", folder / "s.zarr", "--measurement-noise", "1e-4").exit_code == 0
    done = run("fit", folder / "s.zarr", *FIT, "-o", folder / "m.safetensors", "--measurement-noise", "1e-4")
    assert done.exit_code == 2
    assert "--measurement-noise would do nothing" in done.stderr


def test_strays_of_statistics_may_be_left_out(folder):
    points = planar_bursts(200, 12)[1]
    points[7] += 50.0
    save_bursts(Bursts(points, burst_std=0.01), folder / "far.zarr")
    assert run("statistics", folder / "far.zarr", "-o", folder / "s.zarr").exit_code == 0
    left = [
        json.loads(run("fit", folder / "s.zarr", *FIT, "--json", "--max-strays", part).stdout or "{}").get("strays", {})
        for part in ("0.01", "0")
    ]
    assert list(left[0]) == ["7"] and not left[1]


def test_bursts_are_written_to_a_store(folder):
    rows = "\n".join(f"{i // 5},{i % 7},{i % 3}" for i in range(60))
    (folder / "t.csv").write_text(f"burst_id,p,q\n{rows}\n")
    for _ in range(2):  # the second replaces the first
        done = run("bursts", folder / "t.csv", "-o", folder / "t.zarr")
        assert done.exit_code == 0, done.output
    assert open_bursts(folder / "t.zarr").feature_names == ("p", "q")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("statistics", "b.zarr", "-o", "s.npz"), "expected a .zarr file"),
        (("statistics", "b.zarr", "-o", "b.zarr"), "is the input file"),
        (("fit", "b.zarr", "-o", "m.safetensors", "--workers", "2", "--scheduler", "tcp://x:1"), "give one of them"),
        (("fit", "b.zarr", "-o", "m.safetensors", "--workers", "0"), "'--workers'"),
        (("fit", "s.zarr", "-o", "m.safetensors", "--exclude", "p"), "need raw bursts"),
        (("statistics", "b.zarr", "-o", "t.zarr", "--max-strays", "2"), "'--max-strays'"),
    ],
)
def test_usage(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    assert run("statistics", "b.zarr", "-o", "s.zarr").exit_code == 0
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_damaged_store_is_bad_data(folder):
    (folder / "b.zarr/bursts/c/0/0/0").unlink()
    for command, output in (("fit", "m.safetensors"), ("statistics", "s.zarr")):
        done = run(command, folder / "b.zarr", "-o", folder / output)
        assert done.exit_code == 3
        assert "1 of its 1 chunks are missing" in done.stderr
        assert not (folder / output).exists()


def test_a_scheduler_that_does_not_answer(folder, monkeypatch):
    monkeypatch.setattr(_cluster, "PATIENCE", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        done = run("fit", folder / "b.zarr", "-o", folder / "m.safetensors", "--scheduler", address)
    assert done.exit_code == 1
    assert f"no Dask workers at {address}" in done.stderr
    assert not (folder / "m.safetensors").exists()


def test_tls_without_a_certificate(folder, monkeypatch):
    monkeypatch.setattr(_cluster, "PATIENCE", 0.5)
    done = run("fit", folder / "b.zarr", "-o", folder / "m.safetensors", "--scheduler", "tls://127.0.0.1:9")
    assert done.exit_code == 1
    assert "no Dask workers at tls://127.0.0.1:9: TLS expects" in done.stderr
    assert not (folder / "m.safetensors").exists()


def process(*arguments):
    command = [sys.executable, "-m", "pyloca", *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def family(child):
    try:
        top = psutil.Process(child.pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def addresses(child):
    found = set()
    for one in family(child):
        try:
            found |= {connection.laddr.ip for connection in one.net_connections("inet")}
        except psutil.Error:
            continue
    return found


@pytest.mark.slow
def test_workers_are_reachable_from_this_machine_alone(folder):
    expected = run("fit", folder / "b.zarr", *FIT, "--embedding", folder / "here.npy")
    child, seen = process("fit", folder / "b.zarr", *FIT, "--embedding", folder / "z.npy", "--workers", "2"), set()
    while child.poll() is None:
        seen |= addresses(child)
        time.sleep(0.1)
    _, said = child.communicate(timeout=HANG)
    assert child.returncode == expected.exit_code == 4, said
    assert "2 Dask workers; dashboard: http://127.0.0.1:" in said
    assert "below 100,000 bursts that is faster" in " ".join(said.split())
    assert seen == {"127.0.0.1"}
    np.testing.assert_array_equal(np.load(folder / "z.npy"), np.load(folder / "here.npy"))


@pytest.mark.slow
def test_without_workers_there_is_no_socket(folder):
    child, seen = process("fit", folder / "b.zarr", *FIT, "--json"), set()
    while child.poll() is None:
        seen |= addresses(child)
        time.sleep(0.02)
    assert child.communicate(timeout=HANG)[0]
    assert seen == set()


@pytest.mark.slow
def test_killed_statistics_go_on(tmp_path):
    save_bursts(Bursts(planar_bursts(3000, 12)[1]), tmp_path / "b.zarr")
    command = ("statistics", tmp_path / "b.zarr", "-o", tmp_path / "s.zarr", "--intrinsic-dim", "2")
    child, partial = process(*command), tmp_path / "s.zarr.partial"
    while child.poll() is None and not (partial.is_dir() and any(partial.glob("look-*"))):
        time.sleep(0.01)
    for one in family(child):
        one.send_signal(signal.SIGKILL)
    child.communicate(timeout=HANG)
    done = run(*command)
    assert done.exit_code == 0, done.output
    whole = run("statistics", tmp_path / "b.zarr", "-o", tmp_path / "whole.zarr", "--intrinsic-dim", "2")
    assert whole.exit_code == 0
    found, expected = read_statistics(tmp_path / "s.zarr"), read_statistics(tmp_path / "whole.zarr")
    np.testing.assert_array_equal(found.tangents, expected.tangents)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.zarr", "s.zarr", "whole.zarr"]
