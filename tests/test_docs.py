"""What the pages say is what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lab import write_dirty_lab, write_lab
from pyloca import datasets
from pyloca.bursts import save_bursts
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
    command = [sys.executable, str(ROOT / "benchmarks" / "make_docs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_links_of_the_pages_resolve():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).is_file(), f"{page.name}: {target}"


@pytest.mark.slow
def test_the_examples_of_the_large_page_work(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "large.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 2
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        threads = block.replace("Client(", "Client(processes=False, ")  # a process would import the tests
        exec(compile(threads, "large.md", "exec"), {"__name__": "__main__"})
    printed = re.findall(r"print\(.*?\)+ +# (.*)", "".join(blocks))
    assert len(printed) == 2
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == printed


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


def test_every_finding_is_explained_on_the_trust_page():
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    folder = ROOT / "src" / "pyloca" / "findings"
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    named = set(re.findall(r'Finding\(\s*"(\w+)"', source))
    assert named == set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
