"""`LOCA`: fit, transform, encode, decode, score, save and load.

Most of this file is the documentation of one public class; what its methods do is in the files beside it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from torch import nn

from pyloca._arguments import as_numbers
from pyloca._forks import COMPUTING
from pyloca._points import is_labelled
from pyloca.checks import whitening
from pyloca.errors import TrustWarning
from pyloca.estimator._embed import checked_points, embed, scaled_points
from pyloca.estimator._fitting import fitted_attributes
from pyloca.estimator._lazily import is_lazy, transform_labelled, transform_lazy
from pyloca.estimator._looks import fitted_html, plot_embedding
from pyloca.estimator._reading import Data, in_own_units, inner, read_like
from pyloca.estimator._rescale import rescaled
from pyloca.estimator._training import checkpoint_at
from pyloca.modelfile import load_model, save_model
from pyloca.networks import apply_rows, jacobian_rows
from pyloca.solvers import EVERY, CheckpointFile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LOCA"]


class LOCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """LOcal Conformal Autoencoder: coordinates isometric to the latent variables, learned from bursts of measurements.

    Parameters
    ----------
    n_components : int or "auto", default=2
        d, the dimension of the embedding. At least the intrinsic dimension k of the bursts; more when the latent
        manifold is curved (a sphere has k = 2 and needs d = 3). "auto" takes k if the aligned bursts are flat;
        otherwise it compares fits with k to k + 3 components (`pyloca.selection.select_n_components`).
    burst_std : float, optional
        σ, the standard deviation of a burst in the latent space. It alone sets the scale of the coordinates. None takes
        ``bursts.burst_std`` if it is known. Otherwise σ is estimated as in the paper, by the square root of the median
        first eigenvalue of the burst covariances, and coordinates are right up to one factor. Bursts whose
        perturbations are known have the scale of these, whatever σ.
    intrinsic_dim : int, optional
        k, the dimension of a burst. None takes that of known perturbations, or estimates it from the burst spectra.
    solver : {"fast", "paper"}, default="fast"
        "fast" takes seconds; "paper" is Algorithm 1 with its schedule. The latter does not use known perturbations, and
        raises if there are any: pass ``bursts.without_perturbations()``.
    encoder, decoder : torch.nn.Module, optional
        Your own networks, (n, D) → (n, d) and back. They are copied, not trained in place. None builds an MLP. The fast
        solver reinitializes linear layers that still have PyTorch's default weights; any other weights are kept as a
        warm start. It trains a linear map from input to output beside your network, as ours have one, unless the module
        has an attribute ``linear_skip = False`` (for networks whose bounds or symmetries must hold).
    hidden_layers : sequence of int, default=(50, 50)
        Widths of the hidden layers of the encoder; of the decoder too with the paper solver. The decoder of the fast
        solver has one layer of 128 to 1024 units, as many as held-out bursts ask for; with ``()`` both are affine.
    activation : {"tanh", "sigmoid", "softplus", "elu", "leaky_relu"}, default="tanh"
        Activation of the MLPs.
    decoder_activation : str, optional
        Activation of the decoder; None uses `activation`.
    feature_scale : "auto", None or (D,) array, default="auto"
        Divisor of each feature, applied before anything else. The exact solution does not depend on it; how well it is
        found does. "auto" takes the spread of each feature when features are of different kinds (different units, a
        table of named sensors, or spreads that differ more than those of one kind do), and otherwise leaves them alone,
        as is right for the pixels of an image; and it leaves out columns that do not measure the state (a time
        stamp, a label, noise alone), as `diagnostics_` says. None leaves them alone. Constant columns are always left
        out.
    measurement_noise : float, array or "estimate", optional
        Noise of the instrument, which bursts contain beside the perturbation: a number, (D,) or (N, D) for standard
        deviations, (D, D) or (N, D, D) for covariances (per sensor, or per burst and sensor). "estimate" finds the
        noise of each sensor, correlations between sensors and changes from place to place from what lies off the
        tangents, and says so when it cannot. ``fit(X, static=…)`` measures it. The paper solver refuses it, and so
        do bursts whose perturbations are known: their regression averages the noise.
    max_strays : float, default=0.01
        Fraction of the bursts that may be left out of the training, plus one, so that small sets may have a stray:
        those with fewer than k + 1 points, without spread, flat, clipped, or apart from all others. They are named in
        `strays_`, have coordinates, and a trust of 0. More of them are refused, and 0 refuses all; more that are only
        clipped are used, and named in ``diagnostics_.clipped``.
    validation_fraction : float, default=0.1
        Fraction of the bursts held out to choose how smooth the encoder is and when to stop. With 0, all are trained
        on, and the encoder is as smooth as is safe for most maps: too smooth for fine ones.
    tol : float, optional
        Training stops when the relative improvement of the held-out loss falls below this. None: 0.01 (fast), 0
        (paper).
    max_iter : int, optional
        Maximum number of iterations (fast) or epochs (paper), over all stages together.
    random_state : int, RandomState or None, default=None
        Seed of the split, the initial weights and the minibatches.
    device : str or torch.device, default="auto"
        "auto" is CUDA if present, else MPS (paper solver only: MPS has no float64), else the CPU. Only the CPU has been
        tested.
    verbose : int, default=0
        1 shows a progress bar on a terminal and in a notebook, log lines elsewhere (logger "pyloca", level INFO).
    callbacks : sequence of callables, default=()
        Each is called with a record (a dict) at every check of the training, and stops the training by returning True.

    Attributes
    ----------
    embedding_ : (N, d) array
        Embedding of the burst means, in the order of `burst_ids_`.
    burst_ids_ : (N,) array
        Ids of the bursts; their numbers when they have no ids.
    strays_ : dict
        Bursts that were left out of the training, by id, each with the reason.
    encoder_, decoder_ : torch.nn.Module
        Measurements to coordinates and back, both in the user's units.
    burst_std_ : float
        σ that was used; after `rescale`, in the unit of the known distances.
    burst_std_known_ : bool
        Whether σ was given or found by `rescale`; if not, it was estimated and coordinates are right up to one factor.
    rescaling_ : Rescaling
        Only after `rescale`: the factor with its standard error.
    intrinsic_dim_, n_components_, n_features_in_, n_iter_ : int
        k, d, D, and the iterations that were run.
    feature_names_in_ : (D,) array of str
        Only when the bursts have feature names.
    units_ : tuple of str or None
        Units of the features, if known.
    feature_scale_ : (D,) array
        Divisor of each feature; ones when all were left alone, infinite for columns that were left out.
    converged_ : bool
        Whether the training ended by itself.
    history_ : list of dict
        One record per check of the training.
    diagnostics_ : Diagnostics
        How well held-out bursts were whitened, and what follows from that.
    noise_ : Noise or None
        Measurement noise that was taken into account, in the units of the measurements.
    set_aside_ : (N,) array of int
        Points of each burst that were set aside as spikes: they lie many burst sizes away from the others.
    spike_rule_ : SpikeRule or None
        How spikes are recognised, also in bursts that are transformed. If the fit found none, they are points 1.5 times
        as far out as any of its own. None if the search for spikes is off (`Bursts.set_points_aside`).
    trust_scale_ : TrustScale
        Reference of ``transform(X, return_trust=True)``: what is usual for held-out points.
    validation_indices_ : (n,) array
        Positions of the held-out bursts.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
    >>> model = LOCA(n_components=2, burst_std=data.burst_std, hidden_layers=(10,), random_state=0)
    >>> model.fit_transform(data.bursts).shape
    (200, 2)
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        burst_std: float | None = None,
        intrinsic_dim: int | None = None,
        solver: str = "fast",
        encoder: nn.Module | None = None,
        decoder: nn.Module | None = None,
        hidden_layers: Sequence[int] = (50, 50),
        activation: str = "tanh",
        decoder_activation: str | None = None,
        feature_scale: str | ArrayLike | None = "auto",
        measurement_noise: float | ArrayLike | str | None = None,
        max_strays: float = 0.01,
        validation_fraction: float = 0.1,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str | torch.device = "auto",
        verbose: int = 0,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] = (),
    ) -> None:
        self.n_components = n_components
        self.burst_std = burst_std
        self.intrinsic_dim = intrinsic_dim
        self.solver = solver
        self.encoder = encoder
        self.decoder = decoder
        self.hidden_layers = hidden_layers
        self.activation = activation
        self.decoder_activation = decoder_activation
        self.feature_scale = feature_scale
        self.measurement_noise = measurement_noise
        self.max_strays = max_strays
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.callbacks = callbacks

    # Not metadata to route: these are options of a call.
    __metadata_request__fit = dict.fromkeys(("checkpoint", "checkpoint_every", "resume", "static"), UNUSED)
    __metadata_request__transform = {"return_trust": UNUSED}  # noqa: RUF012
    __metadata_request__inverse_transform = {"Z": UNUSED}  # noqa: RUF012

    # -- fitting ------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Data,
        y: None = None,
        *,
        static: Data | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = EVERY,
        resume: bool = True,
    ) -> LOCA:
        """Fit encoder and decoder to bursts.

        Parameters
        ----------
        X : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics, or path
            The bursts, or a file of them or of their statistics. Arrays may be of NumPy, Zarr or Dask, or an
            `xarray.DataArray` with the dimensions burst, point and feature.
        y : None
            Ignored; there for scikit-learn.
        static : bursts in any form that `X` has, optional
            Taken by the same instrument while nothing was perturbed: their spread is the measurement noise. Take them
            at several places if the noise may differ from place to place. Replaces `measurement_noise`.
        checkpoint : path, optional
            Keep the state of the training in this file, and the state before it in a second one, named .previous. If
            the file exists, the fit resumes from it, and ends bit for bit as it would have ended without the
            interruption; it raises if the file was written for other data or settings (`max_iter` may grow). A file
            that cannot be written is warned of, and ends no fit. Needs an integer `random_state`. Delete both files
            once the model is saved.
        checkpoint_every : float, default=10.0
            Seconds between two writes of the checkpoint; it is also written when the fit is interrupted.
        resume : bool, default=True
            False starts from scratch, and replaces a checkpoint that is there.

        Returns
        -------
        LOCA
            This estimator, fitted.

        Raises
        ------
        BurstError
            If the bursts cannot be used; the message names the burst and the sensor.
        ValueError
            If a parameter is wrong.
        ConvergenceError
            If the loss is not finite and cannot be recovered.
        ModelFileError
            If the checkpoint is damaged, and the one before it as well, or belongs to another fit.

        Warns
        -----
        TrustWarning
            If a check says that the result should not be believed.
        UserWarning
            If the checkpoint cannot be written, or the newest is damaged and the fit resumes from the one before it.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> bursts = datasets.mushroom(n_bursts=200, n_points=20, random_state=0).bursts
        >>> LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(bursts).n_components_
        2
        """
        self._become(self._fit(X, static, checkpoint_at(self, checkpoint, checkpoint_every, resume)))
        for message in self.diagnostics_.warnings:
            warnings.warn(message, TrustWarning, stacklevel=2)
        return self

    def fit_transform(self, X: Data, y: None = None) -> NDArray[np.float64]:
        """Fit, and embed the burst means.

        Parameters
        ----------
        X : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics, or path
        y : None
            Ignored; there for scikit-learn.

        Returns
        -------
        (N, d) array
            Bit for bit what ``transform(X)`` gives afterwards.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> bursts = datasets.mushroom(n_bursts=200, n_points=20, random_state=0).bursts
        >>> LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit_transform(bursts).shape
        (200, 2)
        """
        return self.fit(X).embedding_

    def _become(self, fitted: dict[str, Any], *, keep: bool = False) -> None:
        """Take over fitted attributes, in place of all others unless these are kept.

        In one assignment: an interrupt, or another thread, finds the estimator as it was or as it will be.
        """
        kept = {name: value for name, value in vars(self).items() if keep or name.startswith("_") or name[-1] != "_"}
        self.__dict__ = kept | fitted

    def _fit(
        self,
        X: Data,
        static: Data | None = None,
        checkpoint: Callable[[dict[str, Any]], CheckpointFile] | None = None,
    ) -> dict[str, Any]:
        return fitted_attributes(self, X, static, checkpoint)

    # -- using the fit ------------------------------------------------------------------------------------------

    @overload
    def transform(self, X: Data, *, return_trust: Literal[False] = ...) -> NDArray[np.float64]: ...

    @overload
    def transform(self, X: Data, *, return_trust: Literal[True]) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def transform(
        self, X: Data, *, return_trust: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute coordinates of points or bursts. Rows do not influence each other.

        Parameters
        ----------
        X : (n, D) array or data frame, or bursts in any form that `fit` takes
            Bursts are embedded at their means: (N, d), bit for bit what `fit_transform` returns for them. For an array
            of Dask the result is one too, and computed later; for an `xarray.DataArray` with a dimension ``feature``
            (and ``burst`` and ``point`` if it holds bursts) it is one with its other coordinates.
        return_trust : bool, default=False
            Also return one number per row: the fraction of held-out measurements that are at least as strange, by their
            round trip through the decoder and their distance to the training bursts. It is uniform between 0 and 1 for
            measurements of the same kind, and near 0 for those off the manifold.

        Returns
        -------
        Z : (n, d) array
        trust : (n,) array
            Only if `return_trust` is true.

        Raises
        ------
        ValueError
            If the points are not finite numbers, or their features are not those of the fit.
        BurstError
            If bursts cannot be used, or their features are not those of the fit; also a `ValueError`.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> model.transform(data.Y).shape, model.transform(data.bursts[:5]).shape
        ((200, 2), (5, 2))
        """
        check_is_fitted(self)
        found: Any = self._transform(X, return_trust)
        return found

    def _transform(self, X: Any, return_trust: bool, *, named: bool = False, first: int = 0) -> Any:
        """Embed anything; `named` says that the names of its features were checked, `first` which row X begins with."""
        if is_lazy(X):
            return transform_lazy(self, X, return_trust)
        if is_labelled(X):
            return transform_labelled(self, X, return_trust)
        return embed(self, X, return_trust, named=named, first=first)

    def encode(self, Y: ArrayLike) -> NDArray[np.float64]:
        """Apply the encoder, point by point.

        Parameters
        ----------
        Y : (…, D) array
            Measurements, with any leading axes.

        Returns
        -------
        (…, d) array

        Raises
        ------
        ValueError
            If the last axis does not have D features, or a value is not finite.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> model.encode(data.bursts.to_array()).shape, model.encode(data.Y[0]).shape
        ((200, 20, 2), (2,))
        """
        check_is_fitted(self)
        return apply_rows(inner(self, "encoder"), scaled_points(self, Y), self.n_components_)

    def encode_with_jacobian(self, Y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Apply the encoder and compute its derivative, point by point, as error or force propagation needs it.

        Parameters
        ----------
        Y : (…, D) array
            Measurements, with any leading axes.

        Returns
        -------
        values : (…, d) array
            The same as ``encode(Y)``.
        jacobians : (…, d, D) array
            ∂ρ/∂y, in units of the measurements.

        Raises
        ------
        ValueError
            As for `encode`.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> Z, J = model.encode_with_jacobian(data.Y)
        >>> Z.shape, J.shape
        ((200, 2), (200, 2, 2))
        """
        values = self.encode(Y)
        slopes = jacobian_rows(inner(self, "encoder"), scaled_points(self, Y), self.n_components_)  # (…, d, D)
        return values, slopes / self.feature_scale_

    def decode(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Apply the decoder, point by point.

        Parameters
        ----------
        Z : (…, d) array
            Coordinates, with any leading axes.

        Returns
        -------
        (…, D) array
            Measurements, in the units of the data.

        Raises
        ------
        ValueError
            If the last axis does not have d coordinates, or a value is not finite.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> model.decode(model.embedding_[:3]).shape
        (3, 2)
        """
        check_is_fitted(self)
        points = checked_points(Z, self.n_components_, "Z", [f"z{i}" for i in range(self.n_components_)])
        decoded = apply_rows(inner(self, "decoder"), points, self.n_features_in_)
        return in_own_units(self, decoded)

    def inverse_transform(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Decode rows; scikit-learn's name for `decode` on 2-d arrays.

        Parameters
        ----------
        Z : (n, d) array

        Returns
        -------
        (n, D) array

        Raises
        ------
        ValueError
            If `Z` does not have two axes, or as for `decode`.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> model.inverse_transform(model.embedding_).shape
        (200, 2)
        """
        check_is_fitted(self)
        rows = as_numbers("Z", Z)
        if rows.ndim != 2:
            raise ValueError(
                f"Expected 2D array of shape (n, {self.n_components_}); Z has shape {rows.shape}. Reshape your data, "
                "or use decode, which takes any leading axes."
            )
        return self.decode(Z)

    def score(self, X: Data, y: None = None) -> float:
        """Return minus the mean whitening loss tr G − log det G − k: higher is better, 0 is perfect.

        Bursts that a fit would leave out do not count (`max_strays`).

        One component more than needed often scores a little better, so a grid search over `n_components` takes
        too many; `pyloca.selection.select_n_components` and ``LOCA("auto")`` ask whether the gain is more than chance.

        Parameters
        ----------
        X : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics, or path
        y : None
            Ignored; there for scikit-learn.

        Returns
        -------
        float

        Raises
        ------
        BurstError
            If the bursts cannot be used, or their features are not those of the fit.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts[:150])
        >>> -1 < model.score(data.bursts[150:]) < 0
        True
        """
        with COMPUTING:
            seen = read_like(self, X).without_strays()
        losses = whitening(seen.encoder, seen.statistics, self.burst_std_).losses
        return -float(np.average(losses, weights=seen.statistics.weights))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def rescale(self, pairs: ArrayLike, distances: ArrayLike) -> LOCA:
        """Multiply the coordinates by one factor, so that they agree with known latent distances.

        Without σ, coordinates are right up to one factor; a few distances measured with a ruler find it, better than σ
        from the same distances (`pyloca.selection.estimate_burst_std`) would. The factor is the weighted mean of the
        logarithmic ratios of known to embedded distances, long ones counting more; from four distances on Huber's, so
        that one wrong distance does no harm. Encoder, decoder, `embedding_`, `burst_std_`, the trust scale and the
        lengths in `diagnostics_` change together; what has no unit, and `history_`, does not.

        Parameters
        ----------
        pairs : (n, 2) array
            Pairs of bursts by their ids (`burst_ids_`: rows, if the bursts were given no ids). Where ids are text,
            integers are rows.
        distances : (n,) array
            Known latent distance of each pair, on a straight line. In a surface that bends (`n_components` > k) that is
            the distance through space, not along the surface.

        Returns
        -------
        LOCA
            This estimator. `rescaling_` has the factor and its standard error: from the scatter of the ratios, and from
            the embedding's own expected error, which alone it is for a single pair.

        Raises
        ------
        BurstError
            If a burst is unknown, or has no distance to the other of its pair; also a `ValueError`.
        ValueError
            If shapes do not match, or a distance is not a finite number > 0.

        Warns
        -----
        TrustWarning
            If the distances disagree with each other, or with a known σ, by more than errors explain; also a finding.

        Examples
        --------
        >>> import numpy as np
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(hidden_layers=(10,), random_state=0).fit(data.bursts)  # σ is not known
        >>> pairs = np.array([[0, 1], [2, 3], [4, 5]])
        >>> apart = np.linalg.norm(data.X[pairs[:, 0]] - data.X[pairs[:, 1]], axis=1)
        >>> bool(abs(model.rescale(pairs, apart).burst_std_ / data.burst_std - 1) < 0.1)
        True
        """
        check_is_fitted(self)
        earlier = {finding.message for finding in self.diagnostics_.findings}
        self._become(rescaled(self, pairs, distances), keep=True)
        for message in self.diagnostics_.warnings:
            if message not in earlier:
                warnings.warn(message, TrustWarning, stacklevel=2)
        return self

    # -- looking at it ------------------------------------------------------------------------------------------

    def plot(self, color: str | int | ArrayLike | None = None) -> Figure:
        """Draw the embedding. Bursts that were left out of the training (`strays_`) are not drawn.

        Parameters
        ----------
        color : None, str, int or (N,) array, default=None
            Colours of the bursts. "trust", "error" (of the round trip) and "loss" (whitening) are the maps of
            `diagnostics_`; any other text is the name of a sensor, an integer its position. A model does not keep the
            measurements: a sensor is coloured by the decoder's value at each burst. An array has one number per burst.

        Returns
        -------
        matplotlib.figure.Figure
            Not registered with pyplot; a notebook shows it, ``.savefig`` writes it.

        Raises
        ------
        ValueError
            If `color` is none of these.

        Examples
        --------
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> model.plot("trust").axes[-1].get_ylabel()
        'trust'
        """
        check_is_fitted(self)
        return plot_embedding(self, color)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # raises AttributeError where scikit-learn shows text
        return (lambda: fitted_html(self)) if hasattr(self, "diagnostics_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "diagnostics_"):
            bundle["text/html"] = fitted_html(self)
        return bundle

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one `.safetensors` file, atomically.

        Parameters
        ----------
        path : path

        Returns
        -------
        Path
            The file that was written.

        Raises
        ------
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = LOCA.load(model.save(f"{folder}/mushroom.safetensors"))
        >>> bool((again.transform(data.Y) == model.transform(data.Y)).all())
        True
        """
        check_is_fitted(self)
        return save_model(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: nn.Module | None = None, decoder: nn.Module | None = None
    ) -> LOCA:
        """Read a model that `save` wrote.

        Parameters
        ----------
        path : path
        encoder, decoder : torch.nn.Module, optional
            Your own modules, if the model was fitted with such: the file holds only their weights.

        Returns
        -------
        LOCA

        Raises
        ------
        ModelFileError
            If the file is not a model, or was altered or damaged.

        Examples
        --------
        >>> import tempfile
        >>> from pyloca import LOCA, datasets
        >>> data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
        >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = model.save(f"{folder}/mushroom.safetensors")
        ...     LOCA.load(path).n_components_
        2
        """
        return load_model(path, cls, encoder=encoder, decoder=decoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False
        return tags
