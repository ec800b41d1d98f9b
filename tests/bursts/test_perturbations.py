"""Known perturbations in the container, in files and in tables; bursts from positions."""

import pickle
import warnings

import numpy as np
import pytest

from pyloca.bursts import (
    Bursts,
    from_function,
    from_positions,
    from_table,
    on_manifold,
    open_bursts,
    save_bursts,
    sensor_array,
)
from pyloca.errors import BurstError

RANDOM = np.random.RandomState(0)
Z = RANDOM.standard_normal((12, 5, 2))
Y = RANDOM.standard_normal((12, 5, 3))
IDS = [f"run {i}" for i in range(12)]
LENGTHS = [3 + i % 3 for i in range(12)]


def equal():
    return Bursts(Y, ids=IDS, perturbations=Z)


def ragged():
    return Bursts(
        [y[:n] for y, n in zip(Y, LENGTHS, strict=True)],
        ids=IDS,
        perturbations=[z[:n] for z, n in zip(Z, LENGTHS, strict=True)],
    )


def each(bursts):
    return list(bursts.perturbations)


@pytest.mark.parametrize("make", [equal, ragged])
def test_they_go_with_the_points(make):
    bursts = make()
    expected = [Z[i][: len(burst)] for i, burst in enumerate(bursts)]
    rows = [7, 2, 2, 11]
    for part, chosen in (
        (bursts, range(12)),
        (bursts[rows], rows),
        (bursts[::3], range(0, 12, 3)),
        (bursts[2:9][1:3], [3, 4]),
        (bursts.scaled([1, 2, 3])[rows], rows),
        (Bursts(bursts[rows], ids=range(4)), rows),
        (pickle.loads(pickle.dumps(bursts[rows])), rows),
        (Bursts.concatenate([bursts[:2], bursts[5:6]]), [0, 1, 5]),
    ):
        assert part.perturbed_dim == 2
        for mine, i in zip(each(part), chosen, strict=True):
            np.testing.assert_array_equal(mine, expected[i])
    for rows, block in bursts.blocks(max_numbers=20):
        assert bursts.perturbations_of(rows).shape == (*block.shape[:2], 2)
    train, held_out = bursts.split(0.25, 0)
    assert len(each(train)) + len(each(held_out)) == 12


def test_sigma_is_their_root_mean_square_unless_it_is_known():
    assert equal().burst_std == pytest.approx(np.sqrt(Z.var(axis=1, ddof=1).mean()))
    assert Bursts(Y, perturbations=Z, burst_std=0.5).burst_std == 0.5
    assert Bursts(equal(), perturbations=3 * Z).burst_std == equal().burst_std  # σ of the bursts stays
    assert equal()[:3].burst_std == equal().burst_std
    joined = Bursts.concatenate([equal(), Bursts(Y, ids=range(12), perturbations=2 * Z)])
    assert joined.burst_std == pytest.approx(equal().burst_std * np.sqrt(2.5))


def test_perturbations_of_chosen_bursts_can_be_set():
    part = Bursts(Bursts(Y)[[4, 1]], perturbations=Z[:2])
    np.testing.assert_array_equal(part.perturbations, Z[:2])
    np.testing.assert_array_equal(part[1], Y[1])
    cleaned = Bursts(Bursts(Y[:2]).set_points_aside([0], [1]), perturbations=[Z[0][1:], Z[1]])
    assert [z.tolist() for z in each(cleaned)] == [Z[0][1:].tolist(), Z[1].tolist()] and cleaned.screened
    np.testing.assert_array_equal(cleaned[0], Y[0][[0, 2, 3, 4]])


def test_without_perturbations():
    bursts = equal().without_perturbations()
    assert bursts.perturbations is None
    assert bursts.perturbed_dim is None
    assert bursts.burst_std == equal().burst_std
    with pytest.raises(BurstError, match="are not known"):
        bursts.perturbations_of([0])


def spoiled(change):
    z = Z.copy()
    change(z)
    return z


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Z[:, :4], r"shape \(12, 4, 2\); expected \(12, 5, k\)"),
        (Z[..., :0], "no columns"),
        (list(Z[:5]), "perturbations of 5 bursts; expected 12"),
        ([*Z[:11], Z[11, :4]], r"of burst 'run 11' have shape \(4, 2\); expected \(5, 2\)"),
        (Z.astype(str), "dtype <U"),
        (spoiled(lambda z: z[3, 1].fill(np.nan)), "burst 'run 3' contain"),
        (spoiled(lambda z: z[4, :, 1].fill(0.0)), "burst 'run 4' .* do not span k = 2 directions"),
        (spoiled(lambda z: z[4].fill(1.0)), "burst 'run 4' .* do not span"),
        (Z + 100, "times the extent of their burst from 0"),
        (np.zeros((12, 5, 5)) + Z[..., :1], "has 5 points; perturbations in k = 5 directions need at least 6"),
    ],
)
def test_bad_perturbations_are_refused_by_name(given, message):
    with pytest.raises(BurstError, match=message):
        Bursts(Y, ids=IDS, perturbations=given)


