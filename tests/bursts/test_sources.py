"""Where bursts come from: each builder against what it promises, and against wrong arguments."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pyloca import LOCA, BurstError, BurstStatistics, TrustWarning
from pyloca.bursts import (
    Bursts,
    from_function,
    from_image,
    from_image_patches,
    from_neighbors,
    from_simulator,
    from_table,
    from_time_series,
    on_manifold,
    sensor_array,
)
from pyloca.metrics import stress


def flat(x):
    """A linear instrument, R² → R³."""
    return x @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]])


def covariances(bursts):
    return np.array([np.cov(burst.T) for burst in bursts])


# -- what bursts carry ------------------------------------------------------------------------------------------


def test_sigma_and_provenance_travel_with_the_bursts():
    bursts = from_function(flat, np.random.RandomState(0).uniform(size=(30, 2)), 0.02, 10, random_state=0)
    assert bursts.burst_std == 0.02
    assert "σ = 0.02" in bursts.provenance
    for other in (bursts[3:9], Bursts(bursts), bursts.split(0.5, 0)[0]):
        assert (other.burst_std, other.provenance) == (bursts.burst_std, bursts.provenance)
    assert Bursts(bursts, burst_std=0.5).burst_std == 0.5
    assert Bursts(bursts.to_array()).burst_std is None
    with pytest.raises(ValueError, match="burst_std must be a number > 0"):
        Bursts(bursts.to_array(), burst_std=-1)


@pytest.mark.slow
def test_loca_uses_the_sigma_that_the_bursts_know():
    X = np.random.RandomState(0).uniform(size=(100, 2))
    bursts = from_function(flat, X, 0.02, 60, random_state=0)
    options = {"hidden_layers": (8,), "random_state": 0}
    model = LOCA(2, **options).fit(bursts)
    assert model.burst_std_ == 0.02
    assert stress(X, model.embedding_) < 1e-3
    assert LOCA(2, burst_std=0.04, **options).fit(bursts).burst_std_ == 0.04


# -- from_function ----------------------------------------------------------------------------------------------


def test_from_function_has_the_covariance_of_the_instrument():
    bursts = from_function(flat, np.zeros((400, 2)), 0.1, 50, random_state=0)
    expected = 0.01 * flat(np.eye(2)).T @ flat(np.eye(2))
    np.testing.assert_allclose(covariances(bursts).mean(axis=0), expected, atol=1e-3)
    again = from_function(flat, np.zeros((400, 2)), 0.1, 50, random_state=0)
    np.testing.assert_array_equal(bursts.to_array(), again.to_array())
    other = from_function(flat, np.zeros((400, 2)), 0.1, 50, random_state=1)
    assert not np.array_equal(bursts.to_array(), other.to_array())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latents": np.zeros(5)}, "latents has shape"),
        ({"latents": np.full((5, 2), np.nan)}, r"latents\[0\] is not finite"),
        ({"burst_std": 0}, "burst_std must be a number > 0"),
        ({"n_points": 2}, "n_points must be .* of at least 3"),
        ({"f": lambda x: x[:3]}, r"the measurement maps \(50, 2\) to \(3, 2\)"),
        ({"f": lambda x: np.where(np.arange(50)[:, None] == 12, np.inf, x)}, "not finite in burst 1"),
    ],
)
def test_from_function_refuses(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        from_function(**({"f": flat, "latents": np.zeros((5, 2)), "burst_std": 0.1, "n_points": 10} | change))
    assert isinstance(caught.value, BurstError) == (not {"burst_std", "n_points"} & set(change))


def test_without_a_seed_noise_is_drawn_anew():
    X = np.zeros((5, 2))
    image = np.add.outer(np.arange(60.0), np.arange(60.0) ** 2)
    for build in (
        lambda: from_function(flat, X, 0.1, 10),
        lambda: on_manifold(flat, X + 1, 0.1, 10),
        lambda: from_simulator(brownian, X, 0.1, 10),
        lambda: from_image_patches(image, X + 30, 8, 0.3),
    ):
        assert not np.array_equal(build().to_array(), build().to_array())


# -- sensor_array -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 4, 6, 11])
def test_a_ring_has_the_promised_sigma(n):
    bursts = sensor_array(lambda x: x, np.random.RandomState(0).uniform(size=(20, 2)), 0.5, n)
    assert bursts.burst_std == pytest.approx(np.sqrt(0.5**2 / 2 * n / (n - 1)))
    np.testing.assert_allclose(covariances(bursts), np.tile(bursts.burst_std**2 * np.eye(2), (20, 1, 1)), atol=1e-12)


def test_a_stencil_of_ones_own():
    corners = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])  # a tetrahedron
    bursts = sensor_array(lambda x: x, np.zeros((12, 3)), 0.1, stencil=corners)
    np.testing.assert_allclose(covariances(bursts)[0], bursts.burst_std**2 * np.eye(3), atol=1e-14)
    assert bursts.burst_std == pytest.approx(0.1 * np.sqrt(4 / 3))


def test_an_anisotropic_stencil_is_known_or_whitened():
    stencil = np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])
    bursts = sensor_array(lambda x: x, np.zeros((12, 2)), stencil=stencil)
    np.testing.assert_array_equal(bursts.perturbations[3], stencil)
    bursts = sensor_array(lambda x: x, np.zeros((12, 2)), stencil=stencil, whiten=True)
    np.testing.assert_allclose(covariances(bursts)[0], bursts.burst_std**2 * np.eye(2), atol=1e-12)
    assert "whitened" in bursts.provenance


def test_receivers_that_do_not_span():
    with pytest.raises(BurstError, match="lie on a line"):
        sensor_array(lambda x: x, np.zeros((12, 2)), stencil=[[0, 0], [1, 1], [2, 2]])
    with pytest.raises(BurstError, match="2 receivers cannot span 2 directions"):
        sensor_array(lambda x: x, np.zeros((12, 2)), stencil=[[0, 0], [1, 1]])
    with pytest.raises(BurstError, match="a ring lies in a plane"):
        sensor_array(lambda x: x, np.zeros((12, 3)))


# -- on_manifold ------------------------------------------------------------------------------------------------


def sphere_points(n=40):
    X = np.random.RandomState(0).standard_normal((n, 3))
    return 2 * X / np.linalg.norm(X, axis=1)[:, None]


def test_bursts_on_a_sphere_stay_on_it():
    X = sphere_points()
    bursts = on_manifold(lambda x: x, X, 0.02, 400, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(bursts.to_array(), axis=2), 2, rtol=1e-9)
    for x, burst in zip(X, bursts, strict=True):
        distance = 2 * np.arccos(np.clip(burst @ x / 4, -1, 1))
        assert np.sqrt(np.square(distance).mean() / 2) == pytest.approx(0.02, rel=0.1)


def test_bursts_on_a_surface_of_ones_own():
    """The sphere, given by its projection: two tangents, the same spread."""
    X = sphere_points()
    bursts = on_manifold(
        lambda x: x, X, 0.02, 400, surface=lambda x: 2 * x / np.linalg.norm(x, axis=1)[:, None], random_state=0
    )
    np.testing.assert_allclose(np.linalg.norm(bursts.to_array(), axis=2), 2, rtol=1e-9)
    values = np.linalg.eigvalsh(covariances(bursts))
    np.testing.assert_allclose(np.sqrt(values[:, 1:].mean()), 0.02, rtol=0.05)
    with pytest.raises(BurstError, match="the surface has 3 tangents"):
        on_manifold(lambda x: x, X, 0.02, 10, surface=lambda x: x)
    with pytest.raises(BurstError, match="latent 0 is at the origin"):
        on_manifold(lambda x: x, np.zeros((3, 3)), 0.1, 10)


# -- things that move -------------------------------------------------------------------------------------------


def brownian(states, dt, random):
    """dX = −X dt + 0.5 dW."""
    return states * (1 - dt) + 0.5 * np.sqrt(dt) * random.standard_normal(states.shape)


def test_restarts_of_a_simulator():
    states = np.random.RandomState(0).uniform(size=(60, 2))
    bursts = from_simulator(brownian, states, 0.01, 200, observe=flat, diffusion=0.5, random_state=0)
    assert bursts.burst_std == pytest.approx(0.05)
    expected = 0.05**2 * flat(np.eye(2)).T @ flat(np.eye(2))
    np.testing.assert_allclose(covariances(bursts).mean(axis=0), expected, atol=2e-4)
    two = from_simulator(brownian, states, 0.01, 200, observe=flat, diffusion=0.5, n_jobs=2, random_state=0)
    np.testing.assert_array_equal(bursts.to_array(), two.to_array())
    assert from_simulator(brownian, states, 0.01, 5).burst_std is None


def test_a_simulator_that_goes_wrong():
    states = np.zeros((4, 2))
    with pytest.raises(BurstError, match="step maps"):
        from_simulator(lambda s, dt, r: s[:1], states, 0.1, 5)
    with pytest.raises(BurstError, match="the simulator returns NaN or infinity in burst 0"):
        from_simulator(lambda s, dt, r: s + np.inf, states, 0.1, 5)
    with pytest.raises(ValueError, match="dt must be a number > 0"):
        from_simulator(brownian, states, 0, 5)


def test_windows_of_a_trajectory():
    """A fast drift does not widen the bursts, and σ is the diffusion's."""
    random = np.random.RandomState(0)
    steps = 0.03 * random.standard_normal((5000, 2)) + [0.2, 0]  # a drift of seven σ a step
    series = flat(np.cumsum(steps, axis=0))
    bursts = from_time_series(series, 50, diffusion=0.3, dt=0.01)
    assert len(bursts) == 99  # 50 steps each of 4999, the last 49 too few
    assert bursts.burst_std == pytest.approx(0.03)
    expected = 0.03**2 * flat(np.eye(2)).T @ flat(np.eye(2))
    np.testing.assert_allclose(covariances(bursts).mean(axis=0), expected, rtol=0.1, atol=1e-4)
    np.testing.assert_allclose(bursts[0].mean(axis=0), series[:51].mean(axis=0))
    assert len(from_time_series(series, 50, stride=10)) > 490


