"""An interrupted fit ends, bit for bit, as it would have without the interruption; whatever happens to its files."""

import errno
import os
import warnings
from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn

from helpers import planar_bursts
from pyloca import LOCA, ModelFileError, TrustWarning
from pyloca._sealed import unseal
from pyloca.geometry import BurstStatistics
from pyloca.solvers import _fast
from pyloca.solvers._checkpoint import FORMAT, VERSION

pytestmark = pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # some fits are cut short

OPTIONS = {"n_components": 2, "burst_std": 0.01, "random_state": 0, "hidden_layers": (6,)}


def interrupt(after):
    """A callback that is a Ctrl-C after some checks."""
    count = 0

    def callback(_):
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt

    return callback


def interrupted(bursts, path, after, **options):
    """A fit with a checkpoint at every check, until it is interrupted."""
    with pytest.raises(KeyboardInterrupt):
        LOCA(**OPTIONS | options, callbacks=[interrupt(after)]).fit(bursts, checkpoint=path, checkpoint_every=0)


def assert_same_bits(one, other):
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    for name in ("encoder_", "decoder_"):
        mine, others = getattr(one, name).state_dict(), getattr(other, name).state_dict()
        assert all(torch.equal(mine[key], others[key]) for key in mine | others)
    assert untimed(one) == untimed(other) and one.diagnostics_ == other.diagnostics_


def untimed(model):
    return [{key: value for key, value in record.items() if key != "seconds"} for record in model.history_]


def circle(n=120):
    """Exact statistics of a circle in the plane: k = 1 and d = 2, where aligned positions are anchors."""
    angle = np.random.RandomState(0).uniform(0, 2 * np.pi, n)
    points, slopes = np.stack([np.cos(angle), np.sin(angle)], 1), np.stack([-np.sin(angle), np.cos(angle)], 1)
    return BurstStatistics.from_jacobians(points, 0.01 * slopes[:, :, None])


