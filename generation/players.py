"""Who plays: an embedded doctor or patient by name, or a model."""

from collections.abc import Sequence

from generation.doctor import Mute, Oracle, RuleDoctor
from generation.encounter import Player
from generation.model_player import LocalPlayer, ModelPlayer
from generation.patient import RetrievalPatient
from generation.settings import ModelSettings
from generation.sources.local import small_model
from study.errors import StudyError
from study.records import Role

EMBEDDED: dict[Role, dict[str, str]] = {
    "doctor": {
        "embedded": "asks from a fixed list, and names the diagnosis of the file that the answers fit best",
        "oracle": "knows the answer: scores must be full",
        "mute": "never concludes: scores must be nothing",
    },
    "patient": {"embedded": "answers with the case's own sentences, by retrieval"},
}
LOCAL = "local"  # the small real model of this machine (extra `local`)


def player(
    role: Role,
    model: str,
    *,
    settings: ModelSettings | None = None,
    diagnoses: Sequence[str] = (),
    name: str | None = None,
) -> Player:
    """Somebody to play a role.

    Parameters
    ----------
    model : an embedded one's name, `local`, or a model of which `settings` say how it is reached
    diagnoses : of all cases together, for the embedded doctor to choose from
    name : its id, if it is not to be the model's name

    Raises
    ------
    StudyError : for a model without settings, a role that an embedded one does not play, or a missing extra
    """
    if settings is not None:
        return ModelPlayer(name or model, role, settings)
    if model == LOCAL:
        given: dict[str, object] = {"max_tokens": 60, "seed": 1}
        return LocalPlayer(name or model, role, small_model(given, model))
    if model not in EMBEDDED[role]:
        raise StudyError(
            f"{model}: no embedded {role}; there are {', '.join([*EMBEDDED[role], LOCAL])}, or a model with its "
            "provider"
        )
    if role == "patient":
        return RetrievalPatient(name or model)
    if model == "embedded":
        return RuleDoctor(diagnoses, name or model)
    return Oracle(name or model) if model == "oracle" else Mute(name or model)