@pytest.mark.parametrize(
    ("options", "message"),
    [({"window": 30}, "a window of 30 steps needs 31"), ({"window": 5, "dt": 1.0}, "both diffusion and dt")],
)
def test_windows_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        from_time_series(np.zeros((20, 2)), **options)


# -- pictures ---------------------------------------------------------------------------------------------------


def spots(centres, radius=3.0, shape=(120, 160)):
    y, x = np.mgrid[: shape[0], : shape[1]]
    image = np.ones(shape)
    for cx, cy in centres:
        image[(x - cx) ** 2 + (y - cy) ** 2 <= radius**2] = 0
    return image


def test_spots_of_a_picture_are_bursts():
    centres = np.stack(np.meshgrid(np.arange(12, 150, 14), np.arange(12, 110, 14)), axis=-1).reshape(-1, 2)
    bursts = from_image(spots(centres), 0.5)
    found = np.array([burst.mean(axis=0) for burst in bursts])
    assert len(bursts) == len(centres)
    gap = np.linalg.norm(found[:, None] - centres, axis=2).min(axis=1)
    assert gap.max() < 0.01
    assert bursts.provenance.endswith("dropped: 0 clipped, 0 merged, 0 specks")


def test_clipped_merged_and_stray_spots_are_dropped_and_counted():
    centres = np.stack(np.meshgrid(np.arange(12, 150, 14), np.arange(12, 110, 14)), axis=-1).reshape(-1, 2)
    image = spots(
        [*centres, (1, 60), (centres[20][0] + 5, centres[20][1])]
    )  # at the border; one that touches its neighbour
    image[5, 5:8] = image[4, 5:8] = 0  # a speck of six pixels
    bursts = from_image(image, 0.5)
    assert len(bursts) == len(centres) - 1
    assert bursts.provenance.endswith("dropped: 1 clipped, 1 merged, 1 specks")