def sphere(n=120):
    """Exact statistics of a sphere: k = 2 and d = 3."""
    points = np.random.RandomState(0).standard_normal((n, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    tangents = np.linalg.svd(points[:, None])[2][:, 1:]  # (n, 2, 3)
    return BurstStatistics.from_jacobians(points, 0.01 * tangents.transpose(0, 2, 1))


def own(n_in, n_out):
    layers = [nn.Linear(n_in, 6), nn.Tanh(), nn.Linear(6, n_out)]
    with torch.no_grad():
        for parameter in (p for layer in layers for p in layer.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    return nn.Sequential(*layers)


CASES = {
    "plane": (planar_bursts(60, 20)[1], {}),
    "in stages": (planar_bursts(160, 20)[1], {}),  # 40 bursts first
    "circle": (circle(), {}),
    "sphere": (sphere(), {"n_components": 3}),  # trained again without needless bends
    "own modules": (planar_bursts(60, 20)[1], {"encoder": own(3, 2), "decoder": own(2, 3), "max_iter": 300}),
}


@pytest.fixture(autouse=True)
def few_at_first(monkeypatch):
    monkeypatch.setattr("pyloca.solvers._descent.FIRST_BURSTS", 40)
    monkeypatch.setattr("pyloca.solvers._descent.WIDEN", 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_bits_are_those_of_an_uninterrupted_fit(case, tmp_path):
    bursts, options = CASES[case]
    whole = LOCA(**OPTIONS | options).fit(bursts)
    checks = [i for i, record in enumerate(whole.history_) if record["stage"] in ("whiten", "decode")]
    checks = [*checks[:: max(1, len(checks) // 3)], len(whole.history_) - 2]
    assert len({record["stage"] for record in whole.history_}) > 2
    if case == "sphere":
        stages = [record["stage"] for record in whole.history_]
        checks.append(len(stages) - stages[::-1].index("fit encoder"))  # in what follows
    for after in checks:
        interrupted(bursts, tmp_path / f"{after}", after, **options)
        assert_same_bits(LOCA(**OPTIONS | options).fit(bursts, checkpoint=tmp_path / f"{after}"), whole)


def test_a_fit_that_is_interrupted_again_and_again(tmp_path):
    """Each time one check further, as on a machine whose jobs are short."""
    bursts = CASES["plane"][0]
    whole = LOCA(**OPTIONS).fit(bursts)
    for _ in range(len(whole.history_)):
        try:
            model = LOCA(**OPTIONS, callbacks=[interrupt(2)])
            model.fit(bursts, checkpoint=tmp_path / "c", checkpoint_every=0)
        except KeyboardInterrupt:
            if not (tmp_path / "c").exists():  # the fit to the alignment is not kept: it takes a moment
                interrupted(bursts, tmp_path / "c", [r["stage"] for r in whole.history_].index("whiten"))
            continue
        break
    assert_same_bits(model, whole)


@pytest.mark.slow
def test_a_second_start_has_the_same_bits(monkeypatch, tmp_path):
    monkeypatch.setattr(_fast, "embedding_fault", lambda *given: "folded")
    monkeypatch.setattr(_fast, "STARTS", _fast.STARTS[:2])
    bursts = CASES["plane"][0]
    whole = LOCA(**OPTIONS).fit(bursts)
    stages = [record["stage"] for record in whole.history_]
    second = stages.index("restart: folded")
    for after in (second - 1, second + 1, len(stages) - stages[::-1].index("whiten") - 1):
        interrupted(bursts, tmp_path / f"{after}", after)
        assert_same_bits(LOCA(**OPTIONS).fit(bursts, checkpoint=tmp_path / f"{after}"), whole)


# -- files that are damaged, or cannot be written ---------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path):
    """A fit that was interrupted late enough to have left two checkpoints."""
    bursts = CASES["plane"][0]
    whole = LOCA(**OPTIONS).fit(bursts)
    interrupted(bursts, tmp_path / "c", [r["stage"] for r in whole.history_].index("whiten") + 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "c.previous"]
    return bursts, whole, tmp_path / "c"


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip, empty])
def test_after_damage_the_one_before_goes_on(damage, stopped):
    bursts, whole, path = stopped
    damage(path)
    before = path.with_name("c.previous").read_bytes()

    def check(_):  # until a new one is written, the good one must stay
        assert whole_files(path) >= 1

    with pytest.warns(UserWarning, match=r"c: .*The fit continues from the one before it, '.*c\.previous'\."):
        model = LOCA(**OPTIONS, callbacks=[check]).fit(bursts, checkpoint=path, checkpoint_every=0)
    assert_same_bits(model, whole)
    assert path.with_name("c.previous").read_bytes() != before


def whole_files(path):
    """How many of both files are whole."""
    found = 0
    for file in (path, path.with_name("c.previous")):
        with suppress(ModelFileError):
            unseal(file.read_bytes(), FORMAT, (VERSION,), "")
            found += 1
    return found


def test_both_damaged_are_refused(stopped):
    bursts, _, path = stopped
    flip(path)
    truncate(path.with_name("c.previous"))
    with pytest.raises(ModelFileError, match=r"does not match its checksum.*Neither can the one before it: .*previous"):
        LOCA(**OPTIONS).fit(bursts, checkpoint=path)


def test_a_process_killed_between_two_renames_leaves_the_one_before(stopped):
    bursts, whole, path = stopped
    os.replace(path, path.with_name("c.next"))
    assert_same_bits(LOCA(**OPTIONS).fit(bursts, checkpoint=path), whole)


def test_the_checkpoint_of_another_fit_is_not_passed_over(stopped):
    """The one before belongs to the same fit, most likely: going on from it would only hide the mistake."""
    bursts, _, path = stopped
    with pytest.raises(ModelFileError, match="seed was"):
        LOCA(**OPTIONS | {"random_state": 1}).fit(bursts, checkpoint=path)


def test_from_scratch_replaces_what_is_there(stopped):
    bursts, whole, path = stopped
    path.write_bytes(b"of no use")
    model = LOCA(**OPTIONS).fit(bursts, checkpoint=path, resume=False)
    assert_same_bits(model, whole)
    assert path.read_bytes() != b"of no use"


@pytest.fixture
def small_disk():
    """No file may grow beyond 1000 bytes, as on a disk that is full."""
    import resource  # not on Windows

    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    limit(before[0])


def test_a_full_disk_costs_neither_the_fit_nor_the_checkpoints(stopped, small_disk):
    bursts, whole, path = stopped
    files = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    with pytest.warns(UserWarning, match="cannot be written") as caught:
        small_disk(1000)
        model = LOCA(**OPTIONS).fit(bursts, checkpoint=path, checkpoint_every=0)
    assert_same_bits(model, whole)
    words = [str(one.message) for one in caught if not isinstance(one.message, TrustWarning)]
    assert len(words) == 1  # although there were several attempts
    assert f"'{path}'" in words[0] and os.strerror(errno.EFBIG) in words[0] and "is as it was" in words[0]
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == files


def test_a_disk_that_is_full_for_a_while(small_disk, tmp_path):
    bursts = CASES["plane"][0]
    path, seen = tmp_path / "c", []

    def fill(_):
        seen.append(path.exists())
        small_disk(1000 if len(seen) < 8 else -1)

    with pytest.warns(UserWarning, match="cannot be written"):
        LOCA(**OPTIONS, callbacks=[fill]).fit(bursts, checkpoint=path, checkpoint_every=0)
    assert path.exists() and not seen[7]


def test_a_name_that_is_too_long(tmp_path):
    path = tmp_path / ("c" * 300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model = LOCA(**OPTIONS, max_iter=200).fit(CASES["plane"][0], checkpoint=path, checkpoint_every=0)
    words = [str(one.message) for one in caught if not isinstance(one.message, TrustWarning)]
    assert len(words) == 1 and "(File name too long)" in words[0] and model.n_iter_ == 200
    assert not list(tmp_path.iterdir())
