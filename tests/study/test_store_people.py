"""Who may enter, who wrote what first, and what an author may not see."""

from dataclasses import replace
from datetime import timedelta

import pytest

from study.errors import StudyError
from study.store import consents, people, ratings, references, traces, training
from study.store.database import Conflict, Refused

RATER = "rater-01"


def whose(database, cookie):
    with database.reading() as connection:
        return people.visitor(connection, cookie, database.now())


def later(database, **time):
    return replace(database, clock=lambda: database.clock() + timedelta(**time))


def test_a_token_opens_the_door_for_its_person(database):
    cookie = people.enter(database, people.invite(database, RATER, who="test"))
    assert whose(database, cookie).person_id == RATER


@pytest.mark.parametrize("token", ["", "guess", "' or 1=1 --", "x" * 10_000])
def test_a_forged_token_is_refused(database, token):
    with pytest.raises(Refused):
        people.enter(database, token)


def test_an_expired_token_is_refused(database):
    token = people.invite(database, RATER, days=1, who="test")
    with pytest.raises(Refused, match="expired"):
        people.enter(later(database, days=2), token)


def test_a_new_invitation_closes_the_old_one_and_its_visits(database):
    old = people.invite(database, RATER, who="test")
    cookie = people.enter(database, old)
    people.invite(database, RATER, who="test")
    assert whose(database, cookie) is None
    with pytest.raises(Refused):
        people.enter(database, old)


def test_a_visit_ends(database):
    cookie = people.enter(database, people.invite(database, RATER, who="test"))
    assert whose(later(database, hours=people.VISIT_HOURS + 1), cookie) is None


def test_a_token_is_not_in_the_database(database, small_study):
    token = people.invite(database, RATER, who="test")
    cookie = people.enter(database, token)
    if database.engine.dialect.name == "sqlite":
        files = b"".join(p.read_bytes() for p in small_study.folder.glob("ratings.db*"))
        assert token.encode() not in files
        assert cookie.encode() not in files


def test_nobody_has_two_roles(database):
    with pytest.raises(StudyError, match="one person has one role"):
        people.invite(database, RATER, role="expert", who="test")


def test_only_the_panel_of_the_study_is_invited_to_rate(database):
    with pytest.raises(StudyError, match="panel"):
        people.invite(database, "somebody", who="test")


def test_a_preview_rates_beside_the_panel(database):
    assert not people.preview(database, "test").panel


def test_a_replacement_inherits_the_order(database):
    with database.reading() as connection:
        before = [ratings.item_at(connection, RATER, p).label for p in (1, 5, 24)]
    people.replace(database, RATER, "rater-01b", "test")
    with database.reading() as connection:
        assert [ratings.item_at(connection, "rater-01b", p).label for p in (1, 5, 24)] == before
        assert people.find(connection, RATER).status == "replaced"


def test_one_raters_leaving_takes_no_place_of_another(database):
    with database.reading() as connection:
        before = ratings.item_at(connection, "rater-02", 1)
    people.replace(database, RATER, "rater-01b", "test")
    with database.reading() as connection:
        assert ratings.item_at(connection, "rater-02", 1) == before


def test_consent_without_participation_is_refused(database):
    with pytest.raises(Refused):
        consents.agree(database, RATER, version="1", text="…", locale="ko", choices={"sharing": True})


def test_consent_is_kept_once_however_often_the_page_is_sent(database):
    for _ in range(2):
        consents.agree(database, RATER, version="1", text="…", locale="ko", choices={"participation": True})
    with database.reading() as connection:
        assert consents.agreed(connection, RATER, "1")
        assert not consents.agreed(connection, RATER, "2")


@pytest.fixture
def author(database):
    people.invite(database, "expert-01", role="expert", who="test")
    return "expert-01"


def question(database, author):
    with database.reading() as connection:
        return references.next_question(connection, author)


def test_an_answer_locks_and_the_next_question_comes(database, author):
    first = question(database, author)
    assert references.send(database, author, first.prompt_id, "네, 맞아요.", blind=True)
    assert not references.send(database, author, first.prompt_id, "아니요.", blind=True)
    second = question(database, author)
    assert second.turn == 2
    with database.reading() as connection:
        assert [a.answer for a in references.dialogue(connection, author, first.case_id)] == ["네, 맞아요."]


@pytest.mark.parametrize(("text", "blind"), [("", True), ("   ", True), ("네.", False)])
def test_an_answer_needs_words_and_the_authors_word(database, author, text, blind):
    with pytest.raises(Refused):
        references.send(database, author, question(database, author).prompt_id, text, blind=blind)


def test_questions_are_answered_in_order(database, author):
    with pytest.raises(Refused, match="order"):
        references.send(database, author, "CCO-P20", "네.", blind=True)


def test_a_rater_writes_no_reference(database):
    with pytest.raises(Refused, match="expert"):
        references.send(database, RATER, "CCO-P01", "네.", blind=True)


def test_the_database_shows_an_author_no_answer_before_their_own(database, author):
    with database.reading() as connection:
        item = ratings.item_at(connection, RATER, 1)
    with pytest.raises(Refused, match="author"):
        traces.show(database, author, position=None, label=item.label, tab="", versions={})


def test_an_author_cannot_rate(database, author):
    with pytest.raises(Refused):
        ratings.save(database, author, 1, "fluency", value=3, base_version=0, nonce="n")


def test_a_draft_survives_and_goes_when_the_comment_is_written(database):
    traces.keep_draft(database, RATER, "note 1", "half a sent", "tab")
    with database.reading() as connection:
        assert traces.draft_at(connection, RATER, "note 1") == "half a sent"
    traces.write_note(database, RATER, 1, "", "half a sentence", base_version=0, tab="tab")
    with database.reading() as connection:
        assert traces.draft_at(connection, RATER, "note 1") is None
        assert traces.note_at(connection, RATER, 1).text == "half a sentence"


def test_a_draft_of_one_rater_is_not_anothers(database):
    traces.keep_draft(database, RATER, "note 1", "mine", "tab")
    traces.keep_draft(database, "rater-02", "note 1", "theirs", "tab")
    with database.reading() as connection:
        assert traces.draft_at(connection, RATER, "note 1") == "mine"


def test_a_comment_of_another_window_is_not_overwritten(database):
    traces.write_note(database, RATER, 1, "", "one", base_version=0, tab="a")
    with pytest.raises(Conflict):
        traces.write_note(database, RATER, 1, "", "two", base_version=0, tab="b")


def test_time_runs_only_while_an_item_is_seen(database):
    with pytest.raises(Refused):
        traces.stay(database, RATER, 1, visible_ms=100, focused_ms=200)
    with pytest.raises(Refused):
        traces.stay(database, RATER, 1, visible_ms=10**9, focused_ms=0)


def test_a_window_knows_after_a_restart_which_versions_it_shows(database):
    traces.show(database, RATER, position=1, tab="a", versions={"fluency": 0})
    ratings.save(database, RATER, 1, "fluency", value=3, base_version=0, nonce="1", tab="a")
    ratings.save(database, RATER, 1, "fluency", value=5, base_version=1, nonce="2", tab="b")
    with database.reading() as connection:
        assert traces.seen(connection, RATER, 1, "a") == {"fluency": 1}
        assert traces.seen(connection, RATER, 1, "c") is None


def test_a_coordinator_lets_in_who_did_not_pass(database):
    training.admit(database, RATER, "coordinator")
    with database.reading() as connection:
        assert "admitted" in people.steps(connection, RATER)
