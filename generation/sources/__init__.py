"""Who answers: one module a kind, and one line in `kinds.py`."""
