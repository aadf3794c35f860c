"""croissant.json: a data package in the words of Croissant 1.1 and its Responsible-AI vocabulary 1.0.

The JSON is written by hand: the attributes of the library for it differ in places from the vocabulary's names.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from study.config import RaiSection
from study.released import Released

if TYPE_CHECKING:
    from study.release import Package

CONFORMS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
PARQUET = "application/x-parquet"  # the registered name is not read by the reference implementation
TYPES = {"text": "sc:Text", "integer": "sc:Integer", "real": "sc:Float", "boolean": "sc:Boolean"}
RAI = (  # the vocabulary, and one word that conferences ask for beyond it
    "annotationsPerItem", "annotatorDemographics", "dataAnnotationAnalysis", "dataAnnotationPlatform",
    "dataAnnotationProtocol", "dataBiases", "dataCollection", "dataCollectionMissingData", "dataCollectionRawData",
    "dataCollectionTimeframe", "dataCollectionType", "dataImputationProtocol", "dataLimitations",
    "dataManipulationProtocol", "dataPreprocessingProtocol", "dataReleaseMaintenancePlan", "dataSocialImpact",
    "dataUseCases", "hasSyntheticData", "machineAnnotationTools", "personalSensitiveInformation",
)  # fmt: skip
REQUIRED = (
    "dataLimitations", "dataBiases", "personalSensitiveInformation", "dataUseCases", "dataSocialImpact",
    "hasSyntheticData",
)  # fmt: skip
PROVENANCE = ("prov:wasDerivedFrom", "prov:wasGeneratedBy")
_LICENSES = {
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-SA-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
}
_USE = {True: "DUO_0000042", False: "DUO_0000046"}  # general research use; not-for-profit use only
_SINGLE = (
    "data_collection", "data_collection_raw_data", "data_imputation_protocol", "data_social_impact",
    "data_release_maintenance_plan",
)  # fmt: skip
_CR = (
    "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject",
    "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5",
    "parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator",
    "source", "subField", "transform",
)  # fmt: skip
_PLATFORMS = {
    "app": "Crossed: a rating app that shows no source",
    "simulation": "None: the ratings were drawn from a model of raters",
}
SIMULATED = "SIMULATED"  # stands in the description of every package that holds such ratings


def document(made: "Package", files: Mapping[str, tuple[str, int]]) -> dict[str, object]:
    """The Croissant description of a package.

    Parameters
    ----------
    files : name of each Parquet file → its SHA-256 and its size in bytes
    """
    release, study = made.study.release, made.study
    about = " ".join([release.description, *simulation(made)])
    found = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS),
        "name": study.study_id,
        "alternateName": study.title + (" (simulated ratings)" if made.simulated else ""),
        "description": about,
        "version": release.version,
        "datePublished": release.date.isoformat(),
        "license": _LICENSES.get(release.license, release.license),
        "url": release.url,
        "creator": [{"@type": "sc:Person", "name": name} for name in release.creators],
        "citeAs": citation(made),
        "keywords": list(release.keywords) or None,
        "isLiveDataset": False,
        "usageInfo": {"@id": f"http://purl.obolibrary.org/obo/{_USE[release.commercial_use]}"},
        "prov:wasDerivedFrom": _origins(made),
        "prov:wasGeneratedBy": _activities(made),
    }
    found |= {f"rai:{name}": value for name, value in responsible(made).items()}
    found["distribution"] = [_file(name, *told, release.files_url or "") for name, told in files.items()]
    held = {t.name for t in made.tables}
    found["recordSet"] = [_record_set(t, held) for t in made.tables]
    return {k: v for k, v in found.items() if v is not None}


def simulation(made: "Package") -> list[str]:
    """That ratings are simulated, if any is, in a sentence."""
    ratings = made.frames["ratings"]
    if not made.simulated:
        return []
    people = ratings[ratings["rater_kind"] == "human"]
    if people["simulated"].all():
        return [f"The panel's ratings are {SIMULATED}: they were drawn from a model, and no person gave them."]
    return [f"Of the panel's {len(people)} ratings {made.simulated} are {SIMULATED}: no person gave them."]


def citation(made: "Package") -> str:
    """How the package is cited: as study.toml says, or by its creators, year, title and version."""
    release = made.study.release
    names = ", ".join(release.creators)
    return release.cite_as or (
        f"{names} ({release.date.year}). {made.study.title}, version {release.version}. {release.url}"
    )


def responsible(made: "Package") -> dict[str, object]:
    """The Responsible-AI fields: what study.toml's [rai] says, and what the data themselves say."""
    said = made.study.rai
    by_people = {_camel(k): _listed(k, v) for k, v in said.model_dump().items() if v}
    return dict(sorted((_told(made, said) | by_people).items()))


