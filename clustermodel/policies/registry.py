"""Scheduling policies by name.

A policy is a text, as ``"easy"`` or ``"easy:reserve_depth=2,backfill_order=shortest"``, an object that has what
:class:`clustermodel.policies.interface.Policy` lists, or a function of the setup that returns ``decide``.  A name is one of
this package, a registered one, a plug-in's (:mod:`clustermodel.plugins`), or ``"module:Class"`` or ``"module:function"``.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from itertools import chain
from types import FunctionType, MethodType, NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from clustermodel.errors import SpecificationError, did_you_mean, quoted, refused, shown
from clustermodel.plugins import POLICIES, made_by, names_module, of_module, plugins
from clustermodel.plugins import PREDICTORS as PREDICTOR_PLUGINS
from clustermodel.policies.interface import Decide, Policy, PolicyFunction, Run
from clustermodel.policies.queue_order import CRITERIA, SITE_ORDERS

RULES: Final = {
    "order": ("takes_order", True),
    "partitions": ("takes_partitions", False),
    "reservations": ("takes_reservations", False),
    "shapes": ("takes_shapes", False),
}
"""Rules of a site and a machine that policies respect or refuse, each with the attribute in which a policy says so and its
default.  Limits and dependencies hold under any policy."""

PolicyFactory = Callable[..., Policy | Run | Decide]
"""What makes a policy from its parameters, or a function of the setup, and of parameters, that returns a run."""

_SHIPPED: Final = {
    "fcfs": "fcfs:Fcfs",
    "easy": "easy:Easy",
    "conservative": "conservative:Conservative",
    "gs": "gang:GS",
    "bgs": "gang:BGS",
    "mgs": "gang:MGS",
    "mbgs": "gang:MBGS",
    "bf": "conservative:BF",
    "adaptive": "adaptive:Adaptive",
    "slack": "slack:Slack",
    "pv-easy": "pv_easy:PVEasy",
    "ss": "selective_suspension:SelectiveSuspension",
    "server-filling": "preemptive:ServerFilling",
    "srtf": "preemptive:Srtf",
    "srsf": "preemptive:Srsf",
    "las": "preemptive:Las",
    "fifo-preempt": "preemptive:FifoPreempt",
    "max-min": "rounds:MaxMin",
    "finish-time-fair": "rounds:FinishTimeFair",
    "equipartition": "equipartition:Equipartition",
    "shrink-to-admit": "shrink_to_admit:ShrinkToAdmit",
    "expand": "expand:Expand",
    "cheap-hours": "cheap_hours:CheapHours",
    "backfilling": "backfilling.scheduler:Backfilling",
    **{f"{criterion}{suffix}": "backfilling.scheduler:NAMED" for suffix in ("", "-NG") for criterion in CRITERIA},
}
"""Where the policies of this package are: a module, and what makes them there, by itself or by name; imported at first use."""
_FACTORIES: Final[dict[str, PolicyFactory | None]] = dict.fromkeys(_SHIPPED)
"""What makes the policies of this package, ``None`` before the first use, and the registered ones."""
NAMES_OF_PAPERS: Final = {
    "easy-last": "easy:predictor=last",
    "sjf-easy": "easy:backfill_order=shortest",
    "easy-sjf": "easy:backfill_order=shortest",
    "fcfs-easy": "easy",
    "preemptive-sjf": "srtf",
}
"""Policies by names that papers give them."""
_WITH_LEVEL: Final = re.compile(r"([a-z/-]*[a-z])[-:_ ]?([0-9]+)", re.IGNORECASE)
"""A policy with a multiprogramming level, as in Zhang et al. 2003: ``BGS-5``."""
SEPARATORS: Final = ":,="  # characters that a name must not have
_WORDS: Final[dict[type, str]] = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
"""The simple types that parameters can be declared with."""


def register_policy(name: str, factory: PolicyFactory) -> None:
    """Make ``factory`` available under ``name``; its keyword arguments become the policy's parameters.

    A function whose first argument is called ``setup`` is the policy itself: it is called for each run and returns ``decide``.

    Raises:
        SpecificationError: the name is taken or contains ``:``, ``,`` or ``=``.
    """
    if name in _FACTORIES:
        raise SpecificationError(f"policy name: {name!r} is already registered")
    if (plugin := plugins(POLICIES).get(name)) is not None:
        raise SpecificationError(f"policy name: {name!r} is already that of package {plugin.package}")
    if not name or set(name) & set(SEPARATORS):
        raise SpecificationError(f"policy name: {name!r} is not allowed; it must be non-empty, without ':', ',' or '='")
    _FACTORIES[name] = factory


def unregister_policy(name: str) -> None:
    """Take back :func:`register_policy`; a name that is not registered is ignored."""
    _FACTORIES.pop(name, None)


def registered_policies() -> dict[str, PolicyFactory]:
    """Return the policies that :func:`register_policy` added, by name."""
    return {name: factory for name, factory in _FACTORIES.items() if factory is not None and name not in _SHIPPED}


def shipped_policies() -> list[str]:
    """Return the names of this package's policies."""
    return list(_SHIPPED)


