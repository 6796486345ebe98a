import time

from grader.run.budget import Budget


def test_with_patience_it_counts_what_was_computed_rather_than_waited_for() -> None:
    computed = iter((0.0, 0.0, 2.0))
    budget = Budget(1.0, lambda: next(computed), patience=1e6)
    time.sleep(0.01)
    assert 0 < budget.used < 1e-4
    time.sleep(0.01)
    assert budget.is_spent
