"""Give mypy the signature of `evolve`: each field of the value by name, of its type, all optional."""

from collections.abc import Callable

from mypy.expandtype import expand_type_by_instance
from mypy.nodes import ARG_NAMED, ARG_NAMED_OPT, ARG_OPT, FuncDef
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import CallableType, FunctionLike, Instance, get_proper_type

BASES = ("orchestrator.core.common.frozen_model.FrozenModel", "budgets.core.pricing.ModelPrice")
FIELDS = (ARG_NAMED, ARG_NAMED_OPT, ARG_OPT)


def evolve_signature(context: MethodSigContext) -> FunctionLike:
    """Return the signature of `evolve` for the receiver's class, from the `__init__` of pydantic's plugin."""
    receiver = get_proper_type(context.type)
    if not isinstance(receiver, Instance) or not any(receiver.type.has_base(base) for base in BASES):
        return context.default_signature
    made = receiver.type.get_method("__init__")
    if not isinstance(made, FuncDef) or not isinstance(made.type, CallableType):
        return context.default_signature
    fields = [
        (name, expand_type_by_instance(kind, receiver))
        for name, kind, how in zip(made.type.arg_names, made.type.arg_types, made.type.arg_kinds, strict=True)
        if name is not None and how in FIELDS
    ]
    return context.default_signature.copy_modified(
        arg_names=[name for name, _ in fields],
        arg_types=[kind for _, kind in fields],
        arg_kinds=[ARG_NAMED_OPT] * len(fields),
    )


class EvolvePlugin(Plugin):
    """Checks calls of `evolve` as mypy checks `dataclasses.replace`."""

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        """Return the hook for methods named `evolve`."""
        return evolve_signature if fullname.endswith(".evolve") else None


def plugin(version: str) -> type[EvolvePlugin]:
    """Return the plugin, as mypy asks for it."""
    return EvolvePlugin
