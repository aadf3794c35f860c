"""Labels mean nothing, orders are balanced, and the seed decides both."""

import numpy as np
import pandas as pd
import pytest

from study import content, design
from study.errors import StudyError
from study.records import Response

SHIPPED = content.load(content.shipped("cases.json"), content.shipped("prompts.json"))
SOURCES = ("draft", "one", "two", "three", "four")
RATERS = tuple(f"r{i:02d}" for i in range(17))


def responses(sources=SOURCES):
    rows = [
        Response(p.prompt_id, p.case_id, s, "ok", f"{s} {p.prompt_id}") for s in sources for p in SHIPPED.prompts
    ]
    return pd.DataFrame([vars(r) for r in rows])


ITEMS, KEY = design.items(SHIPPED, responses(), seed=7)
ASSIGNED, BALANCE = design.assignment(ITEMS, KEY, RATERS, seed=7)


def test_every_response_and_every_encounter_is_one_item():
    assert {"utterance": 350, "encounter": 15} == ITEMS["kind"].value_counts().to_dict()
    assert set(ITEMS["label"]) == set(KEY["label"])
    assert 365 == ITEMS["label"].nunique()


def test_items_say_nothing_of_sources():
    assert "source_id" not in ITEMS
    order = ITEMS.merge(KEY, on="label")["source_id"].map(SOURCES.index)
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.15


def test_the_order_in_which_sources_are_listed_does_not_order_the_labels():
    first = [ITEMS.merge(KEY, on="label").groupby("source_id")["label"].min()]
    other = design.items(SHIPPED, responses(), seed=8)
    assert first[0].idxmin() != other[0].merge(other[1], on="label").groupby("source_id")["label"].min().idxmin()


def test_the_same_seed_gives_the_same_design_and_another_another():
    again = design.items(SHIPPED, responses(), seed=7)
    pd.testing.assert_frame_equal(ITEMS, again[0])
    pd.testing.assert_frame_equal(ASSIGNED, design.assignment(ITEMS, KEY, RATERS, seed=7)[0])
    assert set(ITEMS["label"]) != set(design.items(SHIPPED, responses(), seed=8)[0]["label"])


def test_the_design_is_fully_crossed():
    table = pd.crosstab(ASSIGNED["rater_id"], ASSIGNED["label"])
    assert (17, 365) == table.shape
    assert (table == 1).all(axis=None)


def test_utterances_of_an_encounter_come_in_dialogue_order_and_then_the_encounter():
    walk = ASSIGNED.merge(ITEMS, on="label").sort_values(["rater_id", "position"])
    for _, block in walk.groupby(["rater_id", "block"]):
        assert block["turn"].iloc[:-1].is_monotonic_increasing
        assert "encounter" == block["kind"].iloc[-1]
        assert {block["label"].iloc[-1]} == set(block["encounter"].dropna())


def blocks():
    walk = ASSIGNED.merge(ITEMS[ITEMS["kind"] == "encounter"], on="label").merge(KEY, on="label")
    return walk.sort_values(["rater_id", "block"])


def test_encounters_stand_in_every_place_about_equally_often():
    # 17 raters and 15 places: once or twice if it were perfect; independent shuffles reach 5.
    places = pd.crosstab(blocks()["label"], blocks()["block"])
    assert places.max(axis=None) <= 3
    assert (places.max(axis=None), places.min(axis=None)) == (BALANCE.place_high, BALANCE.place_low)


def test_encounters_of_one_case_stand_three_apart_and_sources_do_not_run():
    for _, order in blocks().groupby("rater_id"):
        case, source = order["case_id"].to_numpy(), order["source_id"].to_numpy()
        assert (case[1:] != case[:-1]).all() and (case[2:] != case[:-2]).all()
        assert not ((source[2:] == source[1:-1]) & (source[1:-1] == source[:-2])).any()


def test_neighbours_are_even():
    follow = {}
    for _, order in blocks().groupby("rater_id"):
        for pair in zip(order["label"], order["label"].iloc[1:], strict=False):
            follow[pair] = follow.get(pair, 0) + 1
    assert max(follow.values()) <= 3


@pytest.mark.parametrize("n", [2, 4, 5, 15])
def test_a_williams_design_lets_each_follow_each_equally_often(n):
    rows = design.williams(n)
    pairs = np.zeros((n, n), int)
    for row in rows:
        assert sorted(row) == list(range(n))
        np.add.at(pairs, (row[:-1], row[1:]), 1)
    assert {1 if n % 2 == 0 else 2} == set(pairs[~np.eye(n, dtype=bool)])


def test_incomplete_blocks_give_every_encounter_its_raters_and_every_rater_a_fair_share():
    assigned, _ = design.assignment(ITEMS, KEY, RATERS[:12], seed=3, raters_per_encounter=4)
    encounters = assigned.merge(ITEMS[ITEMS["kind"] == "encounter"], on="label").merge(KEY, on="label")
    assert {4} == set(encounters["label"].value_counts())
    assert {5} == set(encounters["rater_id"].value_counts())
    assert pd.crosstab(encounters["rater_id"], encounters["source_id"]).max(axis=None) <= 2


def test_a_failed_response_is_no_item():
    failed = responses()
    failed.loc[0, ["status", "text"]] = ["failed", None]
    items, _ = design.items(SHIPPED, failed, seed=1)
    assert 349 == (items["kind"] == "utterance").sum()


def test_nothing_to_rate_and_nobody_to_rate_are_refused():
    with pytest.raises(StudyError, match="none has status ok"):
        design.items(SHIPPED, responses().assign(status="failed"), seed=1)
    with pytest.raises(StudyError, match="names no rater"):
        design.assignment(ITEMS, KEY, (), seed=1)
    with pytest.raises(StudyError, match="wants 9 raters for each encounter"):
        design.assignment(ITEMS, KEY, RATERS[:3], seed=1, raters_per_encounter=9)


def test_spacing_that_cannot_be_kept_is_kept_as_far_as_it_can():
    one_case = responses()[responses()["case_id"] == "HEM"]
    items, key = design.items(SHIPPED, one_case, seed=1)
    _, balance = design.assignment(items, key, RATERS[:3], seed=1, apart=3)
    assert 1 == balance.apart
