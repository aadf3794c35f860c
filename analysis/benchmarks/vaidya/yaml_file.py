"""A YAML file as plain values, no key twice."""

from pathlib import Path

import yaml

from study.errors import StudyError


class _Once(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML's own loader would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        names = [self.construct_object(key, deep=True) for key, _ in node.value]
        if again := [n for n in names if names.count(n) > 1]:
            problem = f"{again[0]} stands twice"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def document(path: Path) -> object:
    """What a YAML file holds.

    Raises
    ------
    StudyError : if it cannot be read, or is not YAML
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Once)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise StudyError(f"{path}{line}: is not YAML: {getattr(error, 'problem', None) or error}") from None
