"""What the pages say is what the code does."""

import contextlib
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

import instruments
from helpers import planar_bursts
from lab import write_dirty_lab, write_lab
from pyloca import LOCA, datasets
from pyloca.bursts import Bursts, save_bursts
from pyloca.cli import cli

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_example_of_the_readme_works_as_printed(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks[0], "README.md", "exec"), {})
    assert (tmp_path / "mushroom.safetensors").is_file()
    assert float(capsys.readouterr().out.splitlines()[-1]) < 1e-3  # the stress it prints


def test_generated_tables_are_fresh():
    command = [sys.executable, "-m", "benchmarks.docs", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_of_the_pages_resolve():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).is_file(), f"{page.name}: {target}"


@pytest.mark.slow
def test_the_examples_of_the_large_page_work(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    for block in blocks[:2]:
        threads = block.replace("Client(", "Client(processes=False, ")  # a process would import the tests
        exec(compile(threads, "large.md", "exec"), {"__name__": "__main__"})
    printed = re.findall(r"print\(.*?\)+ +# (.*)", "".join(blocks))
    assert len(printed) == 2
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == printed
    run_on_a_stand_in_for_slurm(blocks[2], monkeypatch)
    assert (tmp_path / "model.safetensors").is_file()


def run_on_a_stand_in_for_slurm(block, monkeypatch):
    """Run the block for a cluster in this process: nothing here submits jobs, and a client was tried above."""

    class SLURMCluster:
        def __init__(self, *, cores, processes, memory, walltime):
            pass

        def scale(self, *, jobs):
            pass

    module = types.ModuleType("dask_jobqueue")
    module.SLURMCluster = SLURMCluster
    monkeypatch.setitem(sys.modules, "dask_jobqueue", module)
    monkeypatch.setattr("distributed.Client", lambda cluster: contextlib.nullcontext())
    assert block.count("/shared/") == 1
    exec(compile(block.replace("/shared/", ""), "large.md", "exec"), {"__name__": "__main__"})


@pytest.mark.slow
def test_the_examples_of_the_bursts_page_work(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "bursts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 18
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, "bursts.md", "exec"), names)
    printed = re.findall(r"print\(.*?\)+  # (.*)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == printed


def shell_of_the_bursts_page():
    """The commands of the page, each with the lines that it prints."""
    text = (ROOT / "docs" / "bursts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n(\$ .*?)```", text, flags=re.DOTALL)
    for block in blocks:
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            typed, *lines = command.splitlines()
            yield typed, lines


def assert_same_rows(rows, expected):
    """Equal cells, numbers to rounding: processors differ in the last digit of a matrix product."""
    cells, told = ([cell for row in part for cell in row.split(",")] for part in (rows, expected))
    assert len(rows) == len(expected) and len(cells) == len(told)
    for cell, other in zip(cells, told, strict=True):
        try:
            assert float(cell) == pytest.approx(float(other), rel=1e-12)
        except ValueError:
            assert cell == other


def test_the_shell_of_the_bursts_page_prints_this(tmp_path, monkeypatch):
    """Tables and `inspect`; fits depend on the machine in the last digits, and on its speed."""
    monkeypatch.chdir(tmp_path)
    write_lab(tmp_path)
    write_dirty_lab(tmp_path)
    save_bursts(datasets.mushroom(500, 30, random_state=0).bursts.to_array(), "bursts.csv")
    seen = []
    for typed, lines in shell_of_the_bursts_page():
        program, *arguments = typed.split()
        if program == "head" and arguments[1] in ("bursts.csv", "runs.csv"):
            with open(arguments[1], encoding="utf-8") as file:
                assert_same_rows(file.read().splitlines()[: -int(arguments[0])], lines)  # head -3
        elif arguments[0] == "inspect":
            done = CliRunner().invoke(cli, arguments, prog_name="pyloca")
            printed = done.stdout.splitlines()
            assert done.exit_code == 0
            assert [line for line in lines if line != "…" and line not in printed] == [], done.stdout
        else:
            continue
        seen.append(typed)
    assert len(seen) == 4
    done = CliRunner().invoke(cli, ["inspect", "gaps.csv", "--burst-id", "run_id", "--exclude", "t"])
    said = re.search(r"5 cells .*?\)", done.stderr)[0]
    assert said in (ROOT / "docs" / "bursts.md").read_text(encoding="utf-8").replace("\n", " ")


@pytest.mark.slow
def test_the_example_of_the_trust_page_works(capsys):
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "trust.md", "exec"), names)
    assert "no fault found" in capsys.readouterr().out
    assert names["model"].n_components_ == 2
    assert len(names["trust"]) == 300


