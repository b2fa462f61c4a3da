"""Rules in the tests' process for classes that the product tells of: none has a method that runs beside the tests."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, NoReturn

from jumar.child.two_process import proxies
from jumar.child.two_process.environment.module_names import KnownNames
from jumar.child.two_process.environment.ties import Ties
from jumar.child.two_process.test_process import import_hook
from jumar.child.two_process.test_process.capabilities import Capabilities
from jumar.child.two_process.wire import library_values


class ClassRules:
    """Rules of a side for classes of the product (ADR 058)."""

    peer: Any
    capabilities: Capabilities
    names: KnownNames
    ties: Ties
    give_up: Callable[[str], NoReturn]
    failing: tuple[type[BaseException], ...]
    fatal: tuple[type[BaseException], ...]

    def refuse_told(self, what: str) -> NoReturn:
        """Refuse *what* only the tests tell of their things: there is a rule for each thing that comes here."""
        raise ValueError(f"{what} of the product")

    def own_class(self, module: Any, qualname: Any) -> Any:
        """Return the library's exception or enumeration that a class of the product's process is, if it is here."""
        known = proxies.find_library_object(str(module), str(qualname))
        own = proxies.is_library_class(known) and known not in self.peer.values.names  # it crosses by a name
        error = own and issubclass(known, BaseException) and not issubclass(known, self.fatal + self.failing)
        return known if own and (error or library_values.has_members(known)) else None

    def build_extras(self, name: str, module: str, members: Any) -> dict[str, Any]:
        """Return what a proxy class has beside what it asks for: a generator is one for `isinstance`."""
        if members is not None:
            self.refuse_told("members of a class")
        return {"__class__": types.GeneratorType} if (name, module) == ("generator", "builtins") else {}

    def note_class(self, kind: Any) -> None:
        """Note that *kind* comes, a class of the product; what a module has under a name is no answer."""
        if type(kind) is proxies.ProxyClass and not self.names.asking:
            self.ties.note_answered(kind)

    def can_unpickle(self, module: str, name: str) -> bool:
        """Return whether a pickle that a test loads may name that: a type of values, or what is the product's."""
        if type(sys.modules.get(module)) is not import_hook.ModuleFacade:
            return (module, name) in library_values.UNPICKLED
        found = None if "." in name else getattr(sys.modules[module], name, None)
        return type(found) is proxies.ProxyClass or isinstance(found, proxies.Proxy) or name == import_hook.UNPICKLER

    def belongs(self, kind: Any, thing: Any, known: bool, op: str = "isinstance") -> bool:  # noqa: FBT001  an answer
        """Return whether *thing* belongs to *kind*, which extends it if it is *known* to. A protocol, say, is asked.

        A test may ask for it, and what handles exceptions may not. Of what is no thing of its own it hears the type.
        """
        if not type.__getattribute__(kind, "_jumar_checks"):
            return known
        raised = (isinstance(one, type) and issubclass(one, BaseException) for one in (kind, thing, type(thing)))
        if any(raised) or not self.capabilities.is_file(sys._getframe(2).f_globals.get("__file__")):  # noqa: SLF001  as above
            return known or self.give_up(f"{kind.__name__} would decide what its instances are")
        self.capabilities.conversation.note(f"{kind.__name__} says itself what belongs to it")
        whole = op == "issubclass" or isinstance(thing, proxies.Proxy)
        return self.peer.ask(*((op, thing) if whole else ("issubclass", type(thing))), kind) is True
