"""The naming rules of the code: how a module and a public function may be called, and how far the code is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.servers import ROOT

LONGEST_TEMPLATE_LINE: Final = 200
APPS: Final = ("tenancy", "traces", "budgets", "approvals", "orchestrator", "config", "demo")


def _words(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


# Words that say nothing to an engineer of this field, or that mean something else in Django and Python.
METAPHORS: Final = _words(
    "book books company deeds desk doors hand hands house landing learner leave outlook shelf standing trip",
    "wall walls way ways words",
)
MISLEADING: Final = _words("drawing leave secrets shell sources tracing view")
# Nouns of the field that end like a gerund or a participle.
NOUNS: Final = _words(
    "accounting chunking clustering diff embedded encoding feed folding grounding layering learning mapping",
    "matching need outgoing parsing pinning polling posting pricing reading remaining routing sanitizing",
    "screening seed setting settings speed streaming string taint_tracking throttling timing tracking",
    "warning wiring",
)
PARTICIPLE: Final = re.compile(r"^[a-z]+(?:ing|ed|en|wn)$")
OPENERS: Final = re.compile(r"^(?:What|Whether|Who|Where|That)\b")
# Names that a framework, a protocol or the field has fixed, each with its reason.
FIXED: Final[dict[str, str]] = {
    "main": "the entry point of a program",
    "livez": "the name of the probe in Kubernetes",
    "readyz": "the name of the probe in Kubernetes",
    "forbidden": "named by handler403",
    "advance": "the term of the machine's one function",
    "tool": "the decorator that a tool's author writes",
    "holds": "the protocol of guards and validators",
    "faults": "the protocol of validators",
    "unmet": "the counterpart of `holds` over all criteria",
    "cancel": "looked up by the verb of a run signal",
    "pause": "looked up by the verb of a run signal",
    "resume": "looked up by the verb of a run signal",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class FunctionFound:
    """A function of the code: its name, whether it stands at module level, and its docstring."""

    name: str
    at_module_level: bool
    docstring: str


@dataclass(slots=True)
class Figures:
    """Counts over all functions and docstrings, and the breaches of the rules."""

    functions: int = 0
    one_word: int = 0
    participles: int = 0
    docstrings: int = 0
    openers: int = 0
    breaches: list[str] = field(default_factory=list)

    @property
    def shares(self) -> dict[str, float]:
        """Return in per cent: one-word names, bare participles, docstrings that open with What or so."""
        return {
            "one-word function names": 100 * self.one_word / max(self.functions, 1),
            "bare participles": 100 * self.participles / max(self.functions, 1),
            "docstrings that open with What": 100 * self.openers / max(self.docstrings, 1),
        }


def list_modules() -> list[Path]:
    """Return the modules of the applications, without migrations."""
    return sorted(
        path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts
    )


def list_functions(tree: ast.Module) -> Iterator[FunctionFound]:
    """Yield every function and method of a module."""
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield FunctionFound(node.name, id(node) in top, ast.get_docstring(node) or "")


def is_participle(name: str) -> bool:
    """Return whether a name is one bare participle or gerund."""
    return bool(PARTICIPLE.match(name)) and name not in NOUNS


def find_module_fault(stem: str) -> str | None:
    """Return why a module may not be called so, or None."""
    if stem in METAPHORS | MISLEADING:
        return "a metaphor, or a word that means something else"
    last = stem.rpartition("_")[2]
    if last not in NOUNS and (last.endswith("ing") or is_participle(stem)):
        return "a gerund or a participle"
    return None


def find_function_fault(path: Path, name: str) -> str | None:
    """Return why a public function of a module may not be called so, or None.

    Template tags are exempt: pages write their names.
    """
    if name in FIXED or "templatetags" in path.parts:
        return None
    if "_" not in name.strip("_"):
        return "one word"
    return None


def measure(paths: Iterable[Path]) -> Figures:
    """Read modules and return their figures; a breach reads `path: name: reason`."""
    found = Figures()
    for path in paths:
        where, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text())
        if path.stem != "__init__" and (why := find_module_fault(path.stem)):
            found.breaches.append(f"{where}: {why}")
        docstrings = [ast.get_docstring(tree) or ""]
        docstrings += [
            ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
        ]
        for one in list_functions(tree):
            docstrings.append(one.docstring)
            _count(found, path, one)
        found.docstrings += sum(map(bool, docstrings))
        found.openers += sum(bool(OPENERS.match(text)) for text in docstrings)
    return found


def _count(found: Figures, path: Path, one: FunctionFound) -> None:
    if one.name.startswith("__"):
        return
    bare = one.name.strip("_")
    found.functions += 1
    found.one_word += "_" not in bare
    found.participles += is_participle(bare)
    public = one.at_module_level and not one.name.startswith("_")
    if public and (why := find_function_fault(path, one.name)):
        found.breaches.append(f"{path.relative_to(ROOT)}: {one.name}: {why}")


def list_long_template_lines() -> list[str]:
    """Return the places of template lines that are too long to be read, as `path:line`."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "templates").rglob("*.html"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST_TEMPLATE_LINE
    ]


def main() -> None:
    """Print the figures."""
    modules = list_modules()
    found = measure(modules)
    for name, share in found.shares.items():
        print(f"{name}: {share:.1f} %")
    print(f"lines of code without tests, migrations and bench: {sum(_count_lines(one) for one in modules)}")
    print(f"template lines over {LONGEST_TEMPLATE_LINE} characters: {len(list_long_template_lines())}")
    print(f"breaches of the naming rules: {len(found.breaches)}, exceptions: {len(FIXED)}")


def _count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


if __name__ == "__main__":
    main()
