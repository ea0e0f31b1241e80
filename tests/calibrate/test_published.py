"""The calibration on published times: what it is fitted to, and the model's ranks of published best configurations."""

import json
import statistics
from dataclasses import replace

from kernel_scientist.calibrate import features, published, tables
from kernel_scientist.calibrate.published import PublishedFit
from kernel_scientist.gpu.model import constants, predict
from kernel_scientist.gpu.model.constants import Constants
from kernel_scientist.hardware import gpus
from tests.calibrate import labels


def test_published_best_configurations_of_eight_shapes_are_predicted_to_be_fast() -> None:
    """Regression: mean rank 0.05 when recorded; chance is 0.5."""
    found, known = labels.recorded(), constants.of("mi300x")
    ranks = [published.rank(label, found, known) for label in labels.eight()]
    assert len(ranks) == 8 and statistics.mean(ranks) <= 0.08 and max(ranks) <= 0.2


def test_a_rank_is_the_share_of_faster_configurations() -> None:
    found, known, label = labels.recorded(), constants.of("mi300x"), labels.eight()[0]
    slow = replace(label, others=(label.best,) * 3)
    assert published.rank(slow, found, known) == 0.5, "ties count half"
    traced = [entry for entry in label.others if entry.name in found.loads]
    by_time = sorted(traced, key=lambda entry: predict.time_us(gpus.MI300X, found.loads[entry.name], known))
    last = replace(label, best=by_time[-1], others=tuple(by_time[:-1]))
    assert published.rank(last, found, known) > 0.9


def test_recorded_features_are_the_same_after_writing_and_reading() -> None:
    found = labels.recorded()
    assert features.read(features.written(found)) == found


def test_no_pair_of_n_and_k_is_both_fitted_and_held_out() -> None:
    rows = tables.times()
    fitted, held_out = ({(r.shape.n, r.shape.k) for r in rows if r.shape.held_out == held} for held in (False, True))
    assert fitted and held_out and not fitted & held_out
    assert all(label.shape.held_out for label in tables.labels(pool=0))


def test_the_constants_in_use_name_their_data_and_their_rows() -> None:
    stored = PublishedFit.model_validate(json.loads(constants.PUBLISHED.read_text()))
    rows = tables.times()
    assert stored.fitted.rows == sum(not row.shape.held_out for row in rows) and stored.fitted.rows < len(rows)
    assert stored.held_out.rows == len(rows) - stored.fitted.rows
    assert stored.licence == "MIT" and "304 CUs" in stored.hardware and "without the launch" in stored.timed
    known = constants.of("mi300x")
    assert known.kind == "published" and stored.date in known.calibrated
    changed = {name for name, value in stored.constants.items() if value != getattr(Constants(), name)}
    assert changed <= {*published.FITTED, "kind", "calibrated"}
