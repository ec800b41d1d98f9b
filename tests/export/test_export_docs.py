"""The examples of docs/export.md run as they are printed."""

import json
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from helpers import HANG

TEXT = (Path(__file__).parent.parent.parent / "docs" / "export.md").read_text(encoding="utf-8")
FIT, SERVICE, GRAPH = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
(BOARD,) = re.findall(r"```c\n(.*?)```", TEXT, flags=re.DOTALL)


def ask(port, reading):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(reading).encode())
    with urllib.request.urlopen(request, timeout=HANG) as answer:
        return json.loads(answer.read())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_examples_of_the_page_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    exec(compile(FIT, "export.md", "exec"), names)
    assert capsys.readouterr().out.split() == ["onnx", "True", "numpy", "True", "c", "True"]
    model, Y = names["model"], names["data"].Y
    expected, trust = model.transform(Y, return_trust=True)

    exec(compile(SERVICE, "export.md", "exec"), names)
    assert capsys.readouterr().out.split() == ["17", "2"]
    monkeypatch.setattr(names["Coordinates"], "log_message", lambda *_: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), names["Coordinates"]) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            answer = ask(server.server_port, Y[3].tolist())
            with pytest.raises(urllib.error.HTTPError) as refused:
                ask(server.server_port, [1.0, 2.0])
        finally:
            server.shutdown()
            thread.join()
    np.testing.assert_allclose(answer["z"], expected[3], rtol=0, atol=1e-10)
    assert answer["trust"] == trust[3]
    with refused.value as response:
        assert response.code == 400 and "Y has shape (2,); expected (…, 17)" in json.loads(response.read())["error"]

    exec(compile(GRAPH, "export.md", "exec"), names)
    assert capsys.readouterr().out.strip() == "(600, 2) (600,) float64"
    np.testing.assert_allclose(names["coordinates"], expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(names["trust"], trust)

    Path("board.c").write_text(BOARD, encoding="utf-8")
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["cc", *flags, "board.c", "-o", "board", "-lm"], check=True, timeout=HANG)
    readings = "\n".join(" ".join(map(repr, row)) for row in Y[:5].tolist())
    done = subprocess.run(["./board"], input=readings, capture_output=True, text=True, check=True, timeout=HANG)
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=np.float64)
    np.testing.assert_allclose(found[:, :2], expected[:5], rtol=1e-7)
    np.testing.assert_allclose(found[:, 2], trust[:5], rtol=1e-5)