def blocks_of(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_the_examples_of_the_matching_page_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, few = instruments.plan(120, 0), instruments.plan(8, 1)
    radio, camera = instruments.fit(instruments.sheet, X, 0), instruments.fit(instruments.gauge, X, 1)
    third = instruments.fit(lambda x: instruments.sheet(x)[:, ::-1], X, 2)
    sheet, gauge, turned = instruments.sheet(few), instruments.gauge(few), instruments.sheet(few)[:, ::-1]
    names = {"radio": radio, "camera": camera, "Y_radio": sheet, "Y_camera": gauge}
    names |= {"north": radio, "east": camera, "south": third}
    names |= {"Y_north": sheet, "Y_east": gauge, "Y_corner": gauge, "Y_south": turned}
    names |= {"old": radio, "new_bursts": instruments.measured(instruments.sheet, X, 3)}
    blocks = blocks_of("matching.md")
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "matching.md", "exec"), names)
    assert (tmp_path / "match.safetensors").is_file() and "8 of 8 anchors" in capsys.readouterr().out
    assert not names["found"].drifted


@pytest.mark.slow
def test_the_short_examples_of_other_pages_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bursts = Bursts(planar_bursts(60, 20)[1])
    model = LOCA(2, burst_std=0.01, hidden_layers=(), random_state=0).fit(bursts)
    names = {"model": model, "bursts": bursts, "operators": ["a", "b"] * 30, "hours": range(60)}
    blocks = [*blocks_of("durable.md"), *blocks_of("report.md")]
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "page", "exec"), names)
    assert (tmp_path / "fit.checkpoint").is_file() and (tmp_path / "wifi.html").is_file()


@pytest.mark.slow
def test_the_example_of_the_baselines_page_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks_of("baselines.md")
    small = block.replace("n_bursts=800, n_points=100", "n_bursts=60, n_points=20")
    assert small != block
    exec(compile(small, "baselines.md", "exec"), {})
    assert (tmp_path / "compare.png").is_file() and "LOCA" in capsys.readouterr().out


# Where the Python blocks of each page are run: in this file, in test_site.py (PAGES), or in test_export_docs.py.
RUN_HERE = {"README.md", "baselines.md", "bursts.md", "durable.md", "large.md", "matching.md", "report.md", "trust.md"}
RUN_ELSEWHERE = {"export.md", "index.md", "start.md", "choosing.md"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fences(text):
    """Language and content of every code block of a page."""
    return re.findall(r"^```([^\n`]*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_every_python_block_is_run_by_a_test():
    with_code = set()
    for page in PAGES:
        for language, block in fences(page.read_text(encoding="utf-8")):
            if language == "python":
                with_code.add(page.name if page.parent.name != "data" else "data/")
            elif not language:
                assert not re.search(r"^(from \w|import \w|print\(|\w+ = )", block, flags=re.MULTILINE), (page, block)
    assert with_code == RUN_HERE | RUN_ELSEWHERE | {"data/"}


def commands_of_the_pages():
    """Every line of a block that calls pyloca, as (page, words)."""
    for page in PAGES:
        for language, block in fences(page.read_text(encoding="utf-8")):
            for line in block.splitlines() if not language else ():
                for part in line.removeprefix("$ ").split(" | "):
                    if part.startswith("pyloca "):
                        yield page.name, shlex.split(part, comments=True)[1:]


def test_the_shell_of_every_page_names_commands_and_options_that_exist():
    seen = set()
    for page, (name, *words) in commands_of_the_pages():
        command = cli.get_command(None, name)
        assert command is not None, f"{page}: pyloca {name}"
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        wrong = [word for word in words if re.match(r"--?[a-z]", word) and word.split("=")[0] not in options]
        assert not wrong, f"{page}: pyloca {name} {wrong}"
        seen.add(name)
    assert seen >= {
        "demo",
        "inspect",
        "fit",
        "transform",
        "report",
        "reproduce",
        "statistics",
        "match",
        "fuse",
        "recalibrate",
    }


def test_every_finding_is_explained_on_the_trust_page():
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    folder = ROOT / "src" / "pyloca" / "findings"
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = set(re.findall(r'Finding\(\s*"(\w+)"', source))
    assert named == set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
