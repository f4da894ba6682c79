"""What the plan line counts beside features and training; the clock tells what it really took."""

from labelclean.workflows import forecast
from labelclean.workflows.forecast import EvidenceLoad, evidence_seconds, written_seconds


def test_more_of_anything_takes_longer(monkeypatch):
    monkeypatch.setattr(forecast, "multiply_seconds", lambda: 2e-11)
    monkeypatch.setattr("labelclean.training.cost.multiply_seconds", lambda: 2e-11)
    least = evidence_seconds(EvidenceLoad(rows=1000, width=640, classes=10, trials=1))
    assert 0 < least < 60
    for more in (
        EvidenceLoad(rows=2000, width=640, classes=10, trials=1),
        EvidenceLoad(rows=1000, width=1280, classes=10, trials=1),
        EvidenceLoad(rows=1000, width=640, classes=100, trials=1),
        EvidenceLoad(rows=1000, width=640, classes=10, trials=5),
    ):
        assert evidence_seconds(more) > least
    assert written_seconds(10**6) > written_seconds(10) > 0


def test_very_many_rows_are_not_compared_with_all_others(monkeypatch):
    monkeypatch.setattr(forecast, "multiply_seconds", lambda: 2e-11)
    monkeypatch.setattr("labelclean.training.cost.multiply_seconds", lambda: 2e-11)
    many, more = (evidence_seconds(EvidenceLoad(n, 640, 10, 5)) for n in (10**6, 2 * 10**6))
    assert more < 2.5 * many
