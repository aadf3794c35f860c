"""Whose ratings may leave, as either kind of database has it."""

from study.store import consents, permissions, withdrawal


def agree(database, person, sharing, version="1"):
    choices = {"participation": True, "sharing": sharing}
    consents.agree(database, person, version=version, text="…", locale="ko", choices=choices)


def test_the_newest_consent_counts_and_who_withdrew_has_none(database, small_study):
    agree(database, "rater-01", True)
    agree(database, "rater-02", True)
    agree(database, "rater-02", False, version="2")
    agree(database, "rater-03", True)
    withdrawal.withdraw(database, "rater-03", "test")
    found = permissions.permissions(database)
    assert {"rater-01", "rater-02"} == found.consented
    assert {"rater-01"} == found.sharing
    assert {"rater-03"} == found.withdrawn
    assert (small_study.study_id, False) == (found.study_id, found.locked)
