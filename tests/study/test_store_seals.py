"""Lock, unblind, withdraw, backup, verify and export: what stands when the study is over."""

import json

import pandas as pd
import pytest
import sqlalchemy as sa

from annotation_app.founding import open_study
from study import tables
from study.errors import StudyError
from study.store import chain, export, people, ratings, schema, seals, traces, withdrawal
from study.store.database import Refused, copy, open_database

RATER = "rater-01"


def rate_everything(database, raters=("rater-01", "rater-02", "rater-03"), value=lambda n: 1 + n % 5):
    """Every empty cell of some raters, written as clicks would be, but in one transaction."""
    with database.writing() as connection:
        a, i, m = schema.assignment, schema.item, schema.metric
        cells = connection.execute(
            sa.select(a.c.person_id, a.c.position, m.c.metric_id)
            .select_from(a.join(i).join(m, m.c.item == i.c.kind))
            .where(a.c.person_id.in_(raters))
        ).all()
        rows = [
            {"nonce": f"all-{person_id}-{n}", "person_id": person_id, "position": position, "version": 1,
             "metric_id": metric_id, "status": "ok", "value": float(value(n)), "reason": None, "tab": "",
             "at": database.now()}
            for n, (person_id, position, metric_id) in enumerate(cells)
        ]  # fmt: skip
        chain.append(connection, "rating", *rows)


def test_an_incomplete_study_does_not_lock_and_names_the_gaps(database):
    rate_everything(database, ["rater-01"])
    with pytest.raises(StudyError, match="rater-02: 90 ratings missing, the first at position 1"):
        seals.lock(database, "test")


def test_a_complete_study_locks_and_takes_no_more(database):
    rate_everything(database)
    manifest = seals.lock(database, "test")
    assert manifest["rating_events"] == 270
    with pytest.raises(Refused, match="locked"):
        ratings.save(database, RATER, 1, "fluency", value=2, base_version=1, nonce="late")
    with pytest.raises(Refused, match="locked"):
        traces.keep_draft(database, RATER, "note 1", "late", "")


def test_an_excused_rater_holds_no_lock_up(database):
    rate_everything(database, ["rater-01", "rater-02"])
    seals.excuse(database, "rater-03", "ill", "test")
    seals.lock(database, "test")
    missing = export.export(database).ratings.query("rater_id == 'rater-03'")
    assert set(missing["status"]) == {"missing"}
    assert set(missing["reason"]) == {"ill"}


def test_a_reasonless_excuse_is_refused(database):
    with pytest.raises(StudyError, match="reason"):
        seals.excuse(database, RATER, " ", "test")


def test_nothing_is_unblinded_before_the_lock(database):
    with pytest.raises(Refused, match="not locked"):
        seals.unblind(database, "digest", "test")


def test_unblinding_leaves_its_mark(database):
    rate_everything(database)
    seals.lock(database, "test")
    assert seals.unblind(database, "digest", "test")["key"] == "digest"
    with database.reading() as connection:
        assert "unblinded" in set(connection.execute(sa.select(schema.audit.c.what)).scalars())


def test_an_untouched_chain_holds(database):
    rate_everything(database)
    assert chain.problems(database) == []


def without_rules(database, statement):
    """Do what only somebody with the database file in their hands can do."""
    names = [r.name for r in schema.RULES if r.table in ("rating_event", "chain") and r.event != "insert"]
    tables_of = {r.name: r.table for r in schema.RULES}
    with database.engine.connect() as connection:
        for name in names:
            on = f" on {tables_of[name]}" if database.engine.dialect.name == "postgresql" else ""
            connection.exec_driver_sql(f"drop trigger {name}{on}")
        connection.exec_driver_sql(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("update rating_event set value = 5 where seq = 7", "rating 7 was changed"),
        ("delete from rating_event where seq = 7", "rating 7 is missing"),
        ("update chain set digest = 'x' where seq = 7", "link 7 does not follow"),
    ],
)
def test_the_chain_betrays_a_change_behind_its_back(database, statement, says):
    rate_everything(database, value=lambda n: 3)
    without_rules(database, statement)
    assert any(says in p for p in chain.problems(database))


def test_withdrawal_erases_and_the_chain_still_holds(database):
    rate_everything(database)
    receipt = withdrawal.withdraw(database, RATER, "test")
    assert receipt.erased["rating_event"] == 90
    assert chain.problems(database) == []
    assert RATER not in set(export.export(database).ratings["rater_id"])


def test_no_trace_of_a_withdrawn_text_or_token_is_left_in_the_files(small_study, tmp_path):
    database = open_study(small_study)
    token = people.invite(database, RATER, who="test")
    people.enter(database, token)
    for n in range(50):
        traces.write_note(database, RATER, 1, "", f"PLATYPUS-{n}", base_version=n, tab="")
    traces.keep_draft(database, RATER, "note 2", "PLATYPUS draft", "")
    copy(database, tmp_path / "before.db")
    with database.writing() as connection:
        connection.execute(sa.insert(schema.backup), {"path": "before.db", "at": database.now()})
    receipt = withdrawal.withdraw(database, RATER, "test")
    export.write(database, tmp_path / "out" / "ratings.parquet")
    database.close()
    files = [*small_study.folder.glob("ratings.db*"), *(tmp_path / "out").rglob("*.*")]
    everything = b"".join(p.read_bytes() for p in files if p.is_file())
    assert b"PLATYPUS" not in everything
    assert token.encode() not in everything
    assert receipt.backups == ("before.db",)
    assert b"PLATYPUS" in (tmp_path / "before.db").read_bytes()


