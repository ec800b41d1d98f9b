"""The file of an interrupted fit: what is in it, and what is refused. `test_resumed.py` has the bits."""

import copy
import itertools
import json
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest
import safetensors.numpy
import torch

from helpers import planar_bursts
from pyloca import LOCA, Bursts, ModelFileError, TrustWarning
from pyloca._sealed import seal, unseal
from pyloca.geometry import BurstStatistics
from pyloca.solvers import CheckpointFile, Problem, _fast, _paper
from pyloca.solvers._checkpoint import State


def interrupt(stage, iteration):
    """A callback that is a Ctrl-C at the first check of `stage` at or after `iteration`."""

    def callback(record):
        if record["stage"] == stage and record["iteration"] >= iteration:
            raise KeyboardInterrupt

    return callback


def fit_twice(path, bursts, callback, **options):
    """A fit that is interrupted, and one that goes on from its checkpoint."""
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (16,)} | options
    with pytest.raises(KeyboardInterrupt):
        LOCA(2, **options, callbacks=[callback]).fit(bursts, checkpoint=path)
    assert path.name in [p.name for p in path.parent.iterdir()]
    return LOCA(2, **options), LOCA(2, **options).fit(bursts, checkpoint=path)


# -- the file ---------------------------------------------------------------------------------------------------


@dataclass
class Sample(State):
    n: int = 0
    x: float = 0.0
    name: str = ""
    words: tuple[str, ...] = ()
    weights: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    same: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    rows: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    parts: dict[str, torch.Tensor] = field(default_factory=dict)


def header(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["pyloca-checkpoint"])


@pytest.mark.parametrize("filled", [True, False])
def test_every_field_of_a_state_comes_back(filled, tmp_path):
    weights = torch.randn(3, dtype=torch.float64)
    parts = {"0.weight": torch.randn(2, 2), "0.bias": torch.tensor(1.5)}
    state = Sample(3, np.inf, "a", ("b", "c"), weights, weights, torch.arange(2), parts) if filled else Sample()
    file = CheckpointFile(tmp_path / "c", {})
    file.keep(state, [{"stage": "s", "iteration": 1, "seconds": 0.5}])
    file.write()
    found = Sample()
    assert file.read(found) == [{"stage": "s", "iteration": 1, "seconds": 0.5}]
    for name in ("n", "x", "name", "words"):
        assert getattr(found, name) == getattr(state, name)
        assert type(getattr(found, name)) is type(getattr(state, name))
    for name in ("weights", "same", "rows"):
        assert getattr(found, name).dtype == getattr(state, name).dtype
        assert torch.equal(getattr(found, name), getattr(state, name))
    assert found.parts.keys() == state.parts.keys()
    assert all(torch.equal(found.parts[key], state.parts[key]) for key in state.parts)


def test_a_state_with_a_field_missing_is_refused(tmp_path):
    file = CheckpointFile(tmp_path / "c", {})
    file.keep(State(), [])
    file.write()
    with pytest.raises(ModelFileError, match=r"not the state of this training \('n'\)"):
        file.read(Sample())


@pytest.mark.parametrize(("solver", "kind"), [("fast", _fast.FastState), ("paper", _paper.PaperState)])
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")
def test_the_file_holds_the_fields_of_the_state_and_no_others(solver, kind, tmp_path):
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (5,), "solver": solver, "max_iter": 200}
    stop = interrupt("whiten" if solver == "fast" else "adam 0.001", 0)
    with pytest.raises(KeyboardInterrupt):
        LOCA(2, **options, callbacks=[stop]).fit(planar_bursts(30, 10)[1], checkpoint=tmp_path / "c")
    tensors = {name.partition(".")[0] for name in safetensors.numpy.load_file(tmp_path / "c")}
    assert tensors | header(tmp_path / "c")["state"].keys() == {f.name for f in fields(kind)}


