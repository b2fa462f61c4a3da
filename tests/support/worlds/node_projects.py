"""Projects in JavaScript: in one, tests come out in every way there is; in the other, files are broken in every way.

Written with the words of vitest; `as_jest` turns them into CommonJS with the words of jest.
"""

from __future__ import annotations

import re

CALC = """
export function add(a, b) { return a + b }
export function boom() { throw new Error('boom') }
export function refer() { return nowhere }
export class Calc { constructor() { this.n = 1 } }
"""

TESTS = r"""
import { add, boom, refer, sub, Calc } from '../calc'
import * as calc from '../calc'
describe('grp', () => {
  test('passes', () => { console.log('noise'); expect(add(1, 2)).toBe(3) })
  test('fails', () => { console.log('three'); console.error('not ' + 'four'.repeat(400)); expect(add(1, 2)).toBe(4) })
  test('throws', () => { boom() })
  test('code refers', () => { refer() })
  test('test refers', () => { nothing })
  test('lacks a name', () => { expect(sub(1, 2)).toBe(4) })
  test('lacks a member', () => { expect(calc.mul(1, 2)).toBe(4) })
  test('lacks a method', () => { expect(new Calc().nope()).toBe(4) })
  test('rejects', async () => { await Promise.reject(new Error('async')) })
  test.skip('skipped', () => {})
  test.todo('to do')
  test.fails('xfails', () => { expect(1).toBe(2) })
  test.fails('xpasses', () => { expect(1).toBe(1) })
  test('waits', async () => { await new Promise(() => {}) })
  test.each([[1, 2], [3, 4]])('each %i %i', (a, b) => { expect(add(a, b)).toBe(3) })
  test('(a|b) [c] "q" $x \\ 100% > * ?', () => {})
  test('twice', () => {})
  test('twice', () => { expect(1).toBe(2) })
  test('imports late', async () => { await import('./not-there') })
})
describe('set up', () => {
  beforeAll(() => { throw new Error('hook') })
  test('never runs', () => {})
  test.skip('is skipped anyway', () => {})
})
describe('set up each', () => {
  beforeEach(() => { throw new Error('hook') })
  test('one', () => {})
})
describe('set up by the code', () => {
  beforeEach(() => { boom() })
  test('two', () => {})
})
describe('clean up each', () => {
  afterEach(() => { throw new Error('hook') })
  test('three', () => {})
})
describe('clean up', () => {
  afterAll(() => { throw new Error('at the end') })
  test('first', () => {})
  test('last', () => {})
})
"""

CODE, TEST = "code", "test"

OUTCOMES = {
    "grp > passes": ("passed", "", ""),
    "grp > fails": ("failed", CODE, ""),
    "grp > throws": ("failed", CODE, ""),
    "grp > code refers": ("failed", CODE, ""),
    "grp > test refers": ("failed", TEST, ""),
    "grp > lacks a name": ("failed", "absent", "../calc"),
    "grp > lacks a member": ("failed", "absent", "../calc"),
    "grp > lacks a method": ("failed", CODE, ""),
    "grp > rejects": ("failed", CODE, ""),
    "grp > skipped": ("skipped", "", ""),
    "grp > to do": ("skipped", "", ""),
    "grp > xfails": ("xfailed", "", ""),
    "grp > xpasses": ("failed", CODE, ""),
    "grp > waits": ("timeout", CODE, ""),
    "grp > each %i %i": ("failed", CODE, ""),
    "grp > each 1 2": ("passed", "", ""),
    'grp > (a|b) [c] "q" $x \\ 100% > * ?': ("passed", "", ""),
    "grp > twice": ("failed", CODE, ""),
    "grp > imports late": ("failed", "absent", "./not-there"),
    "set up > never runs": ("error", TEST, ""),
    "set up > is skipped anyway": ("skipped", "", ""),
    "set up each > one": ("error", TEST, ""),
    "set up by the code > two": ("error", CODE, ""),
    "clean up each > three": ("error", TEST, ""),
    "clean up > first": ("passed", "", ""),
    "clean up > last": ("error", TEST, ""),
    "grp > pass": ("missing", "", ""),
}
"""How each test comes out, whose doing that is, and what is absent; of the last one there is no test."""

_ONE = "\ntest('one', () => { expect(1).toBe(1) })\n"

LIBRARY = {
    "lib/good.js": "export const x = 1\n",
    "lib/bad.js": "export const x = {\n",
    "lib/uses_bad.js": "import { x } from './bad'\nexport { x }\n",
    "lib/package.js": "import { y } from 'other-package'\nexport const x = y\n",
    "lib/partial.js": "import { y } from './gone'\nexport const x = y\n",
    "lib/throws.js": "export const x = (() => { throw new Error('at import') })()\n",
}

BROKEN = {
    "absent.test.js": ("import { x } from './calc'" + _ONE, ("import_error", "absent", "./calc")),
    "deep/absent.test.js": ("import { x } from '../lib/calc.js'" + _ONE, ("import_error", "absent", "../lib/calc.js")),
    "alias.test.js": ("import { x } from '@/calc'" + _ONE, ("import_error", "absent", "@/calc")),
    "partial.test.js": ("import { x } from './lib/partial'" + _ONE, ("import_error", "absent", "./lib/gone")),
    "name.test.js": (
        "import { Nope } from './lib/good'\nconst thing = new Nope()" + _ONE, ("import_error", "absent", "./lib/good")
    ),
    "package.test.js": ("import { x } from '@no/such-package'" + _ONE, ("import_error", TEST, "")),
    "package_of_code.test.js": ("import { x } from './lib/package'" + _ONE, ("import_error", CODE, "")),
    "syntax.test.js": (_ONE + "test('two', () => {", ("import_error", TEST, "")),
    "syntax_of_code.test.js": ("import { x } from './lib/uses_bad'" + _ONE, ("import_error", CODE, "")),
    "throws.test.js": ("throw new Error('x')" + _ONE, ("import_error", TEST, "")),
    "throws_in_code.test.js": ("import { x } from './lib/throws'" + _ONE, ("import_error", CODE, "")),
    "refers.test.js": ("nowhere()" + _ONE, ("import_error", TEST, "")),
    "empty.test.js": ("const nothing = 0\n", ("import_error", TEST, "")),
}  # fmt: skip
"""Path -> a file that cannot be loaded, and what becomes of its one test."""


def as_jest(source: str) -> str:
    """*source* in CommonJS, with the words of jest."""
    for pattern, said in (
        (r"import \* as (\w+) from ('[^']*')", r"const \1 = require(\2)"),
        (r"import (\{[^}]*\}) from ('[^']*')", r"const \1 = require(\2)"),
        (r"await import\(", "require("),
        (r"export const (\w+) =", r"exports.\1 ="),
        (r"export function (\w+)", r"exports.\1 = function"),
        (r"export class (\w+)", r"exports.\1 = class"),
        (r"export \{", "module.exports = {"),
        (r"test\.fails\b", "test.failing"),
    ):
        source = re.sub(pattern, said, source)
    return source
