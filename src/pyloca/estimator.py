"""`LOCA`, the scikit-learn estimator: bursts in, standardized coordinates out."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from pyloca._checks import is_positive, is_whole
from pyloca.bursts import Bursts, as_bursts
from pyloca.bursts._container import split_indices
from pyloca.diagnostics import Finding, TrustScale, diagnose_fit, whitening
from pyloca.errors import BurstError, TrustWarning
from pyloca.geometry import BurstStatistics
from pyloca.networks import ACTIVATIONS, apply_rows
from pyloca.solvers import SOLVERS, CheckpointFile, Monitor, Problem

__all__ = ["LOCA"]

MIN_TRAINING = 8  # bursts that are left to train on
_SHAPE = {"curved", "folded", "uneven_shape", "poor_fit"}  # findings that another d may cure

Data = Bursts | BurstStatistics | ArrayLike | Sequence[ArrayLike] | str | os.PathLike[str]


class LOCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """LOcal Conformal Autoencoder: coordinates isometric to the latent variables, from bursts of measurements.

    Parameters
    ----------
    n_components : int or "auto", default=2
        d, the dimension of the embedding. At least the intrinsic dimension k of the bursts; more when the latent
        manifold is curved (a sphere has k = 2 and needs d = 3). "auto" takes k where the aligned bursts are flat, else
        compares fits of k to k + 3 components (`pyloca.selection.select_n_components`).
    burst_std : float, optional
        σ, the standard deviation of a burst in the latent space. It alone sets the scale of the coordinates. None takes
        the σ that the bursts know of (``bursts.burst_std``); where they know none, the square root of the median first
        eigenvalue of the burst covariances, as the paper does; then coordinates are right up to one factor.
    intrinsic_dim : int, optional
        k, the dimension of a burst. None reads it off the burst spectra.
    solver : {"fast", "paper"}, default="fast"
        "fast" needs seconds; "paper" is Algorithm 1 with its schedule.
    encoder, decoder : torch.nn.Module, optional
        Your own networks, (n, D) → (n, d) and back. They are copied, not trained in place. None makes an MLP. The fast
        solver draws linear layers anew that still have PyTorch's default weights; any other weights are a warm start.
    hidden_layers : sequence of int, default=(50, 50)
    activation : {"tanh", "sigmoid", "softplus", "elu", "leaky_relu"}, default="tanh"
    decoder_activation : str, optional
        None uses `activation`.
    measurement_noise : float or "estimate", optional
        Standard deviation of isotropic noise of the instrument, removed from the burst covariances. "estimate" reads
        it off what lies outside the k leading directions. Used by the fast solver.
    validation_fraction : float, default=0.1
        Bursts held out to choose how smooth the encoder is and when to stop.
    tol : float, optional
        Relative gain of the held-out loss below which training counts as idle. None: 0.01 (fast), 0 (paper).
    max_iter : int, optional
        At most this many iterations (fast) or epochs (paper), over all stages together.
    random_state : int, RandomState or None
    device : str or torch.device, default="auto"
        "auto" is CUDA when present, else MPS (paper solver only: it has no float64), else the CPU.
    verbose : int, default=0
        1 shows a progress bar on a terminal, log lines elsewhere.
    callbacks : sequence of callables
        Each is called with a record (a dict) at every check of the training, and stops it by returning True.

    Attributes
    ----------
    embedding_ : (N, d)
        Embedding of the burst means.
    encoder_, decoder_ : torch.nn.Module
    burst_std_, intrinsic_dim_, n_components_, n_features_in_, n_iter_, converged_
    history_ : list of dict
        One record a check.
    diagnostics_ : Diagnostics
        How well held-out bursts were whitened, and what that says.
    trust_scale_ : TrustScale
        What ``transform(Y, return_trust=True)`` measures new points by.
    validation_indices_ : (n,)
        Which bursts were held out.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> data = datasets.mushroom(n_bursts=200, n_points=20)
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
        measurement_noise: float | str | None = None,
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
        self.measurement_noise = measurement_noise
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.callbacks = callbacks

    # -- fitting ------------------------------------------------------------------------------------------------

    def fit(self, bursts: Data, y: None = None, *, checkpoint: str | os.PathLike[str] | None = None) -> LOCA:
        """Find encoder and decoder for `bursts`: (N, M, D), `Bursts`, `BurstStatistics`, or a path to a file.

        How far the training is can be kept in the file `checkpoint`, which needs a whole number as `random_state`. If
        the file is there, the fit goes on from it, or refuses it when it is of other data or settings (`max_iter` may
        grow). It is yours to remove once the model is saved.
        """
        self._fit(bursts, checkpoint)
        for message in self.diagnostics_.warnings:
            warnings.warn(message, TrustWarning, stacklevel=2)
        return self

    def fit_transform(self, bursts: Data, y: None = None) -> NDArray[np.float64]:
        """Fit and return the embedding of the burst means, (N, d)."""
        return self.fit(bursts).embedding_

    def _fit(self, bursts: Data, checkpoint: str | os.PathLike[str] | None) -> None:
        self._check_parameters()
        if checkpoint is not None and not is_whole(self.random_state, 0):
            raise ValueError(
                "a fit with a checkpoint needs random_state, a whole number: it can only go on as it began."
            )
        raw, statistics = self._read(bursts)
        d, compared = self._choose_dimensions(raw, statistics)
        self._train(raw, statistics, d, checkpoint)
        if self.n_components == "auto" and not compared and _SHAPE & {f.name for f in self.diagnostics_.findings}:
            better = self._compare_dimensions(raw, statistics)  # the alignment found it flat, and the fit did not
            if better != d:
                self._train(raw, statistics, better, None)

    def _train(
        self, raw: Bursts | None, statistics: BurstStatistics, d: int, checkpoint: str | os.PathLike[str] | None
    ) -> None:
        sigma = statistics.burst_std(self._known_std(raw))
        random = check_random_state(self.random_state)
        train, validation = split_indices(len(statistics), self.validation_fraction, random)
        if len(train) < MIN_TRAINING:
            raise BurstError(
                f"{len(train)} of the {len(statistics)} bursts are left for training; {MIN_TRAINING} are needed. "
                "Lower validation_fraction, or measure more bursts."
            )
        self._check_modules(statistics.n_features, d)
        problem = Problem(
            statistics=statistics,
            bursts=raw,
            train=train,
            validation=validation,
            n_components=d,
            burst_std=sigma,
            hidden_layers=tuple(self.hidden_layers),
            activation=self.activation,
            decoder_activation=self.activation if self.decoder_activation is None else self.decoder_activation,
            encoder=self.encoder,
            decoder=self.decoder,
            device=self._device(),
            seed=int(random.randint(np.iinfo(np.int32).max)),
            max_iter=None if self.max_iter is None else int(self.max_iter),
            tol=self.tol,
        )
        facts = {"solver": self.solver, **problem.facts()}
        file = None if checkpoint is None else CheckpointFile(Path(checkpoint), facts)
        monitor = Monitor(self.callbacks, self.verbose, file)
        try:
            solution = SOLVERS[self.solver](problem, monitor)
        finally:
            monitor.close()
        self.encoder_, self.decoder_ = solution.encoder.cpu().eval(), solution.decoder.cpu().eval()
        self.history_ = monitor.history
        self.n_iter_ = monitor.history[-1]["iteration"] if monitor.history else 0
        self.converged_ = solution.converged
        self.burst_std_ = sigma
        self.intrinsic_dim_ = statistics.intrinsic_dim
        self.n_components_ = d
        self.n_features_in_ = statistics.n_features
        self.validation_indices_ = validation
        self.embedding_ = apply_rows(self.encoder_, statistics.means, d)
        held_out = validation if len(validation) else np.arange(len(statistics))
        self.diagnostics_ = diagnose_fit(
            self.encoder_,
            statistics,
            sigma,
            held_out,
            decoder=self.decoder_,
            bursts=raw,
            restarts=solution.restarts,
        )
        self.trust_scale_ = TrustScale.calibrate(
            self.encoder_,
            self.decoder_,
            statistics.means[held_out] if raw is None else raw[held_out],
            self.embedding_[train],
        )
        if solution.unfinished:
            decoder = (
                "was cut short" if solution.unfinished == "decode" else "is not trained: inverse_transform gives noise"
            )
            self.diagnostics_ = self.diagnostics_.with_finding(
                Finding(
                    "unfinished",
                    f"training was ended by max_iter or a callback in stage '{solution.unfinished}', after "
                    f"{self.n_iter_} iterations. The decoder {decoder}. Allow more iterations.",
                )
            )

    def _read(self, bursts: Data) -> tuple[Bursts | None, BurstStatistics]:
        if isinstance(bursts, BurstStatistics):
            if self.intrinsic_dim is not None and self.intrinsic_dim != bursts.intrinsic_dim:
                raise BurstError(
                    f"intrinsic_dim = {self.intrinsic_dim}, but the BurstStatistics have k = {bursts.intrinsic_dim}."
                )
            return None, bursts.without_noise(self.measurement_noise)
        raw = as_bursts(bursts)
        most = None if self.n_components == "auto" else int(self.n_components)
        return raw, BurstStatistics.from_bursts(
            raw, self.intrinsic_dim, max_dim=most, measurement_noise=self.measurement_noise
        )

    def _check_parameters(self) -> None:
        """Everything that can be said before the data is read."""
        if self.n_components != "auto" and not is_whole(self.n_components, 1):
            raise ValueError(
                f'n_components must be a whole number of at least 1, or "auto"; got {self.n_components!r}.'
            )
        if self.burst_std is not None and not is_positive(self.burst_std):
            raise ValueError(f"burst_std must be a number > 0, or None to estimate it; got {self.burst_std!r}.")
        if self.intrinsic_dim is not None and not is_whole(self.intrinsic_dim, 1):
            raise ValueError(
                f"intrinsic_dim must be a whole number of at least 1, or None; got {self.intrinsic_dim!r}."
            )
        if not isinstance(self.solver, str) or self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(SOLVERS)}; got {self.solver!r}.")
        if self.max_iter is not None and not is_whole(self.max_iter, 1):
            raise ValueError(f"max_iter must be a whole number of at least 1, or None; got {self.max_iter!r}.")
        if self.tol is not None and (not isinstance(self.tol, Real) or not 0 <= self.tol < 1):
            raise ValueError(f"tol must be in [0, 1), or None; got {self.tol!r}.")
        if not isinstance(self.validation_fraction, Real) or not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be in [0, 1); got {self.validation_fraction!r}.")
        layers = self.hidden_layers
        if isinstance(layers, str) or not hasattr(layers, "__iter__") or not all(is_whole(n, 1) for n in layers):
            raise ValueError(f"hidden_layers must be whole numbers of at least 1; got {layers!r}.")
        for option in ("activation", "decoder_activation"):
            name = getattr(self, option)
            if name is None and option == "decoder_activation":
                continue
            if not isinstance(name, str) or name not in ACTIVATIONS:
                raise ValueError(f"{option} must be one of {', '.join(sorted(ACTIVATIONS))}; got {name!r}.")
        noise = self.measurement_noise
        if noise is not None and noise != "estimate" and not is_positive(noise) and noise != 0:
            raise ValueError(f'measurement_noise must be None, "estimate" or a number ≥ 0; got {noise!r}.')
        if isinstance(self.callbacks, str) or not hasattr(self.callbacks, "__iter__"):
            raise ValueError(f"callbacks must be a sequence of functions; got {self.callbacks!r}. Pass [function].")
        for option in ("encoder", "decoder"):
            module = getattr(self, option)
            if module is not None and not isinstance(module, nn.Module):
                raise ValueError(f"{option} must be an instance of torch.nn.Module, or None; got {module!r}.")

    def _choose_dimensions(self, raw: Bursts | None, statistics: BurstStatistics) -> tuple[int, bool]:
        """d, and whether it was chosen by comparing fits."""
        k = statistics.intrinsic_dim
        if self.n_components == "auto":
            from pyloca.selection import suggest_n_components

            if suggest_n_components(statistics, burst_std=self._known_std(raw)) == k:
                return k, False
            return self._compare_dimensions(raw, statistics), True
        d = int(self.n_components)
        if d < k:
            raise BurstError(
                f"n_components = {d} cannot hold bursts that span k = {k} directions; use n_components={k} or more."
            )
        # Günther (1989): every smooth k-dimensional manifold embeds isometrically in this many dimensions.
        enough = min(max(k * (k + 5) // 2, k * (k + 3) // 2 + 5), len(statistics) - 2)
        if d > enough:
            raise BurstError(
                f"n_components = {d} is more than {len(statistics)} bursts of intrinsic dimension k = {k} can ask for; "
                f"use at most {enough}."
            )
        return d, False

    def _compare_dimensions(self, raw: Bursts | None, statistics: BurstStatistics) -> int:
        from pyloca.selection import select_n_components

        settings = self.get_params(deep=False) | {"burst_std": self._known_std(raw), "verbose": 0, "callbacks": ()}
        for name in ("n_components", "intrinsic_dim", "measurement_noise"):  # the statistics have the last two
            del settings[name]
        return select_n_components(statistics, **settings).n_components

    def _known_std(self, raw: Bursts | None) -> float | None:
        return self.burst_std if raw is None or self.burst_std is not None else raw.burst_std

    def _check_modules(self, n_features: int, d: int) -> None:
        """Modules of the user's own must map (n, D) to (n, d) and back; seen on two points before any training."""
        for name, module, n_in, n_out in (
            ("encoder", self.encoder, n_features, d),
            ("decoder", self.decoder, d, n_features),
        ):
            if module is None:
                continue
            copied = copy.deepcopy(module).double().eval()
            try:
                with torch.no_grad():
                    output = copied(torch.zeros(2, n_in, dtype=torch.float64))
            except Exception as error:  # whatever the user's code raises means the same here
                raise ValueError(f"the {name} does not take points of shape (n, {n_in}): {error}") from error
            if not isinstance(output, torch.Tensor):
                raise ValueError(f"the {name} returns a {type(output).__name__}; expected one tensor (n, {n_out}).")
            if tuple(output.shape) != (2, n_out):
                raise ValueError(f"the {name} maps (2, {n_in}) to {tuple(output.shape)}; expected (2, {n_out}).")

    def _device(self) -> torch.device:
        if isinstance(self.device, torch.device) or self.device != "auto":
            try:
                device = torch.device(self.device)
                if device.type != "mps":  # of which more below
                    torch.empty(0, device=device)
            except (TypeError, RuntimeError, AssertionError) as error:
                reason = str(error).splitlines()[0]
                raise ValueError(f"device {self.device!r} cannot be used here ({reason}).") from error
            if device.type == "mps" and self.solver == "fast":
                raise ValueError('the fast solver needs float64, which MPS lacks; use device="cpu" or solver="paper".')
            return device
        if torch.cuda.is_available():
            return torch.device("cuda")
        if self.solver == "paper" and torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")

    # -- using the fit ------------------------------------------------------------------------------------------

    @overload
    def transform(self, Y: ArrayLike, *, return_trust: Literal[False] = ...) -> NDArray[np.float64]: ...

    @overload
    def transform(
        self, Y: ArrayLike, *, return_trust: Literal[True]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def transform(
        self, Y: ArrayLike, *, return_trust: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Encode measurements: (n, D) → (n, d), or (n, m, D) → (n, m, d). Rows do not influence each other.

        With `return_trust` also a number for each point, (n,) or (n, m): the part of held-out measurements that are at
        least as strange, by their round trip through the decoder and their distance to the training bursts. Evenly
        spread between 0 and 1 for measurements of the same kind, near 0 for those that lie off the manifold.
        """
        check_is_fitted(self)
        points = self._check_points(Y, self.n_features_in_, "Y", (2, 3))
        embedded = apply_rows(self.encoder_, points, self.n_components_)
        if not return_trust:
            return embedded
        flat = points.reshape(-1, self.n_features_in_)
        training = np.delete(self.embedding_, self.validation_indices_, axis=0)
        trust = self.trust_scale_.trust(self.decoder_, flat, embedded.reshape(-1, self.n_components_), training)
        return embedded, trust.reshape(points.shape[:-1])

    def inverse_transform(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Decode embedded points: (n, d) → (n, D)."""
        check_is_fitted(self)
        return apply_rows(self.decoder_, self._check_points(Z, self.n_components_, "Z", (2, 3)), self.n_features_in_)

    def score(self, bursts: Data, y: None = None) -> float:
        """Minus the mean whitening loss tr G − log det G − k of `bursts`: higher is better, 0 is perfect."""
        statistics = self._read_like(bursts)[1]
        losses = whitening(self.encoder_, statistics, self.burst_std_).losses
        return -float(np.average(losses, weights=statistics.weights))

    def _read_like(self, bursts: Data) -> tuple[Bursts | None, BurstStatistics]:
        """Bursts of the instrument that the model was fitted to, raw ones (if given so) and their statistics."""
        check_is_fitted(self)
        if isinstance(bursts, BurstStatistics):
            if bursts.n_features != self.n_features_in_:
                raise BurstError(_wrong_features("bursts", bursts.n_features, self.n_features_in_))
            if bursts.intrinsic_dim != self.intrinsic_dim_:
                raise BurstError(
                    f"the BurstStatistics have k = {bursts.intrinsic_dim}; the model has k = {self.intrinsic_dim_}."
                )
            return None, bursts.without_noise(self.measurement_noise)
        raw = as_bursts(bursts)
        if raw.n_features != self.n_features_in_:
            raise BurstError(_wrong_features("bursts", raw.n_features, self.n_features_in_))
        return raw, BurstStatistics.from_bursts(
            raw, self.intrinsic_dim_, measurement_noise=self.measurement_noise, min_bursts=1
        )

    def _check_points(self, points: ArrayLike, dim: int, name: str, ndims: tuple[int, ...]) -> NDArray[np.float64]:
        if np.ma.isMaskedArray(points):
            raise ValueError(f"{name} is a masked array; remove or fill the masked points.")
        array = np.asarray(points)
        if array.dtype.kind not in "fiu":
            raise ValueError(f"{name} has dtype {array.dtype}; expected real numbers.")
        if array.ndim not in ndims:
            raise ValueError(
                f"Expected 2D array of shape (n, {dim}), or (n, m, {dim}); {name} has shape {array.shape}. "
                "Reshape your data: for one point pass it as [point]."
            )
        if array.shape[-1] != dim:
            raise ValueError(_wrong_features(name, array.shape[-1], dim))
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinity; remove or repair these points.")
        return array.astype(np.float64, copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model to one `.safetensors` file, whole or not at all."""
        from pyloca.modelfile import save_model

        check_is_fitted(self)
        return save_model(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, encoder: nn.Module | None = None, decoder: nn.Module | None = None
    ) -> LOCA:
        """Read a model that `save` wrote. Modules of your own are passed again; the file has their weights only."""
        from pyloca.modelfile import load_model

        return load_model(path, cls, encoder=encoder, decoder=decoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.target_tags.required = False
        return tags


def _wrong_features(name: str, got: int, expected: int) -> str:
    return f"{name} has {got} features, but LOCA is expecting {expected} features as input."
