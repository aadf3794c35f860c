"""What a run and an evaluation say on a terminal."""

from collections.abc import Mapping

from analysis import display
from analysis.benchmarks.vaidya.evaluation import DRAWS, LEVEL, Evaluation
from analysis.benchmarks.vaidya.running import Ran
from analysis.stats.clusters import FEWEST

_SHOWN = 5
EMBEDDED = "An embedded speaker, or the small model for trials, took part: no score says anything of a model."


def ran(found: Ran) -> str:
    """A run in one paragraph: how the encounters ended, what they cost, what was noticed."""
    who = f"{found.parties.doctor.model} with patient {found.parties.patient.model}"
    if found.outcome is None:
        return f"{who}: all {found.kept} conversations are there already"
    outcome = found.outcome
    counts = outcome.statuses.get(found.parties.doctor.model, {})
    ends = ", ".join(f"{n} {status}" for status, n in counts.items())
    lines = [f"{who}: {outcome.encounters} encounters: {ends}; {outcome.kept} kept, {found.written} files written"]
    if outcome.calls:
        known = "unknown" if outcome.cost is None else f"{outcome.cost:.4f}"
        short = f" without {outcome.unpriced} unpriced encounters" if outcome.unpriced and outcome.cost else ""
        lines.append(f"{outcome.calls} calls; cost {known}{short}")
    lines += [f"note: {flag} in {n} encounters" for flag, n in outcome.flags.items()]
    if found.parties.doctor.embedded or found.parties.patient.embedded:
        lines.append(EMBEDDED)
    return "\n".join(lines)


def evaluated(found: Evaluation) -> str:
    """An evaluation in a few lines: the score with its n, interval and calibration, and what is not in it."""
    s = found.summary
    by = {str(e["term"]): e for e in s["estimates"]}
    n = display.share(s["evaluated"], s["expected"])
    head = f"{s['doctor']}: {s['metric']} by {s['rater']}"
    mean = by.get("score_mean")
    if mean is None:
        lines = [f"{head}: no score; evaluated {n}"]
    else:
        lines = [
            f"{head}: {_written(mean)}, n = {n}, {s['calibration']['word']}",
            f"  with all that is not evaluated as 0: {_written(by['score_mean_missing_zero'])}",
            f"  ({_intervals(mean)})",
        ]
        if s["calibration"]["word"] == "calibrated":
            lines.insert(1, f"  as the panel would have it: {_written(s['calibration'])}")
        panel = "; the panel is simulated" if s["calibration"].get("simulated") else ""
        lines.insert(-2, f"  {s['calibration']['word']}: {s['calibration']['why']}{panel}")
    lines += _counts(found)
    if s["eval_token_usage"]["total"]:
        cost = f"unknown ({', '.join(s['unpriced'])} unpriced)"
        if s["eval_cost"] is not None:
            cost = f"{s['eval_cost']:.4f}"
        lines.append(f"  judging took {display.count(s['eval_token_usage']['total'])} tokens; cost {cost}")
    odd = list(s["contradictions"].items())
    lines += [f"  note: patient_{case_id}.json: {'; '.join(said)}" for case_id, said in odd[:_SHOWN]]
    if len(odd) > _SHOWN:
        lines.append(f"  note: {len(odd) - _SHOWN} more files contradict themselves")
    if s["simulated"]:
        lines.append(f"  {EMBEDDED}")
    return "\n".join(lines)


def _intervals(mean: Mapping[str, object]) -> str:
    """Where the intervals are from, or why there is none."""
    if mean["low"] == mean["low"]:
        return f"{LEVEL:.0%} intervals: {DRAWS:,} bootstrap draws of the cases; exact where all scores are alike"
    few = int(mean["n"]) < FEWEST  # type: ignore[call-overload]
    return "no interval: " + (f"fewer than {FEWEST} cases support none" if few else "all scores are alike")


def _written(estimate: Mapping[str, object]) -> str:
    return display.estimate(estimate["estimate"], estimate["low"], estimate["high"], 3)


def _counts(found: Evaluation) -> list[str]:
    """A line for each reason why a case is not in the mean, or scores nothing."""
    s = found.summary
    told = (
        ("missing", "missing"), ("invalid", "invalid"), ("judge_errors", "judge errors"),
        ("unjudged", "not judged"), ("no_words", "with a speaker that said nothing"),
        ("no_diagnosis", "without a diagnosis (score 0)"), ("strangers", "of cases that the file does not have"),
    )  # fmt: skip
    lines = [f"  {len(s[name])} {words}: {display.several(list(s[name]), 8)}" for name, words in told if s[name]]
    lines += [f"    for example: {why}" for why in _why(found)]
    return lines + [f"  note: {flag} in {len(ids)}: {display.several(ids, 8)}" for flag, ids in s["leaks"].items()]


def _why(found: Evaluation) -> list[str]:
    """One case's own words for each kind of case that has no score, but for those whose file is not there."""
    first: dict[str, Mapping[str, object]] = {}
    for row in found.rows:
        if row["score"] is None and row["status"] != "missing":
            first.setdefault(str(row["status"]), row)
    return [f"patient_{r['patient_id']}: {r['reasoning']}" for r in first.values()]
