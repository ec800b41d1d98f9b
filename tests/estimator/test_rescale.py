"""The scale of a finished embedding, from a few known distances."""

import warnings

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from torch import nn

from pyloca import LOCA, Bursts, TrustWarning, datasets
from pyloca.errors import BurstError

DATA = datasets.mushroom(n_bursts=150, n_points=30, random_state=0)
X = DATA.X
POINTS = DATA.bursts.to_array()  # without σ, which the bursts of a data set know
NAMES = [f"site {i}" for i in range(150)]
SMALL = {"hidden_layers": (10,), "random_state": 0}
PAIRS = np.random.RandomState(1).permutation(150)[:12].reshape(6, 2)


def apart(pairs):
    pairs = np.asarray(pairs)
    return np.linalg.norm(X[pairs[:, 0]] - X[pairs[:, 1]], axis=1)


def fit(bursts, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(**SMALL | options).fit(bursts)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A model whose σ is not known; each test loads its own."""
    return fit(Bursts(POINTS, ids=NAMES)).save(tmp_path_factory.mktemp("m") / "m.safetensors")


@pytest.fixture
def model(file):
    return LOCA.load(file)


def test_one_factor_for_everything(model, file):
    before = LOCA.load(file)
    assert not before.burst_std_known_
    assert model.rescale(PAIRS, apart(PAIRS)) is model
    found = model.rescaling_
    factor = found.factor
    assert abs(found.factor * before.burst_std_ / DATA.burst_std - 1) < max(3 * found.relative_error, 0.02)
    assert 0 < found.relative_error < 0.1
    np.testing.assert_array_equal(model.embedding_, factor * before.embedding_)
    assert model.burst_std_ == factor * before.burst_std_
    assert model.burst_std_known_
    np.testing.assert_allclose(model.transform(DATA.bursts), model.embedding_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.encode(DATA.Y), factor * before.encode(DATA.Y), rtol=1e-12)
    np.testing.assert_allclose(model.decode(factor * before.embedding_), before.decode(before.embedding_), atol=1e-12)
    slopes, plain = (m.encode_with_jacobian(DATA.Y[:5])[1] for m in (model, before))
    np.testing.assert_allclose(slopes, factor * plain, rtol=1e-12)
    assert model.score(DATA.bursts) == pytest.approx(before.score(DATA.bursts), abs=1e-9)
    one, other = (m.transform(DATA.bursts, return_trust=True)[1] for m in (model, before))
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_two_standard_errors_hold_the_truth(file):
    """Of one to eight distances, drawn anew; the truth is the factor by all distances."""
    inside, truth = 0, float(np.median(pdist(X) / pdist(LOCA.load(file).embedding_)))
    for seed in range(20):
        pairs = np.random.RandomState(seed).permutation(150)[: 2 * (1 + seed % 8)].reshape(-1, 2)
        model = LOCA.load(file)
        with warnings.catch_warnings():
            warnings.simplefilter("error", TrustWarning)  # true distances do not disagree
            found = model.rescale(pairs, apart(pairs)).rescaling_
        inside += abs(found.factor - truth) <= 2 * found.standard_error
    assert inside >= 18


def test_bursts_by_id_and_by_row(model, file):
    ids = [(NAMES[i], NAMES[j]) for i, j in PAIRS]
    by_id = LOCA.load(file).rescale(ids, apart(PAIRS))
    model.rescale(PAIRS.tolist(), apart(PAIRS).tolist())
    assert model.rescaling_ == by_id.rescaling_
    assert model.rescaling_.pairs == tuple(ids)


def test_numbers_are_ids_where_ids_are_numbers():
    rows = np.random.RandomState(0).permutation(150)
    model = fit(Bursts(POINTS[rows], ids=rows), max_iter=80)
    model.rescale(PAIRS, apart(PAIRS))
    assert model.rescaling_.pairs == tuple((i, j) for i, j in PAIRS.tolist())
    assert model.rescaling_.relative_error < 0.2


def test_a_second_rescaling_starts_from_the_first(model):
    first = model.rescale(PAIRS, apart(PAIRS)).embedding_
    with pytest.warns(TrustWarning, match="imply σ = .*Check burst_std and the unit of the distances"):
        model.rescale(PAIRS, 100 * apart(PAIRS))
    np.testing.assert_allclose(model.embedding_, 100 * first, rtol=1e-9)
    model.rescale(PAIRS, 100 * apart(PAIRS))
    assert model.rescaling_.factor == pytest.approx(1)
    assert not [f for f in model.diagnostics_.findings if f.name == "distances"]  # those of before are gone


def test_one_wrong_distance_is_named_and_moves_little(model, file):
    wrong = apart(PAIRS)
    wrong[2] *= 2
    with pytest.warns(TrustWarning, match="known distances disagree") as caught:
        model.rescale(PAIRS, wrong)
    i, j = PAIRS[2]
    message = str(caught[0].message)
    assert f"bursts {NAMES[i]!r} and {NAMES[j]!r}" in message
    assert "longer than the others say" in message
    finding = next(f for f in model.diagnostics_.findings if f.name == "distances")
    assert finding.bursts == (i, j)
    right = LOCA.load(file).rescale(PAIRS, apart(PAIRS))
    assert model.burst_std_ == pytest.approx(right.burst_std_, rel=0.05)


def test_distances_and_a_known_sigma():
    model = fit(DATA.bursts)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        model.rescale(PAIRS, apart(PAIRS))
    assert model.rescaling_.factor == pytest.approx(1, abs=3 * model.rescaling_.standard_error)
    with pytest.warns(TrustWarning, match=r"but σ = 0\.0.* was known before: they differ by a factor of 3"):
        model.rescale(PAIRS, 3 * apart(PAIRS))


@pytest.mark.parametrize(
    ("pairs", "distances", "error", "words"),
    [
        ([("site 1", "site 999")], [1.0], BurstError, "there is no burst 'site 999'; did you mean 'site"),
        ([(1, 150)], [1.0], BurstError, "there is no burst 150"),
        ([(1, 1)], [1.0], ValueError, "a pair names one burst twice, 1"),
        ([1, 2], [1.0], ValueError, r"pairs has shape \(2,\); expected \(n, 2\)"),
        ([], [], ValueError, "pairs has shape"),
        ([(1, 2)], [1.0, 2.0], ValueError, r"distances has shape \(2,\) for 1 pairs"),
        ([(1, 2)], [0.0], ValueError, r"distances must be finite numbers > 0; got \[0.0\]"),
        ([(1, 2)], [np.nan], ValueError, "distances must be finite numbers > 0"),
        ([(1, 2)], ["far"], ValueError, "distances has dtype .*; expected real numbers"),
    ],
)
def test_what_is_refused_changes_nothing(model, file, pairs, distances, error, words):
    with pytest.raises(error, match=words):
        model.rescale(pairs, distances)
    assert not hasattr(model, "rescaling_")
    np.testing.assert_array_equal(model.embedding_, LOCA.load(file).embedding_)


def test_a_file_keeps_it(model, tmp_path):
    model.rescale(PAIRS, apart(PAIRS))
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    assert again.rescaling_ == model.rescaling_
    assert (again.burst_std_, again.burst_std_known_) == (model.burst_std_, True)
    assert again.diagnostics_.findings == model.diagnostics_.findings
    for one, other in zip(again.transform(DATA.bursts, return_trust=True),
                          model.transform(DATA.bursts, return_trust=True), strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.decode(again.embedding_), model.decode(model.embedding_))


def test_a_new_fit_forgets_it(model):
    model.rescale(PAIRS, apart(PAIRS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        model.set_params(max_iter=20).fit(POINTS)
    assert not hasattr(model, "rescaling_")
    assert not model.burst_std_known_


class Mine(nn.Module):
    """A network of the user's own."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n_in, 10), nn.Tanh(), nn.Linear(10, n_out))

    def forward(self, x):
        return self.layers(x)


OTHERS = {
    "scaled": {"feature_scale": [2.0, 0.25], "max_iter": 60},
    "paper": {"solver": "paper", "max_iter": 5},
    "paper, scaled": {"solver": "paper", "max_iter": 5, "feature_scale": [2.0, 0.25]},
    "modules": {"encoder": Mine(2, 2), "decoder": Mine(2, 2), "max_iter": 60},
    "paper, modules": {"solver": "paper", "encoder": Mine(2, 2), "decoder": Mine(2, 2), "max_iter": 5},
    "scaled modules": {"encoder": Mine(2, 2), "decoder": Mine(2, 2), "feature_scale": [2.0, 0.25], "max_iter": 60},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_models_of_every_kind(kind, tmp_path):
    torch.manual_seed(0)
    options = OTHERS[kind]
    model = fit(POINTS, **options)
    before, decoded = model.embedding_.copy(), model.decode(model.embedding_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # of short fits
        model.rescale(PAIRS, apart(PAIRS))
    factor = model.rescaling_.factor
    size = np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(DATA.bursts), factor * before, rtol=0, atol=1e-5 * size)
    np.testing.assert_allclose(model.decode(model.embedding_), decoded, rtol=0, atol=1e-5 * np.abs(decoded).max())
    own = {name: options[name] for name in ("encoder", "decoder") if name in options}
    again = LOCA.load(model.save(tmp_path / "m.safetensors"), **own)
    np.testing.assert_array_equal(again.transform(DATA.bursts), model.transform(DATA.bursts))
    np.testing.assert_array_equal(again.decode(model.embedding_), model.decode(model.embedding_))


def test_strays_have_the_same_scale():
    points = POINTS.copy()
    points[7] += [40.0, -30.0]
    model = fit(points, max_iter=80)
    assert list(model.strays_) == [7]
    before = model.embedding_.copy()
    model.rescale(PAIRS[~(PAIRS == 7).any(axis=1)], apart(PAIRS[~(PAIRS == 7).any(axis=1)]))
    np.testing.assert_array_equal(model.embedding_, model.rescaling_.factor * before)
    np.testing.assert_allclose(model.transform(points), model.embedding_, rtol=1e-9)
    assert list(model.strays_) == [7]