FORGERIES = {
    "fast": {
        "theta": lambda header, arrays: arrays.update(theta=arrays["theta"][:-1]),
        "theta holds": lambda header, arrays: arrays.update(theta=np.full_like(arrays["theta"], np.nan)),
        "optimizer": lambda header, arrays: arrays.pop("optimizer.s"),
        "subset": lambda header, arrays: arrays.update(subset=arrays["subset"] + 10**6),
        "generator": lambda header, arrays: arrays.update(generator=arrays["generator"][:7]),
        "rung": lambda header, arrays: header["state"].update(rung=99),
        "stage": lambda header, arrays: header["state"].update(stage="x"),
        "iteration is": lambda header, arrays: header["state"].update(iteration=-1),
        "score_before is": lambda header, arrays: header["state"].update(score_before=10**30),
        "int too large": lambda header, arrays: header["history"][0].update(seconds=10**400),
        "restarts": lambda header, arrays: header["state"].update(restarts=[1]),
        "history": lambda header, arrays: header.update(history=[]),
    },
    "paper": {
        "networks": lambda header, arrays: arrays.update({"networks.0.net.0.weight": np.zeros((1, 1), np.float32)}),
        "moments": lambda header, arrays: arrays.pop(min(name for name in arrays if name.startswith("moments"))),
        "epoch": lambda header, arrays: header["state"].update(best_epoch=10**12),
        "rate": lambda header, arrays: header["state"].update(rate=0.0),
    },
}


@pytest.mark.parametrize(
    ("solver", "fault"), [(solver, fault) for solver, faults in FORGERIES.items() for fault in faults]
)
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")
def test_forged_states_with_a_valid_checksum_are_refused(solver, fault, tmp_path):
    """What cannot be a state of this training is our own error, and the file stays as it is."""
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (5,), "solver": solver, "max_iter": 200}
    bursts, path = planar_bursts(30, 10)[1], tmp_path / "c"
    stop = interrupt("whiten" if solver == "fast" else "adam 0.001", 0)
    with pytest.raises(KeyboardInterrupt):
        LOCA(2, **options, callbacks=[stop]).fit(bursts, checkpoint=path)
    header, arrays = unseal(path.read_bytes(), "pyloca-checkpoint", (8,), "c")
    header, arrays = copy.deepcopy(header), dict(arrays)
    FORGERIES[solver][fault](header, arrays)
    forged = seal("pyloca-checkpoint", header, arrays)
    path.write_bytes(forged)
    with pytest.raises(ModelFileError, match=rf"not the state of this training \(.*{fault}"):
        LOCA(2, **options).fit(bursts, checkpoint=path)
    assert path.read_bytes() == forged


# -- the fast solver --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("better", [0, 1])
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # every encoder is said to be folded
def test_a_second_start_is_resumed_with_what_the_first_left(better, monkeypatch, tmp_path):
    """Causes of restarts, the encoder that was given up (it may be the best), and no alignment made twice."""
    monkeypatch.setattr(_fast, "embedding_fault", lambda *given: "folded")
    monkeypatch.setattr(_fast, "STARTS", _fast.STARTS[:2])
    monkeypatch.setattr(_fast, "MAX_ITER", 350)  # too few for two starts if each did not have its own budget
    descend, made = _fast.Descent.descend, []

    def scored(self, task, *, resumed=False):
        descend(self, task, resumed=resumed)
        if task.name == "whiten":
            self.state.best_score = float(len(self.state.restarts) != better)

    align = _fast.align
    monkeypatch.setattr(_fast.Descent, "descend", scored)
    monkeypatch.setattr(_fast, "align", lambda *given, **options: made.append(options) or align(*given, **options))
    _, bursts = planar_bursts(100, 30)
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (8,)}

    def second_start(record):
        records.append(record["stage"])
        if any(stage.startswith("restart") for stage in records) and record["stage"] == "whiten":
            raise KeyboardInterrupt

    records = []
    with pytest.raises(KeyboardInterrupt):
        LOCA(2, **options, callbacks=[second_start]).fit(bursts, checkpoint=tmp_path / "c")
    assert len(made) == 2
    kept = safetensors.numpy.load_file(tmp_path / "c")["encoder"]
    resumed = LOCA(2, **options).fit(bursts, checkpoint=tmp_path / "c")
    assert len(made) == 2
    assert resumed.diagnostics_.restarts == ("folded",)
    assert resumed.converged_ and resumed.n_iter_ > 350
    first = torch.cat([resumed.encoder_.network.layers[0].weight, resumed.encoder_.network.layers[0].bias[:, None]], 1)
    is_first = np.array_equal(first.detach().numpy().ravel(), kept[: first.numel()])
    assert is_first == (better == 0)


