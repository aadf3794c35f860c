"""A model that plays the doctor or the patient of any case, behind an OpenAI-compatible address."""

import threading
from collections.abc import Mapping, Sequence

from generation.asking import Asker, Note, Stopped
from generation.client import body, key
from generation.encounter import Appointment, Speaker
from generation.price import bound
from generation.prompt import system_prompt
from generation.settings import ModelSettings
from generation.sources.local import NAME, reached
from generation.sources.openai_chat import outcome
from generation.sources.speaker import Answer
from study.records import Persona, Role, Turn, Vignette

_DOCTOR = {
    "en": """You are a doctor. Take the history of the patient before you and come to a diagnosis.
Ask one short question at a time; speak to the patient only, and do not play the patient.
You have at most {rounds} turns. As soon as you are sure, and at the latest in your last turn, end with two lines:
Diagnosis: <the one most likely diagnosis>
Considered: <diagnosis> <0 to 100>; <diagnosis> <0 to 100>; …""",
    "ko": """당신은 의사입니다. 앞에 있는 환자를 문진하고 진단을 내리세요.
한 번에 짧은 질문 하나만 하고, 환자에게만 말하며, 환자 역할은 하지 마세요.
최대 {rounds}번 말할 수 있습니다. 충분히 확신하면 바로, 늦어도 마지막 차례에는 다음 두 줄로 끝내세요.
진단: <가장 가능성이 높은 진단 하나>
고려한 진단: <진단> <0에서 100>; <진단> <0에서 100>; …""",
}
_PATIENT = {
    "en": """You are the patient in the case below, talking to a doctor.
Answer only what you are asked, briefly and in a patient's words, from the case alone; else you do not know.
Never name a diagnosis, never speak as a doctor, and never write the doctor's part.

{text}""",
    "ko": """당신은 아래 사례의 환자이며 의사와 이야기하고 있습니다.
물어본 것에만 환자의 말로 짧게, 사례에 있는 내용으로만 대답하세요. 사례에 없으면 모릅니다. 진단명을 말하지 말고, \
의사처럼 말하지 말고, 의사의 말을 대신 쓰지 마세요.

{text}""",
}
_ENTERS = {
    "en": "(The doctor comes in. Say in one sentence what brings you here.)",
    "ko": "(의사가 들어옵니다. 무엇 때문에 왔는지 한 문장으로 말하세요.)",
}


class ModelPlayer:
    """A model in one role. Safe to use from several threads; its key is looked for when it is opened."""

    def __init__(self, name: str, role: Role, settings: ModelSettings, address: str | None = None) -> None:
        self.name = name
        self.role = role
        self.settings = settings
        self.workers = settings.concurrency
        self.demo = settings.demo
        self.bounded = bound(settings, {}) is not None
        where = address or settings.base_url.rstrip("/")
        self.identity: Mapping[str, object] = {
            "kind": "model", "role": role, "address": where, "api": settings.api, "model": settings.model,
            "sampling": settings.sampling(), "extra_body": settings.extra_body, "variant": settings.variant,
            "replicate": settings.replicate,
        }  # fmt: skip
        self._asker: Asker | None = None
        self._opening = threading.Lock()

    def brief(self, case: Vignette, rounds: int) -> str:
        language = case.language if case.language in _DOCTOR else "en"
        if self.role == "doctor":
            return _DOCTOR[language].format(rounds=rounds)
        persona = case.extra.get("persona")
        if isinstance(persona, Persona):
            return system_prompt(persona, case.language, self.settings.variant)
        return _PATIENT[language].format(text=case.text)

    def open(self, note: Note) -> None:
        with self._opening:
            if self._asker is None:
                self._asker = Asker(self.settings, note)

    def meets(self, at: Appointment, rounds: int) -> Speaker:
        return _Model(self, at, rounds)

    def stop(self) -> None:
        if self._asker is not None:
            self._asker.gate.stop()

    def close(self) -> None:
        if self._asker is not None:
            self._asker.close()
            self._asker = None

    def asker(self) -> Asker:
        if self._asker is None:
            raise AssertionError(f"{self.name} was not opened")
        return self._asker


class LocalPlayer(ModelPlayer):
    """The small real model of this machine; its server starts when it is opened."""

    def __init__(self, name: str, role: Role, settings: ModelSettings) -> None:
        super().__init__(name, role, settings, address=f"local:{NAME}")

    def open(self, note: Note) -> None:
        self.settings = reached(self.settings)
        super().open(note)


class _Model:
    """A model in one encounter."""

    def __init__(self, player: ModelPlayer, at: Appointment, rounds: int) -> None:
        self._player = player
        self._at = at
        replicate = player.settings.replicate + at.replicate - 1
        self._settings = player.settings.model_copy(update={"replicate": replicate})
        self._system = player.brief(at.case, rounds)

    def say(self, turns: Sequence[Turn]) -> Answer:
        sent = body(self._settings, self._messages(turns))
        role = self._player.role
        about = {
            "encounter_id": self._at.encounter_id, "role": role, "round": len(turns) // 2 + 1,
            "bound": bound(self._settings, sent),
        }  # fmt: skip
        named = key(f"{self._at.config}/{role}/{len(turns)}", self._settings, sent)
        try:
            asked = self._player.asker().ask(named, sent, about)
        except Stopped as stopped:
            if not str(stopped):  # the run is being ended, and nobody waits for an answer
                raise
            return Answer("failed", detail=str(stopped), asked=False)
        found = outcome(self._settings, sent, asked, self._at.case.language, (self._system.split("\n\n")[0],))
        return Answer(found.status, found.text, found.detail, {**found.about, "question": named}, found.asked)

    def _messages(self, turns: Sequence[Turn]) -> list[dict[str, str]]:
        own = self._player.role
        said = [{"role": "assistant" if t.speaker == own else "user", "content": t.text} for t in turns]
        if not turns:
            language = self._at.case.language
            said = [{"role": "user", "content": _ENTERS.get(language, _ENTERS["en"])}]
        elif said[0]["role"] == "assistant":  # servers want the first word from the user
            said.insert(0, {"role": "user", "content": _ENTERS.get(self._at.case.language, _ENTERS["en"])})
        return [{"role": "system", "content": self._system}, *said]