@pytest.mark.parametrize(
    ("image", "threshold", "message"),
    [
        (np.ones((9, 9, 3)), 0.5, "expected one grey channel"),
        (np.ones((9, 9)), 0.5, "no pixel is darker than threshold"),
        (np.zeros((9, 9)), 0.5, "of the pixels are darker"),
        (np.full((9, 9), np.nan), 0.5, "not finite"),
    ],
)
def test_pictures_without_spots(image, threshold, message):
    with pytest.raises(BurstError, match=message):
        from_image(image, threshold)


def test_a_trembling_camera():
    y, x = np.mgrid[:60, :80]
    image = np.sin(x / 7) + np.cos(y / 5)
    positions = np.random.RandomState(0).uniform(20, 40, size=(15, 2))
    bursts = from_image_patches(image, positions, 8, 0.3, 100, random_state=0)
    assert (len(bursts), bursts.n_features, bursts.burst_std) == (15, 64, 0.3)
    # along x the picture changes by cos(x/7)/7 a pixel: the tangents of a burst are the picture's derivatives
    statistics = BurstStatistics.from_bursts(bursts, 2)
    steps = np.arange(8) - 3.5
    slope = np.tile(np.cos((positions[0, 0] + steps) / 7) / 7, (8, 1)).ravel()
    basis = statistics.frames()[0][0]
    assert np.linalg.norm(basis @ slope) == pytest.approx(np.linalg.norm(slope), rel=0.02)
    with pytest.raises(BurstError, match="leaves the picture"):
        from_image_patches(image, positions * 2, 8, 0.3)


