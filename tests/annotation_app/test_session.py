"""What becomes of a choice: compared three ways, saved once, and never called saved when it is not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from annotation_app import session
from annotation_app.session import Choice
from study.store import overview, ratings, traces
from study.store.database import Refused, StoreError
from study.store.ratings import Mark

RATER = "rater-01"


def settle(database, choice, base=None, theirs=None):
    nothing = Mark()
    return session.settle(
        database, RATER, 1, "fluency", choice, base=base or nothing, theirs=theirs or nothing, tab="w"
    )


def held(database):
    with database.reading() as connection:
        return ratings.mark(connection, RATER, 1, "fluency")


def written(database, value, base=0, tab="other"):
    return ratings.save(
        database, RATER, 1, "fluency", value=value, base_version=base, nonce=f"{value}-{base}", tab=tab
    )


def test_a_new_choice_is_saved(database):
    found = settle(database, Choice(4))
    assert ("saved", 4) == (found.outcome, found.mark.value)
    assert found.mark == held(database)


def test_a_choice_that_holds_already_is_not_written_again(database):
    mark = written(database, 4)
    assert "same" == settle(database, Choice(4), base=mark, theirs=mark).outcome
    assert 1 == held(database).version


def test_a_window_that_changed_nothing_takes_over_what_another_wrote(database):
    mine = written(database, 2)
    theirs = written(database, 5, base=1)
    found = settle(database, Choice(2), base=mine, theirs=theirs)
    assert ("changed", theirs) == (found.outcome, found.mark)
    assert 5 == held(database).value


def test_two_windows_that_both_changed_are_a_conflict(database):
    mine = written(database, 2)
    theirs = written(database, 5, base=1)
    assert "conflict" == settle(database, Choice(3), base=mine, theirs=theirs).outcome
    assert 5 == held(database).value


def test_a_write_that_came_in_between_is_a_conflict_and_shows_what_holds(database):
    """The other window wrote after this page was read."""
    written(database, 5)
    found = settle(database, Choice(3))
    assert ("conflict", 5) == (found.outcome, found.mark.value)


def test_cannot_judge_is_written_with_its_reason_only(database):
    assert "pending" == settle(database, Choice(pending=True)).outcome
    assert Mark() == held(database)
    assert "saved" == settle(database, Choice(reason="unclear")).outcome
    assert "unclear" == held(database).reason


@pytest.mark.parametrize("value", [0, 6, 99, float("nan"), float("inf"), "3; DROP TABLE rating_event"])
def test_a_forged_choice_is_refused_and_leaves_nothing(database, value):
    with pytest.raises(Refused):
        settle(database, Choice(value))
    assert Mark() == held(database)


def test_an_answer_lost_after_the_commit_is_not_written_twice(database, monkeypatch):
    """The connection breaks between commit and answer: the second try finds its own nonce."""
    real, tries = ratings.save, []

    def breaks_after_the_commit(*arguments, **options):
        mark = real(*arguments, **options)
        tries.append(mark)
        if len(tries) == 1:
            raise StoreError("the connection is gone")
        return mark

    monkeypatch.setattr(ratings, "save", breaks_after_the_commit)
    assert ("saved", 1) == ((found := settle(database, Choice(4))).outcome, found.mark.version)
    assert 2 == len(tries)
    assert 1 == held(database).version


def test_what_cannot_be_saved_is_not_called_saved(database, monkeypatch):
    def down(*_, **__):
        raise StoreError("the database is away")

    monkeypatch.setattr(ratings, "save", down)
    found = settle(database, Choice(4))
    assert ("unsaved", Mark()) == (found.outcome, found.mark)


def test_a_comment_of_two_windows_keeps_both_texts(database):
    first = session.settle_note(database, RATER, 1, "", "from one", base=0, tab="one")
    both = session.settle_note(database, RATER, 1, "", "from two", base=0, tab="two")
    assert ("from one", "from one\nfrom two") == (first.text, both.text)


def test_pace_counts_work_and_not_the_pauses(small_study):
    """Items a minute apart, twenty minutes of lunch, two more: the median is a minute, two items since."""
    from annotation_app.founding import open_study

    database = open_study(small_study)
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    clock = replace(database, clock=lambda: now)
    for position, minute in ((1, 0), (2, 1), (3, 2), (5, 22), (6, 23)):  # the encounter itself stands at 4
        now = start + timedelta(minutes=minute)
        traces.show(clock, RATER, position=position, tab="w", versions={})
        now += timedelta(seconds=50)
        ratings.save(clock, RATER, position, "fluency", value=3, base_version=0, nonce=str(position))
    with database.reading() as connection:
        median, minutes = session.pace(connection, RATER, now)
        assert [50.0] * 5 == overview.seconds_per_item(connection, RATER)
    assert (50.0, 1.0) == (median, minutes)
    database.close()
