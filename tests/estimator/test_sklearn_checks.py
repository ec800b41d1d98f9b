"""scikit-learn's own checks of an estimator."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.fixes import parse_version

from helpers import fitted
from pyloca import LOCA


class RowLOCA(LOCA):
    """LOCA for scikit-learn's checks, whose data are rows: each becomes a burst of four points along the first axis.

    The checks like their rows in separate clusters, which LOCA refuses, so a wave first spreads them over a cube.
    """

    def fit(self, X, y=None):
        return super().fit(self._bursts(X))

    def transform(self, X):
        return super().transform(self._spread(X))

    def score(self, X, y=None):
        return super().score(self._bursts(X))

    @staticmethod
    def _spread(X):
        rows = np.asarray(X)
        with np.errstate(invalid="ignore"):
            return np.sin(7.0 * rows) if rows.dtype.kind in "fiu" else rows

    def _bursts(self, X):
        rows = self._spread(X)
        if rows.ndim != 2 or rows.dtype.kind not in "fiu":
            return rows
        return rows[:, None] + np.array([-0.1, -0.05, 0.05, 0.1])[:, None] * np.eye(1, rows.shape[1])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags


SMALL = {"intrinsic_dim": 1, "burst_std": 1.0, "hidden_layers": (3,), "max_iter": 2, "random_state": 0}
# "auto" would leave out all columns but the first, in which alone these bursts have points
ROWS = RowLOCA(n_components=1, feature_scale=None, **SMALL)
CHECKS = list(estimator_checks_generator(ROWS))
NOT_RUN = {"check_array_api_input": "needs array-api-strict and a switch set before SciPy is imported"}
# name: (why it fails, what it says)
EXPECTED_FAILURES = {
    "check_complex_data": ("complex bursts are refused by their dtype", "dtype complex128; expected real numbers"),
    "check_dtype_object": ("bursts of dtype object are refused, never converted", "bursts has dtype object"),
    "check_estimators_nan_inf": ("the message says which burst has nan", "doesn't check for NaN and inf in fit"),
    "check_estimator_sparse_tag": ("a sparse matrix is not an array of bursts", "didn't raise the appropriate error"),
    "check_estimator_sparse_array": ("a sparse matrix is not an array of bursts", "fail gracefully on sparse data"),
    "check_estimator_sparse_matrix": ("a sparse matrix is not an array of bursts", "fail gracefully on sparse data"),
    "check_estimators_empty_data_messages": (
        "the message gives the shape (N, M, D)",
        r"\(12, 4, 0\), which is empty",
    ),
    "check_fit2d_1sample": ("the message counts bursts, not samples", "there are 1 bursts; at least 10 are needed"),
}


def check_name(check):
    return check.func.__name__


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.9"), reason="1.6.0 has not all of them yet")
def test_the_checks_that_are_left_out_or_expected_to_fail_exist():
    assert set(NOT_RUN) | set(EXPECTED_FAILURES) <= {check_name(check) for _, check in CHECKS}


@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # two iterations make no good fit
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{i}-{check_name(check)}")
        for i, (estimator, check) in enumerate(CHECKS)
        if check_name(check) not in NOT_RUN
    ],
)
def test_scikit_learn(estimator, check):
    if check_name(check) not in EXPECTED_FAILURES:
        check(estimator)
        return
    _, words = EXPECTED_FAILURES[check_name(check)]
    with pytest.raises((AssertionError, ValueError), match=words):  # one that passes fails here
        check(estimator)


# -- on LOCA itself: checks that bring no rows of their own ----------------------------------------------------------

ITSELF = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
]


@pytest.mark.parametrize("name", ITSELF)
def test_scikit_learn_on_loca_itself(name):
    check = getattr(estimator_checks, name)
    check("LOCA", LOCA()) if "name" in inspect.signature(check).parameters else check(LOCA())


def test_points_are_checked_as_scikit_learn_checks_them():
    """Messages that scikit-learn's own checks look for, of a model that was fitted to bursts."""
    model, Y = fitted()
    with pytest.raises(ValueError, match="X has 2 features, but LOCA is expecting 3 features as input"):
        model.transform(Y[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        model.transform(Y[0])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.transform(np.where(Y > 0, np.nan, Y))
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.transform(Y[:5] + 1j)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        model.transform(sp.csr_matrix(Y[:5]))
    with pytest.raises(NotFittedError):
        LOCA().transform(Y[:5])
