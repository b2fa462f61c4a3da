// Vitest, started once for one order; what its main process hears of every test goes out as lines of JSON.
//
// Run by node_tool.py as `node vitest_run.mjs FD`, with the order on standard input. It needs vitest 3 or newer and
// takes it from where the order says. The tests run in processes of vitest's own, which do not inherit FD.
import { readFileSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const order = JSON.parse(readFileSync(0, 'utf8'))
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

const said = (error) => ({
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

class Told {
  ended = new Set()
  tests = new Map()

  onTestModuleQueued(module) {
    tell({ on: 'loading', file: module.moduleId, project: module.project?.name ?? '' })
  }

  onTestModuleCollected(module) {
    const tests = [...module.children.allTests()]
    for (const test of tests) this.tests.set(test.id, test)
    tell({
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
    tell({
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
      tell({ on: 'suite', file: suite.module.moduleId, names: names(suite), errors: errors.map(said) })
    }
  }

  async onTestModuleEnd(module) {
    this.ended.add(module)
    const errors = await Promise.all(module.errors().map((error) => located(module, error)))
    if (errors.length) tell({ on: 'suite', file: module.moduleId, names: [], errors })
    tell({ on: 'loaded', file: module.moduleId, project: module.project?.name ?? '' })
  }

  onUserConsoleLog(log) {
    const stream = log.type === 'stderr' ? 'stderr' : 'stdout'
    process[stream].write(log.content)
    const test = this.tests.get(log.taskId)
    if (test) tell({ on: 'printed', ...where(test), stream, text: log.content.slice(0, PIECE) })
  }

  async onTestRunEnd(modules, unhandled) {
    // Vitest 3 does not tell of the end of a module that could not be loaded.
    for (const module of modules) if (!this.ended.has(module)) await this.onTestModuleEnd(module)
    if (order.ignores === true || !unhandled.length) return
    const errors = unhandled.map((error) => ({
      ...said(error),
      test: String(error.VITEST_TEST_NAME ?? ''),
      path: String(error.VITEST_TEST_PATH ?? ''),
    }))
    tell({ on: 'unhandled', errors })
  }
}

const limit = Math.ceil(order.limit * 1000)
const options = {
  root: order.base,
  config: order.configured ? undefined : false,
  watch: false,
  globals: true,
  reporters: [new Told()],
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

let status = 3
try {
  const { createVitest } = await import(pathToFileURL(createRequire(order.package).resolve('vitest/node')))
  const setup = fileURLToPath(new URL('vitest_setup.mjs', import.meta.url))
  // Arrays of a configuration grow, they are not replaced: the project's own set-up files stay.
  const vitest = await createVitest('test', options, { cacheDir: order.cache, test: { setupFiles: [setup] } })
  order.ignores = vitest.config.dangerouslyIgnoreUnhandledErrors
  try {
    await vitest.start(order.files)
    status = 0
  } catch (error) {
    if (!['VITEST_FILES_NOT_FOUND', 'VITEST_TESTS_NOT_FOUND'].includes(error?.code)) throw error
    status = 0
  }
  await vitest.close()
} catch (error) {
  tell({ on: 'refused', errors: [said(error)] })
}
tell({ on: 'done', status })
process.exit(status)
