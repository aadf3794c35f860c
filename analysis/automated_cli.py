"""`analysis judge`, `rules` and `lowscores`: raters that are no people, and the answers that people rate low."""

from pathlib import Path
from typing import Annotated

import typer

from analysis.options import Csv, Json, Level, Metric, Out, Reader, Target, reading
from study.errors import StudyError
from study.terminal import dump, say, warn

Folder = Annotated[Path, typer.Argument(metavar="study", help="The study folder.")]


def judge(
    folder: Folder = Path("."),
    name: Annotated[
        list[str] | None,
        typer.Option("--judge", metavar="ID", help="A judge of study.toml; repeatable. All of them."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Have LLM judges rate the study's items: one item a call, labels but no source; resumes where it stopped.

    A judge is a [[judge]] of study.toml: id, rubric, metrics, repeats, and a model's settings as of a source.

    Example: analysis judge demo-study --judge gpt-judge
    """
    from analysis import automated, judges
    from generation.progress import Meter
    from study.config import FILE, load

    study = load(folder)
    names = name or [j.judge_id for j in study.judges]
    if not names:
        raise StudyError(f"{folder / FILE}: has no [[judge]]; add one with id, model and rubric")
    benches = [judges.set_up(study, n) for n in names]
    for bench in benches:
        if bench.judge.repeats > 1 and bench.settings.temperature == 0:
            warn(f"{bench.judge.judge_id} repeats at temperature 0: its occasions may be copies, not repetitions")
    done = []
    with Meter(quiet=as_json) as meter:
        for n in names:
            judged, rows = judges.judge(study, n, meter)
            automated.join(study, rows)
            done.append(judged)
    if as_json:
        dump([vars(d) for d in done])
    else:
        for d in done:
            counts = ", ".join(f"{n} {status}" for status, n in d.statuses.items())
            cost = f"; cost {d.cost:.4f}" if d.cost is not None else ""
            say(f"{d.judge}: {counts}; {d.asked} items asked now, {d.kept} kept{cost}")
            if d.commonest_error:
                warn(f"{d.judge}: the commonest judge_error: {d.commonest_error}")
    if missing := [d for d in done if d.statuses.get("missing")]:
        reasons = "; ".join(f"{d.judge}: {d.stopped_by or 'some calls failed'}" for d in missing)
        raise StudyError(f"{folder}: not every item was judged ({reasons}); run again to ask for the rest")


def rules(
    folder: Folder = Path("."),
    planted: Annotated[
        bool, typer.Option("--planted", help="Also hold the rules against the embedded sources' planted faults.")
    ] = False,
    level: Level = 0.95,
    as_json: Json = False,
) -> None:
    """Let rules rate every answer: facts told and contradicted, particle, register, length; rows of kind rule.

    Example: analysis rules demo-study --planted
    """
    from analysis import automated, display, results
    from analysis import planted as faults
    from analysis import rules as ruled
    from analysis.tables import as_text
    from study import tables
    from study.config import load

    study = load(folder)
    items, key = tables.read(study.items, tables.ITEMS), tables.read(study.key, tables.KEY)
    content = study.content()
    rows = ruled.rows(items, content)
    against = faults.agreement(rows, items, key, study.sources, content, level) if planted else None
    automated.join(study, rows)
    sources = tuple(s.source_id for s in study.sources)
    found = ruled.shares(rows, key, sources)
    if as_json and against is None:
        dump(found.to_dict("records"))
        return
    if as_json:
        origin = {"study": study.study_id, "study_sha256": study.digest, "versions": results.versions()}
        kept = {"level": level, "shares": found, "estimates": against, "note": faults.SHARED}
        dump(results.Result("rules-planted", origin, kept).plain())
        return
    say(f"{study.ratings}: {len(rows)} rows by {ruled.RATER}; answers that fail, of those a rule applies to")
    table = found.assign(share=[display.share(r.failed, r.n) for r in found.itertuples()])
    wide = table.pivot(index="tag", columns="source", values="share")
    say(wide.reindex(index=list(ruled.TAGS.values()), columns=list(sources)).rename_axis(None).to_string())
    if against is not None:
        shown = faults.table(against)
        say(f"\nRules and planted faults (exact {100 * level:g}% intervals)")
        say(f"{as_text(shown, '  ')}\nnote: {shown.note}")
    if (rows["status"] == "missing").any():
        say('note: lengths are counted with `pip install "crossed-raters[tokens]"`')


@reading
def lowscores(
    target: Target = Path("."),
    metric: Metric = None,
    below: Annotated[
        float | None, typer.Option(help="The panel mean below which an answer is low; the middle of its scale.")
    ] = None,
    level: Level = 0.95,
    as_json: Json = False,
    csv: Csv = None,
    out: Out = None,
    *,
    reader: Reader,
) -> None:
    """List the answers that the panel rates low, with the rules' tags, by source, category and form.

    Example: analysis lowscores demo-study --metric fluency
    """
    from analysis import load, lowscores, results

    loaded = reader.load(target)
    spoken = [m for m in load.rated_metrics(loaded) if loaded.metric(m).item == "utterance"]
    names = [metric] if metric else spoken
    if not names:
        raise StudyError(f"{target}: no metric of utterances was rated; encounters have no single answer to show")
    answers = []
    for name in names:
        middle = (loaded.metric(name).low + loaded.metric(name).high) / 2
        edge = middle if below is None else below
        found = lowscores.low(loaded, name, below=edge, raters=reader.raters, level=level)
        answers.append(lowscores.answered(loaded, found, reader.raters, level))
    results.keep([a.result for a in answers], out or results.folder(loaded), csv, table="answers")
    if as_json:
        dump(answers[0].result.plain() if metric else [a.result.plain() for a in answers])
    else:
        say("\n\n".join(a.text for a in answers))
