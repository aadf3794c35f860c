"""All that a report says of a study, computed once."""

from dataclasses import dataclass, replace

from analysis import fitting, means, reliability
from analysis.drawing import Look, look
from analysis.fitting import Fitted
from analysis.load import Loaded, rated_metrics
from analysis.progress import Told
from analysis.reliability import Agreement, Bootstrap
from analysis.reporting.section import spaced
from study.config import Study
from study.errors import StudyError, joined
from study.records import Metric

_LONGEST = 34  # letters of a title that still fits a figure


@dataclass(frozen=True)
class Analysed:
    """A study with its fits and its agreement, metric by metric, in the study's order.

    `loaded` names sources by their titles, where these can tell them apart; `refused` says of each metric that
    allows no model or no agreement why it is not among the others.
    """

    loaded: Loaded
    study: Study
    fits: tuple[Fitted, ...]
    agreements: tuple[Agreement, ...]
    raters: str
    refused: tuple[str, ...] = ()

    @property
    def look(self) -> Look:
        return look(list(source_names(self.study).values()))

    @property
    def names(self) -> dict[str, str]:
        """Source id → the name that the report uses."""
        return source_names(self.study)

    def noun(self, item: str) -> str:
        """What a rated item is called: an answer only where the study has the questions."""
        return {"encounter": "encounter", "utterance": "item" if self.study.content_files is None else "answer"}[
            item
        ]

    def title(self, item: str) -> str:
        """The heading of one kind of item."""
        return {"encounter": "Whole encounters", "answer": "Single answers", "item": "Items"}[self.noun(item)]

    def of(self, item: str, *, compared: bool = False) -> list[Fitted]:
        """The fits of utterances or of encounters; those that compare sources only, if asked."""
        own = [f for f in self.fits if f.selected.metric.item == item]
        return [f for f in own if len(means.factors(f).get("source", ())) > 1] if compared else own

    def metric(self, metric_id: str) -> Metric:
        return self.loaded.metric(metric_id)


def analysed(
    loaded: Loaded, study: Study, bootstrap: Bootstrap, raters: str, told: Told | None = None
) -> Analysed:
    """Fit every metric and estimate its agreement.

    Parameters
    ----------
    told : is called with each metric that is done

    Raises
    ------
    StudyError : if no metric can be fitted
    """
    named = _titled(loaded, study)
    metrics, done, refused = rated_metrics(named), [], []
    for number, name in enumerate(metrics, 1):
        try:
            found = fitting.fitted(named, name, raters=raters)
            done.append((found, reliability.reliability(named, name, raters, bootstrap)))
        except StudyError as error:
            refused.append(str(error))
        if told:
            told(number, len(metrics), name)
    if not done:
        raise StudyError(joined(refused))
    fits, agreements = zip(*done, strict=True)
    return Analysed(named, study, fits, agreements, raters, tuple(refused))


def source_names(study: Study) -> dict[str, str]:
    """Sources by their titles; by their ids, where titles are the same, long, or cannot stand in a list."""
    titles = {s.source_id: s.title for s in study.sources}
    # A colon joins the parts of a term's name, a comma those of a list.
    apart = len(set(titles.values())) == len(titles) and not any(set(":,;") & set(t) for t in titles.values())
    return titles if apart and max(map(len, titles.values()), default=0) <= _LONGEST else {s: s for s in titles}


def metric_name(found: Fitted | Metric) -> str:
    return spaced(found.metric_id)


def _titled(loaded: Loaded, study: Study) -> Loaded:
    frame, names = loaded.frame, source_names(study)
    if "source" not in frame.columns:
        return loaded
    return replace(loaded, frame=frame.assign(source=frame["source"].cat.rename_categories(names)))