def test_parts_must_agree():
    with pytest.raises(BurstError, match="part 1 has no known perturbations"):
        Bursts.concatenate([equal(), Bursts(Y, ids=range(12))])


@pytest.mark.parametrize("make", [equal, ragged])
def test_files(make, tmp_path):
    bursts = make()
    again = open_bursts(save_bursts(bursts, tmp_path / "bursts.npz"))
    for mine, theirs in zip(each(again), each(bursts), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    with pytest.warns(UserWarning, match=r"perturbations are not written to .csv files. Use .npz"):
        save_bursts(bursts, tmp_path / "bursts.csv")


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "bursts.h5", "w") as file:
        file["bursts"], file["perturbations"] = Y, Z
    np.testing.assert_array_equal(open_bursts(tmp_path / "bursts.h5").perturbations, Z)


def test_tables(tmp_path):
    columns = {"burst_id": np.repeat(np.arange(12), 5), "dx": Z[..., 0].ravel(), "dy": Z[..., 1].ravel()}
    columns |= {name: Y[..., j].ravel() for j, name in enumerate("pqr")}
    bursts = from_table(columns, columns=["r", "p"], perturbations=["dy", "dx"], units=["Pa", "K"])
    assert (bursts.feature_names, bursts.units) == (("r", "p"), ("Pa", "K"))
    np.testing.assert_array_equal(bursts.perturbations, Z[..., ::-1])
    bursts = from_table(columns, perturbations=["dx", "dy"])
    np.testing.assert_array_equal(bursts.to_array(), Y)
    assert "perturbations: dx, dy" in bursts.provenance
    with pytest.raises(BurstError, match="no column 'dz' of perturbations; the columns with numbers are dx, dy"):
        from_table(columns, perturbations=["dz"])
    path = tmp_path / "table.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in [list(columns), *zip(*columns.values(), strict=True)]))
    np.testing.assert_array_equal(open_bursts(path, perturbations=["dx", "dy"], columns=["p"]).perturbations, Z)


# -- sources ----------------------------------------------------------------------------------------------------


def test_sources_know_their_perturbations():
    X = RANDOM.uniform(size=(12, 2))
    bursts = from_function(lambda x: x, X, 0.01, 6, random_state=0)
    np.testing.assert_allclose(bursts.to_array() - bursts.perturbations, np.repeat(X[:, None], 6, axis=1))
    bursts = sensor_array(lambda x: x, X, 0.01, stencil=[[0, 0], [3, 0], [0, 1]])
    np.testing.assert_allclose((bursts.to_array() - bursts.perturbations).std(axis=1), 0, atol=1e-12)
    bursts = on_manifold(lambda x: x, np.eye(3), 0.01, 9, random_state=0)
    assert bursts.perturbed_dim == 2
    angles = np.arccos(np.einsum("nmd,nd->nm", bursts.to_array(), np.eye(3)))
    np.testing.assert_allclose(np.linalg.norm(bursts.perturbations, axis=2), angles, rtol=1e-6)


def survey(n=300):
    x = np.random.RandomState(1).uniform(size=(n, 2))
    return x, np.c_[x, x[:, 0] ** 2]


def test_from_positions():
    x, y = survey()
    bursts = from_positions(x, y, 0.2, anchors=40)
    assert len(bursts) == 40
    for burst, z in zip(bursts, bursts.perturbations, strict=True):
        assert (np.linalg.norm(z, axis=1) <= 0.2).all()
        places = burst[:, :2] - z
        np.testing.assert_allclose(places, np.broadcast_to(places[0], places.shape), atol=1e-12)
    assert len(from_positions(np.r_[x, x], np.r_[y, y], 0.2)) == 300  # a place that was visited twice is one anchor
    there = from_positions(x, y, 0.2, anchors=[[0.5, 0.5]])
    assert there.counts[0] == (np.linalg.norm(x - 0.5, axis=1) <= 0.2).sum()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"radius": 0.01}, BurstError, r"anchor 0 at .* has 1 readings within 0.01; 4 are needed in 2 dimensions"),
        ({"radius": -1}, ValueError, "radius"),
        ({"readings": np.zeros((3, 1))}, BurstError, "300 positions and 3 readings"),
        ({"anchors": 0}, ValueError, "anchors must be an integer"),
        ({"anchors": 301}, BurstError, "readings were taken at 300 places"),
        ({"anchors": np.zeros((3, 3))}, BurstError, "anchors have 3 coordinates and positions have 2"),
        ({"positions": survey()[0] * [1, 0]}, BurstError, "on a line or in a plane"),
    ],
)
def test_from_positions_refuses(changes, error, message):
    x, y = survey()
    arguments = {"positions": x, "readings": y, "radius": 0.2} | changes
    with pytest.raises(error, match=message):
        from_positions(**arguments)


def test_datasets_do_not_know_their_perturbations():
    from pyloca import datasets

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data in (datasets.mushroom(20, 5), datasets.frame(20, 5, n_test=9), datasets.wifi(), datasets.sphere()):
            assert data.bursts.perturbed_dim is None