def policy_names() -> list[str]:
    """Return the names of this package's policies, of the registered ones, and of plug-ins, which are not imported."""
    of_others = plugins(POLICIES).values()
    return [*_FACTORIES, *(plugin.name for plugin in of_others if not plugin.problem(_FACTORIES, unfit=SEPARATORS))]


def plugin_problems() -> list[str]:
    """Return a line for each policy or predictor of another package whose name cannot be used; imports none of them."""
    from clustermodel.policies.predictors import PREDICTORS  # noqa: PLC0415  numpy, for a list of names

    taken: dict[str, Collection[str]] = {POLICIES: _FACTORIES, PREDICTOR_PLUGINS: PREDICTORS}
    of_others = [(plugin, names) for group, names in taken.items() for plugin in plugins(group).values()]
    return [problem for plugin, names in of_others if (problem := plugin.problem(names, unfit=SEPARATORS))]


def policy_parameters(name: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a registered policy with their defaults."""
    factory = _factory(name)
    parameters = dict(_signature(factory).parameters)
    if _takes_setup(factory):
        del parameters["setup"]
    return parameters


def policy_summary(name: str) -> str:
    """Return the first line of a registered policy's documentation."""
    return (inspect.getdoc(_factory(name)) or "").partition("\n")[0]


def policies_by_rules(names: Iterable[str]) -> dict[tuple[bool, ...], list[str]]:
    """Return policies by which of ``RULES`` they respect, those that respect the most first."""
    policies: dict[tuple[bool, ...], list[str]] = {}
    for name in names:
        factory = _factory(name)
        kind: object = getattr(factory, "func", factory)
        if any(isinstance(getattr(kind, attribute, None), property) for attribute, _ in RULES.values()):
            kind = make_policy(name)  # with its default parameters
        policies.setdefault(tuple(getattr(kind, *rule) for rule in RULES.values()), []).append(name)
    return dict(sorted(policies.items(), key=lambda item: -sum(item[0])))


def policy_factory(policy: str) -> PolicyFactory:
    """Return what makes the policy that ``"name"`` or ``"name:key=value"`` describes."""
    return _factory(_split(policy)[0])


def policy_settings(policy: str) -> dict[str, object]:
    """Return the parameters that ``"name:key=value,key=value"`` gives, with their values; refuse unknown parameters."""
    return _parse_parameters(*_split(policy))


def site_order_of(policy: str | Policy | PolicyFactory) -> str | None:
    """Return the order of the site that a policy asks for, as ``easy:order=fair-share`` does."""
    assignments = _split(policy)[1].split(",") if isinstance(policy, str) else ()
    orders = [order for order in SITE_ORDERS if f"order={order}" in assignments]
    if len(orders) > 1:
        raise SpecificationError(f"policy {shown(policy)}: parameter 'order' is given twice")
    return orders[0] if orders else None


def policy_label(policy: str | Policy | PolicyFactory) -> str:
    """Return the label of ``policy`` in tables and file names: the requested description, or the name of an object."""
    return policy if isinstance(policy, str) else make_policy(policy).name


def require_no_module(policy: str) -> None:
    """Refuse ``"module:Class"``, in files that others may have written: importing it would run code that they have chosen."""
    name, text = _split(policy)
    for given in (name, *(assignment.partition("=")[2] for assignment in text.split(","))):
        if names_module(given):
            raise SpecificationError(
                f"{quoted(given)} is not allowed in a file, which must not run code; name what is shipped or an installed "
                "plug-in, or give module:Class with --policy or in Python"
            )


def is_shipped(policy: Policy) -> bool:
    """Return whether a policy comes from this package."""
    return type(policy).__module__.startswith("clustermodel.") and not isinstance(policy, PolicyFunction)


def may_resize(policy: Policy) -> bool:
    """Return whether a policy may resize gangs: it says so, or does not come from this package."""
    return bool(getattr(policy, "takes_resizes", not is_shipped(policy)))


def make_policy(policy: str | Policy | PolicyFactory) -> Policy:
    """Return ``policy`` itself, or the one that ``"name:key=value"`` or a function of the setup describes.

    Raises:
        SpecificationError: unknown name (the nearest one is suggested), unknown parameter, a value that is not allowed or not
            of the declared type, or a user's class that cannot be made.
    """
    if not isinstance(policy, str):
        if _takes_setup(policy):
            return PolicyFunction(str(getattr(policy, "__name__", "function")), cast("Callable[..., Run | Decide]", policy))
        return _checked(policy, "policy")
    name, text = _split(policy)
    factory, parameters = _factory(name), _parse_parameters(name, text)
    for key, parameter in policy_parameters(name).items():
        named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if named and parameter.default is parameter.empty and key not in parameters:
            raise SpecificationError(f"policy {name}: parameter {key!r} is missing; write {name}:{key}=value")
    if _takes_setup(factory):
        return PolicyFunction(policy, cast("Callable[..., Run | Decide]", factory), tuple(parameters.items()))
    if name in _SHIPPED:
        return cast("Policy", factory(**parameters))  # what its errors say is ours
    what = f"policy {shown(policy)}"
    return _checked(made_by(what, factory, **parameters), what)


def _checked(policy: object, field: str) -> Policy:
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return policy
    must = "it must be a name, an object with name and start, or a function of setup"
    if hasattr(policy, "begin") and not hasattr(policy, "start"):
        must = "begin is called start now, and must return the run: self, if the policy itself has decide"
    elif isinstance(policy, list | tuple | set):
        must = "a scenario has one policy; make a scenario for each"
    elif isinstance(policy, type) and policy is not Policy and hasattr(policy, "start"):
        must = f"it must be an object of the class, as {policy.__name__}()"
    raise refused(field, policy, must)


def _takes_setup(factory: object) -> bool:
    """Return whether a factory is the policy itself, a function of the setup."""
    if not isinstance(factory, FunctionType | MethodType | partial):
        return False
    return next(iter(_signature(factory).parameters), "") == "setup"


def _signature(factory: Any) -> inspect.Signature:
    is_plain = isinstance(factory, type | FunctionType | partial)  # other objects may have no hash
    return _known_signature(factory) if is_plain else inspect.signature(factory)


@lru_cache(maxsize=128)
def _known_signature(factory: Any) -> inspect.Signature:
    return inspect.signature(factory)


def _split(policy: str) -> tuple[str, str]:
    """Return the name of a policy, which may be ``module:Class``, and the text of its parameters."""
    name, _, text = policy.partition(":")
    attribute, _, parameters = text.partition(":")
    if names_module(f"{name}:{attribute}") and name not in _FACTORIES and name not in plugins(POLICIES):
        return f"{name}:{attribute}", parameters
    return name, text


def _factory(name: str) -> PolicyFactory:
    if (factory := _FACTORIES.get(name)) is not None:
        return factory
    if name in _FACTORIES:
        module, _, attribute = _SHIPPED[name].partition(":")
        made = getattr(import_module(f"clustermodel.policies.{module}"), attribute)
        shipped = _FACTORIES[name] = cast("PolicyFactory", made[name] if isinstance(made, dict) else made)
        return shipped
    if ":" in name:
        return _of_module(name)
    if (plugin := plugins(POLICIES).get(name)) is not None:
        return cast("PolicyFactory", plugin.load())
    known = policy_names()
    hint = _with_level(name) or did_you_mean(name, [*known, *NAMES_OF_PAPERS], NAMES_OF_PAPERS)
    if not hint and names_module(dotted := ":".join(name.rsplit(".", 1))):
        hint = f" (did you mean {dotted!r}?)"
    listed = "'clustermodel policies' lists all, and module:Class is one of your own"
    raise SpecificationError(f"policy: {shown(name)!r} is unknown{hint}; {listed}")


def _with_level(typed: str) -> str:
    """Return the suggestion for a policy that is typed with a multiprogramming level, or else an empty text."""
    match = _WITH_LEVEL.fullmatch(typed)
    if match is None or (name := match[1].lower()) not in _SHIPPED or "mpl" not in policy_parameters(name):
        return ""
    return f" (did you mean '{name}:mpl={match[2]}'?)"


def _of_module(name: str) -> PolicyFactory:
    """Return the class or function of a module on the path, or at last in the working directory; only a policy is called."""
    policy: Any = of_module("policy", name, policy_names())
    module, _, attribute = name.partition(":")
    if not (isinstance(policy, type) and callable(getattr(policy, "start", None))) and not _takes_setup(policy):
        renamed = "; begin is called start now" if hasattr(policy, "begin") else ""
        raise SpecificationError(
            f"policy: {shown(name)!r} is not allowed: module {shown(module)} has no policy {shown(attribute)}, a class with "
            f"start or a function of setup{renamed}"
        )
    return policy  # type: ignore[no-any-return]


def _parse_parameters(name: str, text: str) -> dict[str, object]:
    allowed = policy_parameters(name)
    types = _declared_types(_factory(name)) if text and name not in _SHIPPED else {}
    parameters: dict[str, object] = {}
    for assignment in text.split(",") if text else ():
        key, equals, value = assignment.partition("=")
        if not equals or not value:
            hint = _with_level(f"{name}:{assignment}")
            if parameters and assignment and assignment not in allowed:
                hint = f" (did you mean {','.join(text.split(',')[: len(parameters)])}/{assignment}?)"
            form = f"{key}=value" if key in allowed else "key=value,key=value"
            raise SpecificationError(f"policy {name}: {assignment!r} is not allowed{hint}; write {form}")
        if key == "order" and value in SITE_ORDERS:  # which the site keeps: site_order_of
            continue
        if key == "order" and value.partition(":")[0] in SITE_ORDERS:
            must = f"give the parameters of an order of the site with --order {value}, or Site(order=...)"
            raise SpecificationError(f"policy {name}: order: {value!r} is not allowed; {must}")
        if key not in allowed:
            known = ", ".join(allowed) or "it has none"
            hint = (did_you_mean(value, SITE_ORDERS) if key == "order" else "") or did_you_mean(key, allowed)
            raise SpecificationError(f"policy {name}: parameter {key!r} is unknown{hint}; parameters: {known}")
        if key in parameters:
            raise SpecificationError(f"policy {name}: parameter {key!r} is given twice")
        choices, parameters[key] = _choices(types.get(key)), _parse_value(value)
        if choices and not any(_is(parameters[key], choice) for choice in choices):
            parameters[key] = value  # a number is text where only that is declared
            if not any(_is(value, choice) for choice in choices):
                words = dict.fromkeys(_WORDS[choice] if isinstance(choice, type) else repr(choice) for choice in choices)
                must = " or ".join(words)
                raise SpecificationError(f"policy {name}: {key}: {shown(value)!r} is not allowed; it must be {must}")
    return parameters


def _parse_value(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for convert in (int, float):
        with suppress(ValueError):
            return convert(text)
    return text


def _declared_types(factory: Callable[..., object]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(factory, eval_str=True).parameters
    except Exception:  # of a name that is imported for types only, or whatever else the user's annotations do
        parameters = inspect.signature(factory).parameters
    return {name: parameter.annotation for name, parameter in parameters.items()}


def _choices(declared: object) -> list[object]:
    """Return simple types and literal values that a type, or its text, allows; none if it allows anything else, too."""
    if get_origin(declared) is Literal:
        return list(get_args(declared))
    if isinstance(declared, str):
        named = {kind.__name__: kind for kind in _WORDS} | {"None": NoneType}
        parts = [named.get(part.strip(), object) for part in declared.split("|")]
    elif get_origin(declared) in (Union, UnionType):
        parts = list(get_args(declared))
    else:
        return [declared] if isinstance(declared, type) and declared in _WORDS else []
    choices = [_choices(part) for part in parts if part is not NoneType]
    return list(chain(*choices)) if all(choices) else []


def _is(value: object, choice: object) -> bool:
    if choice is float:
        return type(value) in (int, float)
    return type(value) is choice if isinstance(choice, type) else type(value) is type(choice) and value == choice