def _told(made: "Package", said: RaiSection) -> dict[str, object]:
    ratings, raters = made.frames["ratings"], made.frames["raters"]
    people = raters[raters["rater_kind"] == "human"]
    judges = raters[raters["rater_kind"] != "human"]
    valued = ratings[ratings["value"].notna()]
    counted = ratings[ratings["rater_kind"] == "human"] if len(people) else ratings
    each = counted.groupby(["label", "metric_id"])["value"].count()
    missing = ratings.loc[ratings["value"].isna(), "status"].value_counts()
    told = {
        "hasSyntheticData": bool(made.simulated) or any(s.kind != "expert" for s in made.study.sources),
        "dataCollection": f"The answers of {len(made.study.sources)} sources were rated"
        + (", under labels that do not tell whose they are" if made.origin != "import" else "")
        + f". Raters: {_several(raters)}.",
        "dataCollectionType": ["Manual Human Curator", "Others"] if not people["simulated"].all() else ["Others"],
        "dataCollectionMissingData": f"{len(ratings) - len(valued)} of {len(ratings)} ratings have no value"
        + (f" ({', '.join(f'{n} {s}' for s, n in missing.items())})" if len(missing) else "")
        + "; each keeps its row with a status.",
        "dataPreprocessingProtocol": [*protection(made)],
        "dataImputationProtocol": "Nothing is imputed.",
        "dataManipulationProtocol": "No rating was changed. Texts are as given, but for replaced stretches.",
        "dataAnnotationProtocol": [f"{m.metric_id} ({m.low:g} to {m.high:g}): {m.question}".rstrip(": ")
                                   for m in made.study.metrics],
        "annotationsPerItem": f"{_span(each)} ratings with a value of each item on each metric"
        + (" by people" if len(people) and not people["simulated"].any() else ""),
        "annotatorDemographics": [demographics(made)],
        "dataReleaseMaintenancePlan": "Who withdraws is left out of the next version; earlier versions must then "
        "be deleted.",
    }  # fmt: skip
    if made.origin in _PLATFORMS:
        told["dataAnnotationPlatform"] = [_PLATFORMS[made.origin]]
    if len(judges):
        told["machineAnnotationTools"] = sorted(judges["rater_id"])
    if span := timeframe(made):
        told["dataCollectionTimeframe"] = list(span)
    return told


def _several(raters: pd.DataFrame) -> str:
    """Raters by kind in words, simulated ones by their name."""
    person = raters["rater_kind"] == "human"
    counts = {
        "human": int((person & ~raters["simulated"]).sum()),
        "simulated": int((person & raters["simulated"]).sum()),
        "automated": int((~person).sum()),
    }
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


def protection(made: "Package") -> list[str]:
    """What was done to protect people, in sentences."""
    replaced = sum(made.replaced.values())
    kinds = ", ".join(f"{n} × {kind}" for kind, n in sorted(made.replaced.items()))
    audit = made.study.release.audit
    return [
        f"Stretches of text replaced by placeholders: {replaced}{f' ({kinds})' if kinds else ''}.",
        *([f"A person read a sample of the texts: {audit}"] if audit else []),
        "Raters have new names, in an order drawn from a secret; no time or order of ratings is released.",
        f"Raters left out, who withdrew or did not agree to sharing: {len(made.left_out)}.",
        f"Reasons in raters' own words that were emptied: {made.dropped}.",
    ]