# -- points and tables ------------------------------------------------------------------------------------------


def test_neighbours_as_bursts_are_announced_loudly():
    Y = np.random.RandomState(0).uniform(size=(50, 2))
    with pytest.warns(TrustWarning, match="equally dense in all latent directions"):
        bursts = from_neighbors(Y, 8)
    assert (len(bursts), bursts.counts[0]) == (50, 9)
    np.testing.assert_array_equal(bursts[7][0], Y[7])
    with pytest.raises(BurstError, match="among 50 points"):
        from_neighbors(Y, 50)
    with pytest.raises(ValueError, match="n_neighbors must be"):
        from_neighbors(Y, n_neighbors=1)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "mapping"])
def test_tables(kind):
    columns = {"burst_id": ["b", "a", "b", "a", "a"], "x": [1.0, 2, 3, 4, 5], "y": [1, 2, 3, 4, 5]}
    frame = {"pandas": pd.DataFrame, "arrow": pa.table, "mapping": dict}[kind](columns)
    bursts = from_table(frame)
    np.testing.assert_array_equal(bursts[0], [[1, 1], [3, 3]])  # in order of appearance
    np.testing.assert_array_equal(bursts[1], [[2, 2], [4, 4], [5, 5]])
    assert from_table(frame, columns=["y"]).n_features == 1


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"x": [1.0]}, {}, "there is no column 'burst_id'"),
        ({"burst_id": [1]}, {}, "there is no column of measurements"),
        ({"burst_id": [1], "x": [1.0]}, {"columns": ["z"]}, "there is no column 'z'"),
        ({"burst_id": [], "x": []}, {}, "no rows"),
        ({"burst_id": [1], "x": ["word"]}, {}, r"do not hold numbers: 'x' \(<U4\).*exclude=\['x'\]"),
        ({"burst_id": [1, np.nan], "x": [1.0, 2]}, {}, "row 1 has no burst_id"),
    ],
)
def test_tables_that_cannot_be(columns, options, message):
    with pytest.raises(BurstError, match=message):
        from_table(columns, **options)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["b", "a", "b", "a"], ["b", "a"]),
        ([7, 5, 7, 5], [7, 5]),
        (pd.array([7, 5, 7, 5], dtype="Int64"), [7, 5]),
        (pd.Categorical(["b", "a", "b", "a"]), ["b", "a"]),
        (pa.array(["b", "a", "b", "a"]).dictionary_encode(), ["b", "a"]),
        (pd.to_datetime(["2021-05-01", "2020-01-01"] * 2).to_numpy("M8[D]"), ["2021-05-01", "2020-01-01"]),
    ],
    ids=["text", "integers", "Int64", "categories", "dictionary", "days"],
)
def test_ids_of_a_table(ids, expected):
    columns = {"run": ids, "p": [1.0, 2, 3, 4], "T": [5, 6, 7, 8]}
    frame = pa.table(columns) if isinstance(ids, pa.Array) else columns
    bursts = from_table(frame, "run", units={"p": "Pa"})
    assert (bursts.ids.tolist(), bursts.has_ids) == (expected, True)
    assert (bursts.feature_names, bursts.units) == (("p", "T"), ("Pa", ""))
    np.testing.assert_array_equal(bursts[1], [[2, 6], [4, 8]])


