"""A fit, a refit or a new scale changes the estimator all at once or not at all, wherever it is interrupted."""

import copy
import sys

import pytest

from helpers import planar_bursts
from pyloca import LOCA
from pyloca.estimator import _loca

pytestmark = pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # fits are cut short


def refit(model):
    model.set_params(n_components=3)
    model.fit(planar_bursts(30, 10, seed=1)[1])


def rescale(model):
    model.rescale([(0, 1), (2, 3)], [1.0, 2.0])


class InterruptAt:
    """Ctrl-C at the n-th line of the methods that change an estimator."""

    METHODS = ("fit", "rescale", "_become")

    def __init__(self, line):
        self.left = line

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != _loca.__file__ or frame.f_code.co_name not in self.METHODS:
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self


def fitted_state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.fixture(scope="module")
def fitted():
    model = LOCA(2, burst_std=0.01, hidden_layers=(4,), random_state=0, max_iter=1)
    model.fit(planar_bursts(40, 10)[1])
    model.table_ = {"of": "the first fit"}
    return model


def changes_at_every_line(change, fitted):
    """The state before and after, with an interrupt at one line after the other, and at last without one."""
    trace, line, interrupted = sys.gettrace(), 0, True
    while interrupted:
        model, interrupted = copy.copy(fitted), False
        sys.settrace(InterruptAt(line))
        try:
            change(model)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(trace)
        yield fitted_state(fitted), fitted_state(model)
        line += 1


OF_A_FIT = {"encoder_", "decoder_", "embedding_", "diagnostics_", "trust_scale_", "history_", "burst_ids_"}
OF_A_SCALE = {"encoder_", "decoder_", "embedding_", "diagnostics_", "trust_scale_", "burst_std_"}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "together"), [(refit, OF_A_FIT), (rescale, OF_A_SCALE)])
def test_it_is_as_it_was_or_as_it_will_be(change, together, fitted):
    found = []
    for before, after in changes_at_every_line(change, fitted):
        new = {name for name in after if after[name] is not before.get(name)}
        found.append(bool(new))
        if new:
            assert new >= together
            assert ("table_" in after) == (change is rescale)  # what only the first fit had is gone
        else:
            assert after.keys() == before.keys()
    assert found == sorted(found) and sum(found) > 1 and len(found) > 4  # as it was for many lines, then changed


def test_an_interrupted_first_fit_leaves_it_unfitted():
    def interrupt(_):
        raise KeyboardInterrupt

    model = LOCA(2, burst_std=0.01, hidden_layers=(4,), random_state=0, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(planar_bursts(30, 10)[1])
    assert not fitted_state(model)