def _span(counts: pd.Series) -> str:
    """The least and the most of some counts; "no" if there is none."""
    if counts.empty:
        return "no"
    return str(counts.min()) if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


def demographics(made: "Package") -> str:
    """Who the raters are, as far as it is told without telling who anybody is."""
    raters = made.frames["raters"]
    people = raters[raters["rater_kind"] == "human"]
    if len(people) and people["simulated"].all():
        return f"{len(people)} simulated raters; no person."
    if made.attribute is None:
        return f"{len(people)} human raters; no attribute of theirs is released."
    counts = ", ".join(f"{n} {v}" for v, n in people["attribute"].value_counts().sort_index().items())
    return f"{len(people)} human raters by {made.attribute}: {counts}."


def timeframe(made: "Package") -> tuple[str, ...]:
    """First and last day on which a model answered; empty if none is known."""
    days = made.frames.get("responses", pd.DataFrame({"answered_on": []}))["answered_on"].dropna()
    return (days.min(), days.max()) if len(days) else ()


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _listed(name: str, value: object) -> object:
    """A value as the vocabulary counts it: some fields are one, the others many."""
    if isinstance(value, tuple):
        return list(value)
    return value if name in _SINGLE else [value]


def _context() -> dict[str, object]:
    own = {name: f"cr:{name}" for name in _CR}
    typed = {
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "description": {"@container": "@language"},
        "name": {"@container": "@language"},
    }
    spaces = {
        "@language": "en", "@vocab": "https://schema.org/", "conformsTo": "dct:conformsTo",
        "cr": "http://mlcommons.org/croissant/", "dct": "http://purl.org/dc/terms/",
        "prov": "http://www.w3.org/ns/prov#", "rai": "http://mlcommons.org/croissant/RAI/",
        "sc": "https://schema.org/",
    }  # fmt: skip
    return dict(sorted((own | typed | spaces).items()))


def _origins(made: "Package") -> list[dict[str, str]]:
    # By number: a name may hold what an @id may not.
    return [
        {"@id": f"urn:crossed:{made.study.study_id}:source:{n}", "prov:label": f"{s.title} ({s.kind})"}
        for n, s in enumerate(made.study.sources, 1)
    ]


def _activities(made: "Package") -> list[dict[str, str]]:
    waiver = made.study.generation.waiver
    span = timeframe(made)
    asked = {"@type": "prov:Activity", "prov:label": "Prompts put to the sources"}
    if span:
        asked |= {"prov:startedAtTime": span[0], "prov:endedAtTime": span[1]}
    if waiver:
        asked["description"] = f"Answers from further apart than the study's window are accepted: {waiver}"
    rated = {
        "app": "Answers rated by people who were not told the sources",
        "import": "Ratings brought in from elsewhere",
        "simulation": "Ratings drawn from a model of raters",
    }[made.origin]
    return [asked, {"@type": "prov:Activity", "prov:label": rated}]


def _file(name: str, sha256: str, size: int, url: str) -> dict[str, object]:
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": f"{url}{name}",
        "contentSize": f"{size} B", "encodingFormat": PARQUET, "sha256": sha256,
    }  # fmt: skip


def _record_set(table: Released, held: set[str]) -> dict[str, object]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.says,
        "key": [{"@id": f"{table.name}/{k}"} for k in table.key],
        "field": [_field(table, c.name, held) for c in table.columns],
    }


def _field(table: Released, name: str, held: set[str]) -> dict[str, object]:
    column = next(c for c in table.columns if c.name == name)
    found = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{name}",
        "name": name,
        "description": column.says,
        "dataType": TYPES[column.type],
        "source": {"fileObject": {"@id": table.file}, "extract": {"column": name}},
    }
    if column.refers and column.refers.split(".")[0] in held - {table.name}:
        found["references"] = {"field": {"@id": column.refers.replace(".", "/")}}
    return found
