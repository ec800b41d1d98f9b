"""Fit, score and transform from several threads, forked and spawned processes: the numbers of one thread."""

import multiprocessing
import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from torch import nn

from helpers import HANG, planar_bursts, planar_statistics
from pyloca import LOCA, TrustWarning, _filters, _threads
from pyloca.estimator import compare_components
from pyloca.networks import MLP

pytestmark = pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # fits are cut short

THREADS = 4
POINTS = np.random.RandomState(0).standard_normal((500, 3))


def own():
    layers = nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)
    for i, layer in enumerate(layers[::2]):
        nn.init.normal_(layer.weight, generator=torch.Generator().manual_seed(i))
    return nn.Sequential(*layers)


SOLVERS = {"fast": {}, "paper": {"solver": "paper", "max_iter": 3}, "own module": {"encoder": own()}}


def fitted(seed, **options):
    options = {"burst_std": 0.01, "hidden_layers": (6,), "random_state": seed, "max_iter": 40} | options
    return LOCA(2, **options).fit(planar_bursts(40, 15)[1])


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(0)


def answers(model):
    """Everything that reads a fitted model."""
    bursts = planar_bursts(40, 15)[1]
    trusted = model.transform(POINTS, return_trust=True)
    return [model.score(bursts), *trusted, model.transform(bursts), *model.encode_with_jacobian(POINTS)]


def assert_equal(found, expected):
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.fixture
def eager_switches():
    """Threads take turns a hundred times as often, so that what can go wrong between them does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


# -- threads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SOLVERS)
def test_fits_beside_each_other_are_those_of_one_thread(kind, eager_switches):
    expected = [fitted(seed, **SOLVERS[kind]).embedding_ for seed in range(3)]
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda i: fitted(i % 3, **SOLVERS[kind]).embedding_, range(2 * THREADS)))
    for i, embedding in enumerate(found):
        np.testing.assert_array_equal(embedding, expected[i % 3])


def test_one_model_answers_many_threads(model, eager_switches):
    expected = answers(model)
    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(lambda _: answers(model), range(5 * THREADS)):
            assert_equal(found, expected)


def test_threads_of_joblib(model):
    expected = answers(model)
    for found in Parallel(n_jobs=THREADS, backend="threading")(delayed(answers)(model) for _ in range(8)):
        assert_equal(found, expected)


def test_a_fit_draws_nothing_from_the_generator_of_the_process():
    """Saving and restoring its state would rewind the draws of other threads."""
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    drawn = []

    def draw(_):
        drawn.append(torch.rand(3))

    for options in SOLVERS.values():
        fitted(0, **options, callbacks=[draw])
    torch.random.set_rng_state(before)
    assert all(torch.equal(part, torch.rand(3)) for part in drawn) and len(drawn) > 3


def test_a_generator_draws_the_weights_that_pytorch_would():
    torch.manual_seed(3)
    expected = [nn.Linear(3, 5), nn.Linear(5, 2), nn.Linear(2, 2), nn.Linear(3, 2, bias=False)]
    network = MLP(3, (5,), 2, skip=True, linear_tail=True, generator=torch.Generator().manual_seed(3))
    for mine, other in zip([*network.layers, network.tail, network.skip], expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine.parameters(), other.parameters(), strict=True))


def test_filters_of_warnings_are_as_before(eager_switches):
    """An aligned k of 3 ignores a warning of SciPy for a moment."""
    _, statistics = planar_statistics(60, k=3, dim=4)
    filters = list(warnings.filters)

    def fit(_):
        LOCA(3, burst_std=1.0, hidden_layers=(4,), random_state=0, max_iter=1).fit(statistics)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(fit, range(2 * THREADS)))
    assert list(warnings.filters) == filters


def test_comparing_components_silences_nobody():
    """`LOCA("auto")` fits candidates that are expected to be bad; a filter would silence other threads."""

    def warn(_):
        warnings.warn("from another thread", TrustWarning, stacklevel=1)

    options = {"burst_std": 0.01, "hidden_layers": (4,), "random_state": 0, "max_iter": 1, "callbacks": [warn]}
    _, bursts = planar_bursts(40, 15)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", TrustWarning)
        compare_components({2: LOCA(2, **options)}, bursts, np.full(40, 15.0))
    assert {str(warning.message) for warning in heard} == {"from another thread"}


# -- processes --------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")


def in_process(method, function, *arguments):
    """The result of a function in another process."""
    context = multiprocessing.get_context(method)
    mine, other = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(other, function, *arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: a fork of a process with threads
        child.start()
    other.close()
    try:
        assert mine.poll(HANG), "the child hangs"
        return mine.recv()
    finally:
        child.kill()
        child.join()


def _send(connection, function, *arguments):
    warnings.simplefilter("ignore")
    connection.send(function(*arguments))


def fit_and_answer(model):
    return [*answers(model), fitted(0).embedding_]


@needs_fork
def test_a_child_that_was_forked_after_threads(model):
    """OpenMP has started threads, which do not exist in the child: waiting for them, it would hang."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        expected = fit_and_answer(model)
        torch.randn(1000, 1000) @ torch.randn(1000, 1000)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda _: answers(model), range(THREADS)))
            assert_equal(in_process("fork", fit_and_answer, model), expected)
        assert_equal(in_process("fork", answers, model), expected[:-1])  # they are just ending
    finally:
        torch.set_num_threads(before)


@needs_fork
def test_a_child_that_was_forked_in_the_middle_of_a_fit(model):
    """What another thread held, nobody releases in the child."""
    middle, over = threading.Event(), threading.Event()

    def wait(_):
        middle.set()
        over.wait(HANG)

    expected = fit_and_answer(model)
    with ThreadPoolExecutor(1) as pool:
        fit = pool.submit(fitted, 0, callbacks=[wait])
        middle.wait(HANG)
        with _threads._lock, _filters._lock:
            found = in_process("fork", fit_and_answer, model)
        over.set()
        fit.result()
    assert_equal(found, expected)


@pytest.mark.slow
def test_a_spawned_process(model):
    assert_equal(in_process("spawn", fit_and_answer, model), fit_and_answer(model))
