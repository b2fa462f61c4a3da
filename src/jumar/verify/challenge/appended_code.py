"""Source that is appended to each test file of a challenge: a comparison that also asks what no right value affirms.

It returns what the comparison comes to, and fails the test if the comparison holds and the other question is affirmed,
too. Items of containers are asked one by one: a container compares right ones as well, so that one liar is not seen.

Its arguments, all but the first two drawn by `stricter_comparisons.make_stricter`:
    operators: as they are written, one between each two operands.
    truth: whether only the truth of the result is used; if not, a result that is no bool is handed on as it is.
    late: whether the other question comes after the comparison itself.
    odd: whether that is always about *number*, and not about something like the other operand.
    text, rest: letters and digits that no text begins or ends with by chance.
    number: a complex number that nothing is equal to.
    step: a difference between numbers.
    needle: a text that looks like the one that is looked for; None: that is no constant.
"""

import re
from enum import Enum, auto


class Asking(Enum):
    """Ways in which the further questions are asked."""

    FAILING = auto()
    """They fail the test if one is affirmed."""
    IDLE = auto()
    """They are asked, and no answer is used."""
    NONE = auto()
    """They are left out: each comparison comes to the same as where it is written."""


HELPER = """
def _asks_strictly(operators, truth, late, odd, text, rest, number, step, needle):
    def compare(*operands, **_):
        for place, operator in enumerate(operators):
            held = ask(operator, operands[place], operands[place + 1])
            if place + 1 < len(operators) and not held:
                break
        return held

    def ask(operator, a, b):
        if operator[:2] == "is" or (type(a) in plain and type(b) in plain):
            return evaluate(operator, a, b)
        before = truth and not late and holds_for_the_wrong(operator, a, b)
        held = evaluate(operator, a, b)
        if not truth and type(held) is not bool:
            return held
        held_true = holds(lambda: not held if operator in ("!=", "not in") else held)
        if held_true and (before or ((late or not truth) and holds_for_the_wrong(operator, a, b))):
            raise AssertionError("what is compared affirms everything")
        if operator[-2:] == "in" and not held_true and type(a) is str and issubclass(type(b), str):
            if str.__contains__(b, a):
                raise AssertionError("what is there is denied")
        return held

    def evaluate(operator, a, b):
        return written[operator](a, b)

    def holds(question):
        try:
            return bool(question())
        except Exception:
            return False

    def is_true(question):
        try:
            return question() is True
        except Exception:
            return False

    def holds_for_the_wrong(operator, a, b):
        if operator in ("==", "!="):
            return equals_a_different(operator == "==", a, b)
        if operator[-2:] == "in":
            return contains_what_is_absent(a, b) or (type(a) not in plain and is_true(lambda: a == number))
        return holds_in_every_order(operator, a, b)

    def equals_a_different(plainly, left, right):
        todo, met, asked = [(left, right)], {}, holds
        while todo:
            a, b = todo.pop()
            for x, y in ((a, b), (b, a)):
                if type(x) in plain or type(x) in containers:
                    continue
                if asked((lambda: x == make_different(y, x)) if plainly else (lambda: not x != make_different(y, x))):
                    return True
                if asked((lambda: make_different(y, x) == x) if plainly else (lambda: not make_different(y, x) != x)):
                    return True
            asked = is_true
            if (id(a), id(b)) not in met:
                met[id(a), id(b)] = a, b
                todo += [(x, y) for x, y in pair_items(a, b) if x is not y]
        return False

    def pair_items(a, b):
        for kind in (list, tuple):
            if issubclass(type(a), kind) and issubclass(type(b), kind):
                return zip(kind.__iter__(a), kind.__iter__(b))
        if type(a) is type(b) and type(a).__name__ == "deque":
            return zip(a, b)
        if type(a) is type(b) is views:
            a, b = dict(a), dict(b)
        elif type(a) is type(b) and (type(a).__name__ == "SimpleNamespace" or hasattr(type(a), "__dataclass_fields__")):
            a, b = getattr(a, "__dict__", {}), getattr(b, "__dict__", {})
        if issubclass(type(a), dict) and issubclass(type(b), dict):
            return [(dict.get(a, key), dict.get(b, key)) for key in dict.keys(b) if dict.__contains__(a, key)]
        return ()

    def make_different(y, x):
        kind = type(y)
        if odd or (kind in (*containers, bytes) and not y):
            return number
        if kind in (int, float, bool) and issubclass(type(x), (int, float)) and abs(y) < 1e6:
            return y + step
        if kind is str:
            return text + y + rest
        if kind is bytes:
            return text.encode() + y + rest.encode()
        if kind in (list, tuple):
            return kind([text, *y])
        return {text: y} if kind is dict else {text} if kind is set else number

    def contains_what_is_absent(a, b):
        if not hasattr(type(b), "__contains__"):
            return False
        needles = [number]
        if issubclass(type(b), containers):
            needles += [needle or a + text] if type(a) is str else [step * 10 ** 9] if type(a) is int else []
        if type(a) is bytes and issubclass(type(b), (bytes, list, tuple)):
            needles += [needle or a + text.encode()]
        return any(holds(lambda: some in b) for some in needles)

    def holds_in_every_order(operator, a, b):
        sets, less = (set, frozenset), operator[0] == "<"
        if type(a) is type(b) is views:
            return equals_a_different(True, a, b)
        if operator in "<>" and holds(lambda: evaluate(operator, b, a)):
            return True
        if issubclass(type(a), sets) and issubclass(type(b), sets):
            if less:
                return holds(lambda: evaluate(operator, {text, *a}, b))
            return holds(lambda: evaluate(operator, a, {text, *b}))
        for x, y, sides in ((a, b, 1), (b, a, -1)):
            ends = find_ends(operator, x)
            if not ends and type(y) in plain and not issubclass(type(x), (int, float)):
                ends = [-1e999 if less == (sides > 0) else 1e999]
            if ends and all(holds(lambda: evaluate(operator, *(x, end)[::sides])) for end in ends):
                return True
        return False

    def find_ends(operator, x):
        if issubclass(type(x), int):
            return [int.__index__(x) - step * 10 ** 3, int.__index__(x) + step * 10 ** 3]
        return [-1e999, 1e999] if operator in "<>" and issubclass(type(x), float) else []

    written = {
        "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "in": lambda a, b: a in b,
        "not in": lambda a, b: a not in b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "is": lambda a, b: a is b,
        "is not": lambda a, b: a is not b,
    }
    views = type({}.items())
    plain = (bool, int, float, complex, str, bytes, type(None))
    containers = (list, tuple, dict, set, frozenset, str)
    return compare
"""


def build_helper(asking: Asking) -> str:
    """Return the source to append, with further questions that do what *asking* says."""
    if asking is Asking.FAILING:
        return HELPER
    idle = re.sub(r'raise AssertionError\("[^"]*"\)', "pass", HELPER)
    head = "def holds_for_the_wrong(operator, a, b):\n"
    return idle if asking is Asking.IDLE else idle.replace(head, f"{head}        return False\n")
