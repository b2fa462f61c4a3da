"""Runs jest, with jumar's reporter in its main process; the tests run in processes beside it."""

from __future__ import annotations

import re

from jumar.runners._javascript import JavaScriptRunner

PATTERNS = r"(^|/)__tests__/.*\.[cm]?[jt]sx?$|(^|/)([^/]*\.)?(test|spec)\.[cm]?[jt]sx?$"
"""jest's own names for test files."""


class JestRunner(JavaScriptRunner):
    """Runner adapter for jest."""

    name = "jest"
    patterns = re.compile(PATTERNS)


SAMPLES: dict[str, dict[str, str]] = {
    "passing": {"sample.test.js": "test('one', () => {\n  expect(1 + 1).toBe(2)\n})\n"},
    "failing": {"sample.test.js": "test('one', () => {\n  expect(1 + 1).toBe(3)\n})\n"},
    "broken_import": {
        "sample.test.js": "const no = require('no-such-package-anywhere')\n\ntest('one', () => {\n  no()\n})\n"
    },
    "broken_fixture": {
        "sample.test.js": "beforeAll(() => {\n  throw new Error('broken')\n})\n\n"
        "test('one', () => {\n  expect(1).toBe(1)\n})\n"
    },
    "several": {
        "sample.test.js": "test('passes', () => {\n  expect(1 + 1).toBe(2)\n})\n\n"
        "test('fails', () => {\n  expect(1 + 1).toBe(3)\n})\n\n"
        "test('never ends', async () => {\n  await new Promise(() => {})\n})\n"
    },
}
"""One tiny project for each way a test can come out; all but the last have exactly one test, `sample.test.js::one`."""

plugin = JestRunner()