@pytest.mark.slow
def test_a_folded_alignment_is_still_known_after_an_interruption(monkeypatch, tmp_path):
    fractions = itertools.chain([1.0], itertools.repeat(0.0))
    monkeypatch.setattr(_fast, "overlapping", lambda *given: next(fractions))
    _, resumed = fit_twice(tmp_path / "c", planar_bursts(100, 30)[1], interrupt("whiten", 0))
    assert resumed.diagnostics_.restarts == ("folded",)
    assert [r["stage"] for r in resumed.history_].count("restart: folded") == 1


@pytest.mark.slow
def test_a_fit_that_max_iter_ended_goes_on_with_more(tmp_path):
    _, bursts = planar_bursts(100, 30)
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (8,)}
    with pytest.warns(TrustWarning, match="decoder is not trained"):
        short = LOCA(2, max_iter=150, **options).fit(bursts, checkpoint=tmp_path / "c")
    more = LOCA(2, **options).fit(bursts, checkpoint=tmp_path / "c")
    assert (short.n_iter_, short.converged_, more.converged_) == (150, False, True)
    assert more.history_[: len(short.history_)] == short.history_


@pytest.mark.parametrize(("every", "written"), [(0.0, True), (3600.0, False)])
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")
def test_the_file_is_written_now_and_then(every, written, tmp_path):
    """Also without an interruption that can be caught: a power cut loses seconds."""
    seen = []
    _, bursts = planar_bursts(100, 30)
    model = LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(8,), max_iter=150)
    model.callbacks = [lambda record: seen.append((record["stage"], (tmp_path / "c").exists()))]
    model.fit(bursts, checkpoint=tmp_path / "c", checkpoint_every=every)
    assert {there for stage, there in seen if stage.startswith("fit")} == {False}
    assert {there for stage, there in seen if stage == "whiten"} == {written}
    assert (tmp_path / "c").exists()  # at the end in any case


# -- the paper solver -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [2, 8])
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # a dozen epochs make no good fit
def test_the_paper_solver_goes_on_bit_for_bit(epoch, monkeypatch, tmp_path):
    """At the first rate and at the second, with both Adams, the best weights and the shuffling."""
    monkeypatch.setattr(_paper, "CHECK_EVERY", 2)
    monkeypatch.setattr(_paper, "PATIENCE", 4)
    monkeypatch.setattr(_paper, "LEARNING_RATES", (30.0, 1e-3))
    _, bursts = planar_bursts(30, 10)

    def callback(record):
        if record["iteration"] == epoch:
            raise KeyboardInterrupt

    fresh, resumed = fit_twice(tmp_path / "c", bursts, callback, solver="paper", hidden_layers=(5,), max_iter=16)
    whole = fresh.fit(bursts)
    assert len({record["stage"] for record in whole.history_}) == 2
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)
    for mine, other in zip(resumed.decoder_.parameters(), whole.decoder_.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert [r["validation_loss"] for r in resumed.history_] == [r["validation_loss"] for r in whole.history_]


# -- refused ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A checkpoint of a fit of planar bursts, and the bursts."""
    path = tmp_path_factory.mktemp("kept") / "c"
    _, bursts = planar_bursts(60, 20)
    fit_twice(path, bursts, interrupt("whiten", 0))
    return path, bursts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"burst_std": 0.02}, r"burst_std was 0\.01 and is 0\.02"),
        ({"hidden_layers": (8,)}, r"hidden_layers was \[16\] and is \[8\]"),
        ({"random_state": 1}, "seed was"),
        ({"solver": "paper"}, "solver was fast and is paper"),
        ({"validation_fraction": 0.2}, "held_out was 6 and is 12"),
    ],
)
def test_other_settings_are_refused(options, message, kept):
    path, bursts = kept
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (16,)} | options
    with pytest.raises(ModelFileError, match=message):
        LOCA(2, **options).fit(bursts, checkpoint=path)
    assert path.exists()


def rotated(bursts):
    turn = np.linalg.qr(np.random.RandomState(0).standard_normal((3, 3)))[0]
    return bursts @ turn


