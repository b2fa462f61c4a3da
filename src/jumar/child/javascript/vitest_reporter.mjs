// What vitest's main process hears of every test, told as events; and the options under which tests are judged.
import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

// A function that writes an event as a line of JSON to the descriptor with this number.
export const teller = (descriptor) => (event) => {
  let rest = Buffer.from(JSON.stringify(event) + '\n')
  while (rest.length) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

export const said = (error) => ({
  name: String(error?.name ?? ''),
  message: String(error?.message ?? error),
  stack: String(error?.stack ?? ''),
  frame: typeof error?.frame === 'string' ? error.frame : '',
  diff: typeof error?.diff === 'string' ? error.diff : '',
  file: String(error?.loc?.file ?? error?.id ?? ''),
  assertion: error?.name === 'AssertionError' || (!!error && 'expected' in error && 'actual' in error),
})

const names = (entity) => (entity.type === 'module' ? [] : [...names(entity.parent), entity.name])
const where = (test) => ({ file: test.module.moduleId, project: test.project?.name ?? '', names: names(test) })

// Which file it is that does not parse, and where: an error that came through a worker no longer says.
const unparsed = async (vite, url, seen = new Set()) => {
  if (seen.has(url) || url.includes('/node_modules/')) return undefined
  seen.add(url)
  let done
  try {
    done = await vite.transformRequest(url, { ssr: true })
  } catch (error) {
    return error
  }
  for (const dep of done?.deps ?? []) {
    const found = await unparsed(vite, dep, seen)
    if (found) return found
  }
  return undefined
}

const located = async (module, error) => {
  const vite = module.project?.vite
  if (!vite || error?.loc || !/syntax|pars|transform|expected|unterminated/i.test(error?.message ?? '')) return said(error)
  return said((await unparsed(vite, module.moduleId)) ?? error)
}

// Of one piece of what a test prints: more than is shown in the end, and no more than a line of JSON should hold.
const PIECE = 4000

// Tells of the tests of one run; of a later one another object of this class does.
export class Reporter {
  ended = new Set()
  tests = new Map()
  ignores = false

  constructor(tell) {
    this.tell = tell
  }

  onTestModuleQueued(module) {
    this.tell({ on: 'loading', file: module.moduleId, project: module.project?.name ?? '' })
  }

  onTestModuleCollected(module) {
    const tests = [...module.children.allTests()]
    for (const test of tests) this.tests.set(test.id, test)
    this.tell({
      on: 'collected',
      file: module.moduleId,
      project: module.project?.name ?? '',
      tests: tests.map((test) => [names(test), test.options?.mode ?? 'run']),
    })
  }

  onTestCaseResult(test) {
    const result = test.result()
    // A hook that let something fly is left behind as one that never came to its end.
    const hooks = Object.entries(test.task?.result?.hooks ?? {})
    this.tell({
      on: 'result',
      ...where(test),
      state: result.state,
      ms: Math.round(test.diagnostic()?.duration ?? 0),
      errors: (result.errors ?? []).map(said),
      note: result.note ?? '',
      hook: hooks.find(([, state]) => state !== 'pass')?.[0] ?? '',
      fails: !!test.options?.fails,
    })
  }

  onTestSuiteResult(suite) {
    const errors = suite.errors()
    if (errors.length) {
      this.tell({ on: 'suite', file: suite.module.moduleId, names: names(suite), errors: errors.map(said) })
    }
  }

  async onTestModuleEnd(module) {
    this.ended.add(module)
    const errors = await Promise.all(module.errors().map((error) => located(module, error)))
    if (errors.length) this.tell({ on: 'suite', file: module.moduleId, names: [], errors })
    this.tell({ on: 'loaded', file: module.moduleId, project: module.project?.name ?? '' })
  }

  onUserConsoleLog(log) {
    const stream = log.type === 'stderr' ? 'stderr' : 'stdout'
    process[stream].write(log.content)
    const test = this.tests.get(log.taskId)
    if (test) this.tell({ on: 'printed', ...where(test), stream, text: log.content.slice(0, PIECE) })
  }

  async onTestRunEnd(modules, unhandled) {
    // Vitest 3 does not tell of the end of a module that could not be loaded.
    for (const module of modules) if (!this.ended.has(module)) await this.onTestModuleEnd(module)
    if (this.ignores === true || !unhandled.length) return
    const errors = unhandled.map((error) => ({
      ...said(error),
      test: String(error.VITEST_TEST_NAME ?? ''),
      path: String(error.VITEST_TEST_PATH ?? ''),
    }))
    this.tell({ on: 'unhandled', errors })
  }
}

const optionsOf = (order, reporter) => {
  const limit = Math.ceil(order.limit * 1000)
  return {
    root: order.base,
    config: order.configured ? undefined : false,
    watch: false,
    globals: true,
    reporters: [reporter],
    testNamePattern: order.pattern,
    testTimeout: limit,
    hookTimeout: limit,
    retry: 0,
    bail: 0,
    update: false,
    passWithNoTests: false,
    allowOnly: true,
    silent: false,
    coverage: { enabled: false },
    typecheck: { enabled: false },
    sequence: { shuffle: false },
    outputFile: undefined,
  }
}

// Vitest's Node API, taken from where the order says.
export const load = (order) => import(pathToFileURL(createRequire(order.package).resolve('vitest/node')))

// Vitest, configured for the order. Arrays of a configuration grow: the project's own set-up files stay.
export const create = async (api, order, reporter, plugins = []) => {
  const setup = fileURLToPath(new URL('vitest_setup.mjs', import.meta.url))
  const beside = { cacheDir: order.cache, plugins, test: { setupFiles: [setup] } }
  const vitest = await api.createVitest('test', optionsOf(order, reporter), beside)
  // Those of `test.projects` take nothing over from it.
  for (const { config } of vitest.projects ?? []) {
    if (!config.setupFiles.includes(setup)) config.setupFiles.push(setup)
  }
  return vitest
}
