"""One question to a judge until its reply is a verdict: asked again twice at most, with what was wrong with it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from analysis.verdict import NoVerdict
from generation.asking import Asked, Asker
from generation.client import body
from generation.price import bound, cost
from generation.settings import ModelSettings, Price

RE_ASKS = 2
Found = TypeVar("Found")


@dataclass(frozen=True)
class Outcome(Generic[Found]):
    """What came of it. `failed`: a server did not answer; `not_asked`: nothing left for it any more."""

    status: Literal["ok", "judge_error", "failed", "not_asked"]
    asked: tuple[Asked, ...]
    verdict: Found | None = None
    detail: str | None = None

    def about(self, price: Price | None) -> dict[str, object]:
        """Model, tokens and cost of all replies together, for a log."""
        replies = [a.call.reply for a in self.asked if a.call is not None]
        last = replies[-1] if replies else None
        return {
            "model": last.model if last else None,
            "response_id": last.response_id if last else None,
            "fingerprint": last.fingerprint if last else None,
            "prompt_tokens": total([r.usage.prompt for r in replies]),
            "completion_tokens": total([r.usage.completion for r in replies]),
            "cost": total([cost(r.usage, price) for r in replies]),
            "asks": len(self.asked),
            "attempts": sum(a.attempts for a in self.asked),
        }


def insist(
    asker: Asker,
    settings: ModelSettings,
    messages: Sequence[Mapping[str, str]],
    read: Callable[[str], Found],
    again: Callable[[str], str],
    key: str,
    about: Mapping[str, object],
) -> Outcome[Found]:
    """A judge's verdict, or why there is none.

    Parameters
    ----------
    read : the verdict in a reply; raises NoVerdict, which says what is wrong with it
    again : the words that ask for another reply, given what was wrong
    """
    said, asked, problem = [dict(m) for m in messages], [], ""
    for _ in range(1 + RE_ASKS):
        sent = body(settings, said)
        asked.append(asker.ask(key, sent, {**about, "bound": bound(settings, sent)}))
        call, error = asked[-1].call, asked[-1].error
        if call is None:
            status = "failed" if any(a.attempts for a in asked) else "not_asked"
            return Outcome(status, tuple(asked), detail=str(error))
        reply = call.reply
        if reply.text is None:
            problem = reply.detail or reply.status
        elif "truncated" in reply.flags:
            problem = "it was cut at the token limit"
            settings = settings.model_copy(
                update={"max_tokens": 2 * settings.max_tokens if settings.max_tokens else None}
            )
        else:
            try:
                return Outcome("ok", tuple(asked), read(reply.text))
            except NoVerdict as fault:
                problem = str(fault)
        said += [{"role": "assistant", "content": reply.text or "…"}]
        said += [{"role": "user", "content": again(problem)}]
    return Outcome("judge_error", tuple(asked), detail=f"{1 + RE_ASKS} replies without a verdict: {problem}")


def total(values: Sequence[float | None]) -> float | None:
    """A sum that is unknown if a part of it is, or if there is none."""
    return None if not values or any(v is None for v in values) else sum(values)