CHANGES = {
    "another order of bursts": lambda b: b[::-1],
    "another unit": lambda b: b * [1, 1, 1.01],
    "columns swapped": lambda b: b[:, :, [1, 0, 2]],
    "a column negated": lambda b: b * [1, 1, -1],
    "rotated": rotated,
    "one number": lambda b: b + 1e-12 * (np.arange(b.size).reshape(b.shape) == 7),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_data_is_refused(change, kept):
    path, bursts = kept
    with pytest.raises(ModelFileError, match=r"it was written for other data \(digest [0-9a-f]{12}…, now [0-9a-f]"):
        LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(16,)).fit(CHANGES[change](bursts), checkpoint=path)


def problem(**changes):
    statistics = BurstStatistics.from_bursts(planar_bursts(20, 10)[1], 2)
    settings = dict.fromkeys(field.name for field in fields(Problem)) | {"statistics": statistics, "hidden_layers": ()}
    settings |= {"burst_std": 1.0, "train": np.arange(15), "validation": np.arange(15, 20)}
    return Problem(**settings | changes)


@pytest.mark.parametrize("part", ["means", "tangents", "counts", "residuals", "total", "train", "validation"])
def test_each_part_of_the_data_is_in_the_digest(part):
    plain = problem()
    if part in {"train", "validation"}:
        other = replace(plain, **{part: getattr(plain, part)[::-1]})
    else:
        values = np.ones((20, 2, 2)) if part == "total" else getattr(plain.statistics, part).copy()
        values[3] += 1
        other = replace(plain, statistics=replace(plain.statistics, **{part: values}))
    assert other.facts()["data"] != plain.facts()["data"]
    assert {**other.facts(), "data": ""} == {**plain.facts(), "data": ""}
    assert len(replace(plain, validation=np.arange(0)).facts()["data"]) == 64


def test_raw_points_are_in_the_digest_of_a_solver_that_trains_on_them():
    bursts = planar_bursts(20, 10)[1]
    one, other = (problem(bursts=Bursts(points)) for points in (bursts, bursts[:, ::-1]))
    assert one.facts() == other.facts()
    assert one.facts(raw=True)["data"] != other.facts(raw=True)["data"]


def test_modules_of_your_own_are_known_by_their_weights_and_parts():
    layers = [torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)]
    one = torch.nn.Sequential(*layers)
    same, other, parts = copy.deepcopy(one), copy.deepcopy(one), copy.deepcopy(one)
    other[0].weight.data[1, 1] += 1e-3
    parts[1] = torch.nn.ELU()
    first, again, *others = (problem(encoder=module).facts()["encoder"] for module in (one, same, other, parts))
    assert first == again and first not in others and problem().facts()["encoder"] is None


def test_fewer_bursts_are_refused_by_number(kept):
    path, bursts = kept
    with pytest.raises(ModelFileError, match="it was written for another fit: N was 60 and is 59"):
        LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(16,)).fit(bursts[:-1], checkpoint=path)


def test_another_version_is_refused(kept, tmp_path):
    _, bursts = kept
    content = {"version": 1, "facts": {}, "stage": "whiten", "numbers": {}, "history": []}  # as version 1 was
    tensors = {"theta": np.zeros(2)}
    (tmp_path / "c").write_bytes(safetensors.numpy.save(tensors, {"pyloca-checkpoint": json.dumps(content)}))
    with pytest.raises(ModelFileError, match="format version 1; this pyloca reads version 8"):
        LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(16,)).fit(bursts, checkpoint=tmp_path / "c")


@pytest.mark.parametrize("content", [b"", b"garbage", safetensors.numpy.save({"a": np.zeros(2)})])
def test_what_is_no_checkpoint_is_refused(content, tmp_path):
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"not a pyloca checkpoint file .*Delete it, or give another path"):
        LOCA(2, random_state=0).fit(planar_bursts(20, 10)[1], checkpoint=tmp_path / "c")


@pytest.mark.parametrize("every", [-1, np.nan, "often"])
def test_a_wrong_interval_is_refused(every, tmp_path):
    with pytest.raises(ValueError, match="checkpoint_every must be a number ≥ 0"):
        LOCA(2, random_state=0).fit(planar_bursts(20, 10)[1], checkpoint=tmp_path / "c", checkpoint_every=every)


def test_a_folder_that_is_not_there_is_told_before_any_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        LOCA(2, random_state=0).fit("no_data.npy", checkpoint=tmp_path / "nowhere" / "c")


def test_a_checkpoint_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="needs an integer random_state"):
        LOCA(2).fit(planar_bursts(20, 10)[1], checkpoint=tmp_path / "c")
