// Jest, started once for one order; what its main process hears of every test goes out as lines of JSON.
//
// Run by node_tool.py as `node jest_run.cjs FD`, with the order on standard input; jest loads this file a second time
// as its reporter. The tests run in processes of jest's own, which do not inherit FD.
'use strict'

const { readFileSync, writeSync } = require('node:fs')
const { createRequire } = require('node:module')
const { dirname } = require('node:path')

const tell = (event) => {
  let rest = Buffer.from(JSON.stringify(event) + '\n')
  while (rest.length) {
    try {
      rest = rest.subarray(writeSync(Number(process.argv[2]), rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

const text = (value) => (typeof value === 'string' ? value : '')

const said = (error) => ({
  name: text(error?.name) || text(error?.type),
  message: text(error?.message) || (typeof error === 'object' ? '' : String(error)),
  stack: text(error?.stack),
  diff: '',
  frame: '',
  file: '',
  assertion: !!error?.matcherResult || error?.name === 'AssertionError' || error?.code === 'ERR_ASSERTION',
})

// What was thrown, and how jest shows it; after its way through a worker only the latter is sure to be complete.
const fault = (detail, shown) => {
  const inner = said(detail?.error ?? detail)
  const known = said(detail)
  return { ...inner, assertion: inner.assertion || known.assertion, stack: text(shown) || inner.stack }
}

const names = (result) => [...result.ancestorTitles, result.title]
const project = (test) => test.context?.config?.id ?? ''

// Of one piece of what a file prints: more than is shown in the end, and no more than a line of JSON should hold.
const PIECE = 4000

class Told {
  onTestFileStart(test) {
    tell({ on: 'loading', file: test.path, project: project(test) })
  }

  onTestCaseStart(test, info) {
    tell({ on: 'start', file: test.path, project: project(test), names: names(info) })
  }

  onTestCaseResult(test, result) {
    this.#result(test, result)
  }

  onTestFileResult(test, result) {
    const results = result.testResults ?? []
    const mode = { pending: 'skip', disabled: 'skip', todo: 'todo' }
    tell({
      on: 'collected',
      file: test.path,
      project: project(test),
      tests: results.map((one) => [names(one), mode[one.status] ?? 'run']),
    })
    // The same once more, with those that never started: what was told of a worker that died is told anew.
    if (results.length) tell({ on: 'again', file: test.path, project: project(test) })
    for (const one of results) this.#result(test, one)
    // Jest says which file printed it, and not which test.
    for (const line of result.console ?? []) {
      const stream = ['error', 'warn'].includes(line.type) ? 'stderr' : 'stdout'
      tell({ on: 'printed', file: test.path, project: project(test), names: [], stream, text: `${line.message}\n`.slice(0, PIECE) })
    }
    if (result.testExecError) {
      // How jest shows it names the line; but where tests were run, it shows what they threw as well.
      const error = said(result.testExecError)
      const shown = results.length ? '' : text(result.failureMessage)
      tell({ on: 'suite', file: test.path, names: [], errors: [{ ...error, stack: shown || error.stack }] })
    }
    tell({ on: 'loaded', file: test.path, project: project(test) })
  }

  #result(test, result) {
    const states = { passed: 'passed', failed: 'failed' }
    tell({
      on: 'result',
      file: test.path,
      project: project(test),
      names: names(result),
      state: states[result.status] ?? 'skipped',
      ms: Math.round(result.duration ?? 0),
      errors: (result.failureMessages ?? []).map((shown, n) => fault(result.failureDetails?.[n], shown)),
      note: '',
      hook: '',
      fails: !!result.failing,
    })
  }
}

const main = async () => {
  const order = JSON.parse(readFileSync(0, 'utf8'))
  const { runCLI } = createRequire(order.package)(dirname(order.package))
  const argv = {
    // What is not an exact path is a pattern.
    _: order.exact ? order.files : order.files.map((path) => `^${path.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(/|$)`),
    $0: 'jest',
    runTestsByPath: order.exact,
    config: order.configured ? undefined : JSON.stringify({ rootDir: order.base }),
    reporters: [__filename],
    testNamePattern: order.pattern ?? undefined,
    testTimeout: Math.ceil(order.limit * 1000),
    cacheDirectory: order.cache,
    ci: true,
    watch: false,
    watchAll: false,
    watchman: false,
    coverage: false,
    bail: 0,
    passWithNoTests: true,
    forceExit: true,
    colors: false,
    color: false,
    notify: false,
    onlyChanged: false,
    randomize: false,
    updateSnapshot: false,
    // A limit, though none that is ever met, is what keeps a single file out of this process.
    workerIdleMemoryLimit: '1024GB',
  }
  await runCLI(argv, [order.base])
}

module.exports = Told

if (require.main === module) {
  main().then(
    () => {
      tell({ on: 'done', status: 0 })
      process.exit(0)
    },
    (error) => {
      tell({ on: 'refused', errors: [said(error)] })
      tell({ on: 'done', status: 3 })
      process.exit(3)
    },
  )
}
