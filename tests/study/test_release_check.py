"""A package with a planted fault is refused, each fault in one sentence; a validator alone would pass most."""

import hashlib
import json
import random
import shutil
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study import config, release, simulate, tables
from study.config import SimulationSection
from study.errors import StudyError
from study.release_check import problems_of

TELLS = """
[release]
date = 2026-12-01
description = "A made-up study."
license = "CC-BY-4.0"
creators = ["A. Author"]
url = "https://example.org/data"
simulated = "labelled"
cleared = ["최민아", "한지우", "서하준"]

[rai]
data_limitations = "Few prompts."
data_biases = "One case."
personal_sensitive_information = "None."
data_use_cases = "Tests."
data_social_impact = "None."
"""


@pytest.fixture(scope="module")
def _package(tmp_path_factory, study_maker):
    root = tmp_path_factory.mktemp("check")
    study = study_maker(root / "study", raters=5, sources=2, prompts=None)
    (study.folder / "study.toml").write_text((study.folder / "study.toml").read_text("utf-8") + TELLS, "utf-8")
    study = config.load(study.folder)
    frames = [pd.read_parquet(p) for p in (study.items, study.key, study.assignment)]
    given = simulate.ratings(*frames, study.metrics, SimulationSection(), study.seed)
    tables.write(given, study.ratings, tables.RATINGS)
    release.write(release.package(study), root / "package")
    return root / "package"


@pytest.fixture
def package(_package, tmp_path):
    shutil.copytree(_package, tmp_path / "package")
    return tmp_path / "package"


def sealed(package):
    """The package with hashes that fit what lies in it, as a careful forger would leave it."""
    told = json.loads((package / "croissant.json").read_text("utf-8"))
    for file in told["distribution"]:
        path = package / file["contentUrl"]
        if path.exists():
            file["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (package / "croissant.json").write_text(json.dumps(told, ensure_ascii=False), "utf-8")
    summed(package)


def summed(package):
    names = sorted(p.name for p in package.iterdir() if p.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256((package / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (package / "SHA256SUMS").write_text("".join(sums), "utf-8")


def told(package, change):
    """Change croissant.json and seal the package again."""
    path = package / "croissant.json"
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    summed(package)


def rows(package, name, change):
    """Change a table's rows or columns and seal the package again."""
    path = package / f"{name}.parquet"
    before = pq.read_table(path)
    after = pa.Table.from_pandas(change(before.to_pandas()), preserve_index=False)
    texts = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in after.schema]
    after = after.cast(pa.schema(texts))
    pq.write_table(after.replace_schema_metadata(before.schema.metadata), path)
    sealed(package)


def put(column, row, value):
    return lambda frame: frame.assign(**{column: [value if i == row else v for i, v in enumerate(frame[column])]})


def test_a_package_as_it_was_written_passes(package):
    assert [] == problems_of(package)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("rai:dataBiases"), "lacks rai:dataBiases"),
        (lambda d: d.update({"rai:dataLimitations": [" "]}), "lacks rai:dataLimitations"),
        (lambda d: d.pop("rai:hasSyntheticData"), "lacks rai:hasSyntheticData"),
        (lambda d: d.pop("prov:wasDerivedFrom"), "lacks prov:wasDerivedFrom"),
        (lambda d: d.pop("license"), "lacks license"),
        (lambda d: d["conformsTo"].pop(), "does not say that it conforms to http://mlcommons.org/croissant/RAI"),
        (lambda d: d.update({"rai:dataBiase": "typo"}), "rai:dataBiase is no word"),
        (lambda d: d["prov:wasDerivedFrom"][0].update({"@id": "urn:a source"}), "'urn:a source' holds a space"),
        (lambda d: d["distribution"][0].update(encodingFormat="application/vnd.apache.parquet"),
         "readers want application/x-parquet"),
        (lambda d: d["distribution"][0].update(sha256="0" * 64), "metrics.parquet: is not the file that"),
        (lambda d: d["recordSet"][0]["field"].pop(), "does not describe column anchors of metrics.parquet"),
        (lambda d: d["recordSet"][0]["field"][2].update(dataType="sc:Integer"),
         "column low holds real, and croissant.json says sc:Integer"),
        (lambda d: d["recordSet"][0]["field"][0]["source"]["extract"].update(column="nothing"),
         "has no column nothing"),
        (lambda d: d["recordSet"][0]["field"][0]["source"]["fileObject"].update({"@id": "no.parquet"}),
         "metrics takes its fields from 2 files"),
        (lambda d: d["distribution"].pop(0), "metrics comes from metrics.parquet, which is not in the dist"),
        (lambda d: d["recordSet"][0]["field"][0].pop("source"), "recordSet 1 field 1 source: Field required"),
        (lambda d: d["recordSet"][0]["key"][0].update({"@id": "metrics/none"}), "is none of its fields"),
        (lambda d: d["recordSet"][0].update({"@id": "scales"}), "scales is no record set that a release has"),
        (lambda d: d.update(description="Real ratings."), "rows are simulated, and croissant.json does"),
    ],
)  # fmt: skip
def test_a_description_that_does_not_fit_is_named(package, change, says):
    told(package, change)
    assert any(says in p for p in problems_of(package)), problems_of(package)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("ratings", lambda f: f.drop(columns="status"), "ratings.parquet: has no column status"),
        ("ratings", lambda f: f.assign(secret="x"), "does not describe column secret of ratings.parquet"),
        ("ratings", lambda f: f.assign(value=f["value"].astype(str)), "column value holds text"),
        ("ratings", put("label", 0, "U9999"), "ratings: label U9999 is not among the items"),
        ("ratings", lambda f: pd.concat([f, f.head(1)]), "rater_id, label, metric_id, occasion do not name"),
        ("ratings", put("reason", 3, "제 번호는 010-1234-5678"), "ratings: reason in row 4 holds what tells who"),
        ("responses", put("text", 2, "저는 김민수입니다"), "responses: text in row 3 holds what tells who"),
        ("responses", put("model", 2, "a.kim@snu.ac.kr"), "responses: model in row 3 holds what tells who"),
        ("responses", put("text", 2, "계좌 110-234-567890"), "responses: text in row 3 holds what tells who"),
        ("raters", put("rater_id", 0, "Kim"), "raters: Kim is no name that a release gives"),
        ("raters", put("attribute", 0, "nurse"), "only 1 people share the attribute nurse"),
    ],
)  # fmt: skip
def test_a_table_that_may_not_leave_so_is_named(package, name, change, says):
    rows(package, name, change)
    assert any(says in p for p in problems_of(package)), problems_of(package)


