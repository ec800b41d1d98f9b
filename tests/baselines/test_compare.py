"""One table of all methods."""

import matplotlib.figure
import numpy as np
import pytest
from sklearn.manifold import Isomap, trustworthiness

from helpers import planar_bursts, planar_statistics
from pyloca import BurstError, datasets
from pyloca.baselines import (
    BurstAlignment,
    _compare,
    compare,
)
from pyloca.baselines._kernels import Euclidean


def test_comparison_with_the_truth():
    data = datasets.mushroom(n_bursts=250, n_points=50, random_state=0)
    result = compare(data.bursts, data.X, burst_std=data.burst_std)
    by_name = {score.method: score for score in result.scores}
    assert next(iter(by_name)) == "LOCA" and len(by_name) == 7
    for score in result.scores:
        assert not score.error
        assert score.seconds > 0 and np.isfinite(score.megabytes)
        assert 0 <= score.recall <= 1 and 0 <= score.trustworthiness <= 1 and 0 <= score.continuity <= 1
    for other in ("DiffusionMaps", "AnisotropicDiffusionMaps", "Autoencoder"):
        assert by_name["LOCA"].stress < 0.1 * by_name[other].stress
        assert by_name["LOCA"].whitening < 0.3 * by_name[other].whitening
    text = str(result)
    assert "stress" in text and len(text.splitlines()) == 8
    assert isinstance(result.plot(), matplotlib.figure.Figure)
    assert result.to_dicts()[0]["method"] == "LOCA"


def test_comparison_without_the_truth():
    _, bursts = planar_bursts(100, 30)
    result = compare(bursts, methods=["BurstAlignment", "DiffusionMaps"])
    assert np.isnan(result.scores[0].stress)
    assert result.scores[0].recall > 0.9
    assert result.scores[0].whitening < result.scores[1].whitening
    assert "stress cannot be told" in str(result)
    assert isinstance(result.plot(), matplotlib.figure.Figure)


def test_comparison_with_estimators_of_ones_own():
    X, bursts = planar_bursts(100, 30)
    result = compare(bursts, X, {"sklearn": Isomap(n_neighbors=8), "two": BurstAlignment(1), "ours": BurstAlignment(2)})
    by_name = {score.method: score for score in result.scores}
    assert "cannot hold bursts" in by_name["two"].error
    assert "two" not in result.embeddings
    assert "failed: n_components" in str(result)
    assert by_name["ours"].stress < by_name["sklearn"].stress


def test_comparison_refuses():
    X, bursts = planar_bursts(60, 20)
    with pytest.raises(ValueError, match="methods must be some of LOCA"):
        compare(bursts, methods=["UMAP"])
    with pytest.raises(BurstError, match=r"X has shape \(59, 2\)"):
        compare(bursts, X[:59])


def test_trustworthiness_is_scikit_learns():
    random = np.random.RandomState(0)
    X, Z = random.standard_normal((80, 3)), random.standard_normal((80, 2))
    reference = _compare._pairwise(Euclidean(X))
    trust, continuity, recall = _compare._neighborhoods(reference, Z)
    assert trust == pytest.approx(trustworthiness(X, Z, n_neighbors=10))
    assert continuity == pytest.approx(trustworthiness(Z, X, n_neighbors=10))
    near = [np.argsort(np.linalg.norm(P[:, None] - P, axis=2), axis=1)[:, 1:11] for P in (X, Z)]
    assert recall == pytest.approx(np.mean([len(set(a) & set(b)) for a, b in zip(*near, strict=True)]) / 10)


def test_whitening_of_the_truth_and_of_a_stretch():
    X, statistics = planar_statistics(300)
    judge = _compare._Whitening(statistics)
    assert judge(X) < 1e-10
    assert judge(5 * X + 1) < 1e-10  # one factor is free
    stretched = X * [1, 2]
    expected = np.array([1, 4]) / 2.5
    assert judge(stretched) == pytest.approx((expected - np.log(expected) - 1).sum(), rel=1e-6)
