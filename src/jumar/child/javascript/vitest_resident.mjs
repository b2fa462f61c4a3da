// Vitest, kept for many orders: its main process stays, every process that runs tests is used once.
//
// Run by resident_main.py as `node vitest_resident.mjs FD`, with lines of JSON on standard input: first the order that
// it is configured for, then what to do: `run`, `rest` (nothing is left of the run but this process: is that so?) and
// `prepare` (start the next processes). Events go out as they do in vitest_run.mjs.
import { fork } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { Reporter, create, load, said, teller } from './vitest_reporter.mjs'

// The signal would open a debugger, through which code under test could rewrite this process.
process.on('SIGUSR1', () => {})

const tell = teller(Number(process.argv[2]))
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const next = async () => JSON.parse((await lines.next()).value ?? 'null')

// Processes at most that wait for the next order, and how long one may take to end.
const SPARES = 4
const ENDING = 2000

// Processes for tests. One that was started ahead has loaded vitest and no file of the project.
class Workers {
  living = new Set()
  spares = []
  asked = []
  coming = []

  // Vitest's own worker begins with a process that it has already, if it has one.
  adopt(ForksPoolWorker) {
    const workers = this
    const { start } = ForksPoolWorker.prototype
    ForksPoolWorker.prototype.start = async function () {
      const wanted = { entry: this.entrypoint, env: this.env, execArgv: this.execArgv }
      workers.asked.push(wanted)
      this._fork ??= workers.take(wanted)
      await start.call(this)
      workers.watch(this._fork)
    }
  }

  watch(child) {
    if (!child || this.living.has(child)) return
    this.living.add(child)
    child.once('exit', () => this.living.delete(child))
  }

  take(wanted) {
    const key = JSON.stringify(wanted)
    const at = this.spares.findIndex((one) => one.key === key && one.child.connected)
    const child = at < 0 ? undefined : this.spares.splice(at, 1)[0].child
    this.fill()
    return child
  }

  // Start processes like those of the run before: some now, and each other one when one of these is taken.
  prepare() {
    this.coming = this.asked
    this.asked = []
    this.fill()
  }

  fill() {
    while (this.coming.length && this.spares.length < SPARES) {
      const wanted = this.coming.shift()
      const { entry, env, execArgv } = wanted
      const child = fork(entry, [], { env, execArgv, stdio: 'pipe', serialization: 'advanced' })
      this.watch(child)
      this.spares.push({ key: JSON.stringify(wanted), child })
    }
  }

  // Whether all of them are gone.
  async ended() {
    this.coming = []
    for (const { child } of this.spares.splice(0)) child.kill('SIGKILL')
    const gone = [...this.living].map((child) => new Promise((resolve) => child.once('exit', resolve)))
    let timer
    const late = new Promise((resolve) => (timer = setTimeout(resolve, ENDING)))
    await Promise.race([Promise.all(gone), late])
    clearTimeout(timer)
    return this.living.size === 0
  }
}

// Finds the plug-ins that are the project's own: vitest and we pass theirs in code.
const plugins = []
const listing = {
  name: 'jumar:plugins',
  enforce: 'pre',
  config: (config) => void plugins.push(...[config.plugins].flat(9)),
  configResolved: async (config) => {
    const given = new Set((await Promise.all([config.inlineConfig.plugins].flat(9))).flat(9))
    const own = (await Promise.all(plugins.splice(0))).flat(9).filter((one) => one && !given.has(one))
    plugins.push(...own)
  },
}

// Why this process must not be kept for another tree; empty if it may be.
const unfit = (api, vitest) => {
  const { config, projects } = vitest
  const needed = ['clearSpecificationsCache', 'globTestSpecifications', 'runTestSpecifications', 'setGlobalTestNamePattern']
  if (!api.ForksPoolWorker?.prototype?.start || needed.some((name) => typeof vitest[name] !== 'function')) {
    return 'vitest is older than 4'
  }
  if (projects.length !== 1 || projects[0] !== vitest.getRootProject()) return 'the configuration has several projects'
  if (config.pool !== 'forks') return `the pool is ${config.pool}`
  if (config.isolate === false) return 'test files are not isolated'
  if ([config.globalSetup].flat().filter(Boolean).length) return 'the configuration has a globalSetup'
  if (plugins.length) return `the configuration has a plug-in: ${plugins[0].name}`
  if (config.browser?.enabled) return 'tests run in a browser'
  if (config.experimental?.fsModuleCache) return 'transformed modules are kept in files'
  if (['ssr', 'client', 'web'].some((one) => config.deps?.optimizer?.[one]?.enabled)) return 'dependencies are optimised'
  if (!['BaseSequencer', 'RandomSequencer'].includes(config.sequence?.sequencer?.name)) return 'test files are sequenced'
  return ''
}

// Files of the project that were read once, for good.
const held = (vitest) => {
  const { configFile, configFileDependencies } = vitest.vite.config
  return [configFile, ...(configFileDependencies ?? []), ...vitest.config.setupFiles].filter((one) => typeof one === 'string')
}

// Forgets all that a run left in this process: modules by their content, reports, the times of files.
const forget = (vitest) => {
  const { vite, tmpDir } = vitest.getRootProject()
  for (const [name, environment] of Object.entries(vite.environments)) {
    environment.moduleGraph.invalidateAll()
    mkdirSync(join(tmpDir, name), { recursive: true })
  }
  const { filesMap, pathsSet, idMap } = vitest.state
  for (const known of [filesMap, pathsSet, idMap, vitest.cache.results.cache]) known.clear()
  vitest.clearSpecificationsCache()
}

const run = async (vitest, order, reporter) => {
  forget(vitest)
  vitest.setGlobalTestNamePattern(order.pattern)
  const found = await vitest.globTestSpecifications(order.files)
  if (found.length) await vitest.runTestSpecifications(found, true)
  tell({ on: 'done', status: 0 })
}

const serve = async (order) => {
  const workers = new Workers()
  const api = await load(order)
  // Another object for each run, behind one that vitest knows.
  let current = new Reporter(tell)
  const reporter = new Proxy({}, { get: (_, name) => current[name]?.bind?.(current) })
  const vitest = await create(api, order, reporter, [listing])
  const why = unfit(api, vitest)
  if (!why) workers.adopt(api.ForksPoolWorker)
  tell({ on: 'ready', unfit: why, held: why ? [] : held(vitest) })
  for (let step = await next(); step; step = await next()) {
    if (step.on === 'run') {
      current = new Reporter(tell)
      current.ignores = vitest.config.dangerouslyIgnoreUnhandledErrors
      await run(vitest, step, current)
    } else if (step.on === 'rest') {
      tell({ on: 'rested', alone: await workers.ended() })
    } else {
      workers.prepare()
    }
  }
}

try {
  await serve(await next())
} catch (error) {
  tell({ on: 'refused', errors: [said(error)] })
}
process.exit(0)