def test_files_that_are_gone_added_or_changed_are_named(package):
    (package / "metrics.parquet").unlink()
    (package / "key.parquet").write_bytes(b"left behind")
    with open(package / "README.md", "a", encoding="utf-8") as card:
        card.write("more")
    found = problems_of(package)
    assert "metrics.parquet: not found, though SHA256SUMS names it" in found
    assert any(p.startswith("key.parquet: is not in SHA256SUMS") for p in found)
    assert "README.md: is not the file that SHA256SUMS names; its hash differs" in found


def test_a_label_taken_off_the_files_is_missed(package):
    for path in package.glob("*.parquet"):
        pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    sealed(package)
    assert "ratings.parquet: does not say in its metadata that ratings are simulated" in problems_of(package)


def parts(told, path=()):
    """The path to every part of a document."""
    yield path
    inside = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    for name, value in inside:
        yield from parts(value, (*path, name))


def test_no_description_however_spoilt_brings_the_check_down(package):
    """Parts in turn become something else; what leads to no data, such as a column's sentence, may."""
    whole = json.loads((package / "croissant.json").read_text("utf-8"))
    draw = random.Random(7)
    places = draw.sample([p for p in parts(whole) if p and p[0] != "@context"], 150)
    for *above, last in places:
        spoilt = json.loads(json.dumps(whole))
        within = spoilt
        for name in above:
            within = within[name]
        within[last] = draw.choice([None, "x", [], {}, 5, ["x"], True])
        (package / "croissant.json").write_text(json.dumps(spoilt), "utf-8")
        summed(package)
        leads = last in ("dataType", "source", "column", "extract", "fileObject", "sha256", "key")
        assert problems_of(package) or not (leads and above[0] in ("recordSet", "distribution")), (above, last)


def test_what_is_no_package_is_refused(tmp_path, package):
    with pytest.raises(StudyError, match="holds no croissant.json"):
        problems_of(tmp_path)
    for text in ("{", "[]"):
        (package / "croissant.json").write_text(text, "utf-8")
        assert 1 == len(problems_of(package))


def test_the_command_names_the_fault_and_exits_with_one(package):
    told(package, lambda d: d.pop("rai:dataBiases"))
    done = subprocess.run(
        [sys.executable, "-m", "study", "verify-release", package], capture_output=True, text=True
    )
    assert 1 == done.returncode
    said = f"error: {package}: croissant.json: lacks rai:dataBiases, which every data set must say of itself"
    assert [said] == done.stderr.splitlines()
