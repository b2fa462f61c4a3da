"""Runs vitest, with jumar's reporter in its main process; the tests run in processes beside it."""

from __future__ import annotations

import re

from jumar.child.javascript import resident_main
from jumar.core.state.settings import Suite
from jumar.ports import Invocation
from jumar.runners._javascript import JavaScriptRunner

PATTERNS = r"(^|/)[^/]*\.(test|spec)\.[cm]?[jt]sx?$"
"""vitest's own names for test files."""

SOURCES = r"(?:.*/)?(?!\.|[^/]*\.config\.)[^/]+\.[cm]?[jt]sx?"
"""Files that a kept vitest reads anew for each run. Configurations are read once, and other files by who knows whom."""


class VitestRunner(JavaScriptRunner):
    """Runner adapter for vitest."""

    name = "vitest"
    patterns = re.compile(PATTERNS)
    sources = re.compile(SOURCES)

    def resident(self, suite: Suite) -> Invocation:
        """Return the invocation of the process that is kept for many verifications."""
        return self._build_invocation(suite, {}, resident_main)


SAMPLES: dict[str, dict[str, str]] = {
    "passing": {"sample.test.js": "test('one', () => {\n  expect(1 + 1).toBe(2)\n})\n"},
    "failing": {"sample.test.js": "test('one', () => {\n  expect(1 + 1).toBe(3)\n})\n"},
    "broken_import": {
        "sample.test.js": "import { no } from 'no-such-package-anywhere'\n\ntest('one', () => {\n  no()\n})\n"
    },
    "broken_fixture": {
        "sample.test.js": "beforeEach(() => {\n  throw new Error('broken')\n})\n\n"
        "test('one', () => {\n  expect(1).toBe(1)\n})\n"
    },
    "several": {
        "sample.test.js": "test('passes', () => {\n  expect(1 + 1).toBe(2)\n})\n\n"
        "test('fails', () => {\n  expect(1 + 1).toBe(3)\n})\n\n"
        "test('never ends', async () => {\n  await new Promise(() => {})\n})\n"
    },
}
"""One tiny project for each way a test can come out; all but the last have exactly one test, `sample.test.js::one`."""

plugin = VitestRunner()