@pytest.mark.parametrize(
    "ids",
    [
        ["a", None, "b"],
        ["a", "", "b"],
        ["a", " ", "b"],
        [1.0, np.nan, 2.0],
        np.array(["2020", "NaT", "2021"], dtype="M8[s]"),
        pd.array([1, None, 2], dtype="Int64"),
        pd.array(["a", None, "b"], dtype="string"),
        pd.Categorical(["a", None, "b"]),
        pa.array(["a", None, "b"]),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([1, None, 2]),
        np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_row_without_an_id_is_named(ids):
    columns = {"run": ids, "x": [1.0, 2, 3]}
    frame = pa.table(columns) if isinstance(ids, pa.Array) else columns
    with pytest.raises(BurstError, match=r"^row 1 has no run"):
        from_table(frame, "run")


def test_columns_of_text_are_named_all_at_once():
    frame = pd.DataFrame({"burst_id": [0, 0], "x": [1.0, 2], "who": ["u", "v"], "on": [True, False]})
    frame["day"] = pd.to_datetime(["2020-01-01"] * 2)
    with pytest.raises(BurstError, match=r"'who' .*, 'on' \(bool\), 'day' .*exclude=\['who', 'on', 'day'\]"):
        from_table(frame)
    assert from_table(frame, exclude=["who", "on", "day"]).feature_names == ("x",)
    assert from_table(frame, columns=["x"]).feature_names == ("x",)
    with pytest.raises(BurstError, match=r"do not hold numbers: 'who'"):
        from_table(frame, columns=["x", "who"])


def test_gaps_in_columns_of_integers_are_missing_cells():
    """They are refused by burst and sensor; or their points are dropped, and nothing is moved."""
    for x in (pd.array([1, None, 3], dtype="Int64"), pa.array([1, None, 3])):
        columns = {"burst_id": [0, 0, 0], "x": x}
        frame = pa.table(columns) if isinstance(x, pa.Array) else pd.DataFrame(columns)
        with pytest.raises(BurstError, match=r"1 cell without a finite number \(x: 1 cell in burst 0\)"):
            from_table(frame)
        np.testing.assert_array_equal(from_table(frame, missing="drop")[0], [[1], [3]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"burst_id": [1, 2], "x": [1.0, 2, 3]}, "column 'burst_id' has 2 rows and column 'x' has 3"),
        ({"burst_id": [1, 2], "x": np.zeros((2, 2))}, r"column 'x' has shape \(2, 2\)"),
        ({"burst_id": 1, "x": [1.0]}, r"column 'burst_id' has shape \(\)"),
        ({"burst_id": [1, 2], "x": np.ma.array([1.0, 2], mask=[0, 1])}, "x: 1 cell in burst 2"),
        ({"burst_id": np.array([1, "a"], dtype=object), "x": [1.0, 2]}, r"mixes text and numbers.*astype\(str\)"),
    ],
)
def test_tables_that_are_broken(columns, message):
    with pytest.raises(BurstError, match=message):
        from_table(columns)


def test_two_columns_of_one_name():
    with pytest.raises(BurstError, match="two columns have the same name: burst_id, x, x"):
        from_table(pd.DataFrame([[0, 1.0, 2.0]], columns=["burst_id", "x", "x"]))


def test_no_builder_speaks_unasked(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_simulator(brownian, np.zeros((3, 2)), 0.1, 5, random_state=0)
    assert capsys.readouterr().out == ""
