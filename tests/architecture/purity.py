"""The rule of `core/`: no clock, no chance, no iteration over a set.

A set's order depends on the process's hash seed: iterating one makes two workers walk different ways from
the same state. What this cannot see (a set that arrives through a call), the determinism properties cover.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ALLOWED_PACKAGES = frozenset({"pydantic", "pydantic_core", "orjson", "jsonschema_rs", "typing_extensions"})
BANNED_MODULES = frozenset(
    {"random", "secrets", "time", "os", "socket", "subprocess", "threading", "asyncio", "tempfile", "pathlib"}
)
BANNED_CALLS = frozenset(
    {
        "now",
        "utcnow",
        "today",
        "uuid1",
        "uuid4",
        "uuid6",
        "uuid7",
        "urandom",
        "token_bytes",
        "token_hex",
        "getrandbits",
    }
)
ORDER_FREE = frozenset({"sorted", "set", "frozenset", "any", "all", "len", "min", "max"})
ORDERING = frozenset(
    {"list", "tuple", "enumerate", "iter", "map", "filter", "zip", "next", "reversed", "dict", "sum"}
)
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
SET_TYPES = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})


def is_set_annotation(node: ast.expr | None) -> bool:
    """Whether an annotation says set: `frozenset[str]`, `set`, `Set[str] | None`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.BinOp):
        return is_set_annotation(node.left) or is_set_annotation(node.right)
    if isinstance(node, ast.Subscript):
        node = node.value
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in SET_TYPES


def set_fields(trees: list[ast.Module]) -> frozenset[str]:
    """Names of class fields that every class declaring them declares as sets."""
    seen: dict[str, set[bool]] = {}
    for tree in trees:
        for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            for field in owner.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    seen.setdefault(field.target.id, set()).add(is_set_annotation(field.annotation))
    return frozenset(name for name, kinds in seen.items() if kinds == {True})


class Purity(ast.NodeVisitor):
    """Collects `(line, complaint)` for one module."""

    def __init__(self, fields: frozenset[str]) -> None:
        self.found: list[tuple[int, str]] = []
        self._fields = fields
        self._names: list[set[str]] = [set()]
        self._free: set[int] = set()

    def _say(self, node: ast.expr | ast.stmt, complaint: str) -> None:
        self.found.append((node.lineno, complaint))

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                found = True
            case ast.Name(id=name):
                found = any(name in names for names in self._names)
            case ast.Attribute(attr=name):
                found = name in self._fields
            case ast.BinOp(op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
                found = self._is_set(node.left) or self._is_set(node.right)
            case ast.IfExp():
                found = self._is_set(node.body) or self._is_set(node.orelse)
            case ast.Call(func=ast.Name(id=name)):
                found = name in {"set", "frozenset"}
            case ast.Call(func=ast.Attribute(attr=name, value=value)):
                found = name in SET_METHODS and self._is_set(value)
            case _:
                found = False
        return found

    def _iterated(self, node: ast.expr) -> None:
        if self._is_set(node):
            self._say(node, "iterates over a set without sorted()")

    def visit_Import(self, node: ast.Import) -> None:
        """Which modules a core may name."""
        for alias in node.names:
            self._module(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Which modules a core may name, and what it may take from them."""
        self._module(node, node.module or "")
        for alias in node.names:
            if alias.name in BANNED_CALLS:
                self._say(node, f"imports {alias.name}: a clock or chance")

    def _module(self, node: ast.stmt, name: str) -> None:
        top, *rest = name.split(".")
        if top in BANNED_MODULES:
            self._say(node, f"imports {name}: the world")
        elif top not in sys.stdlib_module_names and top not in ALLOWED_PACKAGES and rest[:1] != ["core"]:
            self._say(node, f"imports {name}: not a core, not pydantic, orjson or jsonschema_rs")

    def visit_Call(self, node: ast.Call) -> None:
        """Clocks, chance, and calls that put a set in some order."""
        match node.func:
            case ast.Attribute(attr=name) if name in BANNED_CALLS:
                self._say(node, f"calls .{name}(): a clock or chance")
            case ast.Attribute(attr="join"):
                for argument in node.args:
                    self._iterated(argument)
            case ast.Name(id=name) if name in ORDER_FREE:
                self._free.update(id(argument) for argument in node.args)
            case ast.Name(id=name) if name in ORDERING:
                for argument in node.args:
                    self._iterated(argument)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        """A loop."""
        self._iterated(node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        """`[*some_set]`."""
        self._iterated(node.value)
        self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        if id(node) not in self._free:
            for generator in node.generators:
                self._iterated(generator.iter)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        """`[…]` keeps the order it was given."""
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """`(…)` too, unless its taker does not care."""
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        """`{k: v …}` too."""
        self._comprehension(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """A name bound to a set is a set from here on."""
        if self._is_set(node.value):
            self._names[-1].update(target.id for target in node.targets if isinstance(target, ast.Name))
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """A name annotated as a set; a class's fields are known already."""
        if isinstance(node.target, ast.Name) and is_set_annotation(node.annotation):
            self._names[-1].add(node.target.id)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Names of a class's body are not seen from its methods."""
        self._names.append(set())
        self.generic_visit(node)
        self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Parameters annotated as sets are sets inside."""
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        self._names.append({one.arg for one in arguments if is_set_annotation(one.annotation)})
        self.generic_visit(node)
        self._names.pop()


def complaints(paths: list[Path]) -> Iterator[str]:
    """Every breach of the rule in these modules, as `path:line: complaint`."""
    trees = {path: ast.parse(path.read_text()) for path in paths}
    fields = set_fields(list(trees.values()))
    for path, tree in trees.items():
        visitor = Purity(fields)
        visitor.visit(tree)
        yield from (f"{path}:{line}: {complaint}" for line, complaint in sorted(visitor.found))