def test_a_withdrawn_person_is_let_in_no_more(database):
    token = people.invite(database, RATER, who="test")
    withdrawal.withdraw(database, RATER, "test")
    with pytest.raises(Refused):
        people.enter(database, token)
    with pytest.raises(StudyError, match="left"):
        people.invite(database, RATER, who="test")


def test_nothing_is_withdrawn_after_the_lock(database):
    rate_everything(database)
    seals.lock(database, "test")
    with pytest.raises(StudyError, match="locked"):
        withdrawal.withdraw(database, RATER, "test")


def test_a_backup_is_a_whole_database(database, tmp_path):
    rate_everything(database)
    copy(database, tmp_path / "backup.db")
    twin = open_database(str(tmp_path / "backup.db"))
    assert chain.problems(twin) == []
    pd.testing.assert_frame_equal(export.export(twin).ratings, export.export(database).ratings)
    twin.close()


def test_a_backup_overwrites_nothing(database, tmp_path):
    (tmp_path / "there.db").write_text("precious")
    with pytest.raises(StudyError, match="never overwrites"):
        copy(database, tmp_path / "there.db")


def test_an_export_holds_every_cell_and_its_contract(database, small_study):
    rate_everything(database, ["rater-01"])
    found = export.export(database).ratings
    tables.check_ratings(found, small_study.metrics)
    assert len(found) == 270
    assert (found["status"] == "ok").sum() == 90


def test_an_export_again_is_the_same_to_the_byte(database, tmp_path):
    rate_everything(database)
    export.write(database, tmp_path / "one" / "ratings.parquet")
    export.write(database, tmp_path / "two" / "ratings.parquet")
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*"))
    assert len(names) == 9
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_csv_and_parquet_say_the_same(database, tmp_path):
    rate_everything(database, ["rater-01"])
    export.write(database, tmp_path / "ratings.parquet")
    parquet, csv = pd.read_parquet(tmp_path / "ratings.parquet"), pd.read_csv(tmp_path / "ratings.csv")
    pd.testing.assert_frame_equal(parquet, csv, check_dtype=False)


def test_a_changed_answer_is_exported_once(database):
    for version, value in enumerate([3, 4, 5]):
        ratings.save(database, RATER, 1, "fluency", value=value, base_version=version, nonce=f"{version}")
    found = export.export(database)
    held = found.ratings.query("rater_id == 'rater-01' and status == 'ok'")
    assert (list(held["value"]), len(found.history)) == ([5.0], 3)


def test_previews_and_the_replaced_are_not_exported(database):
    preview = people.preview(database, "test").person_id
    ratings.save(database, preview, 1, "fluency", value=3, base_version=0, nonce="p")
    people.replace(database, RATER, "rater-01b", "test")
    raters = set(export.export(database).ratings["rater_id"])
    assert raters == {"rater-01b", "rater-02", "rater-03"}


def test_repeats_stay_out_of_the_main_export(small_study):
    """A hidden repeat is the same item a second time, further on; it is rated like any other."""
    assignment = tables.read(small_study.assignment, tables.ASSIGNMENT)
    again = assignment.groupby("rater_id").head(1).assign(position=25, block=6, role="repeat")
    tables.write(pd.concat([assignment, again], ignore_index=True), small_study.assignment, tables.ASSIGNMENT)
    database = open_study(small_study)
    rate_everything(database)
    found = export.export(database)
    assert (len(found.ratings), len(found.repeats)) == (270, 9)
    assert set(found.repeats["occasion"]) == {2}
    database.close()


def test_an_export_never_buries_simulated_ratings(database, tmp_path):
    rate_everything(database)
    path = tmp_path / "ratings.parquet"
    export.write(database, path)
    tables.write(tables.read(path, tables.RATINGS), path, tables.RATINGS, {"crossed.simulated": "true"})
    with pytest.raises(StudyError, match="simulated"):
        export.write(database, path)


def test_the_database_knows_no_source(database, small_study):
    with database.reading() as connection:
        rows = [row for t in schema.metadata.sorted_tables for row in connection.execute(sa.select(t))]
    everything = json.dumps([[str(v) for v in row] for row in rows])
    assert not [w for w in (*(s.source_id for s in small_study.sources), str(small_study.seed)) if w in everything]


def test_another_studys_database_is_refused(database, tmp_path, study_maker):
    other = study_maker(tmp_path / "other", raters=1, cases=1)
    url = database.engine.url.render_as_string(hide_password=False)
    with pytest.raises(StudyError, match="belongs to the study"):
        open_study(other, url.replace("postgresql+psycopg", "postgresql"))


def test_founding_again_changes_nothing(small_study):
    open_study(small_study).close()
    open_study(small_study).close()


def test_changed_items_are_refused_once_founded(small_study):
    open_study(small_study).close()
    items = tables.read(small_study.items, tables.ITEMS)
    items.loc[items["kind"] == "utterance", "text"] = "changed"
    tables.write(items, small_study.items, tables.ITEMS)
    with pytest.raises(StudyError, match="other items"):
        open_study(small_study)


def test_a_newer_layout_is_refused(small_study):
    database = open_study(small_study)
    with database.writing() as connection:
        connection.execute(sa.insert(schema.schema_version), {"version": schema.VERSION + 1, "at": ""})
    database.close()
    with pytest.raises(StudyError, match="upgrade"):
        open_study(small_study)
