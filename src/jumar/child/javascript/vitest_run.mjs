// Vitest, started once for one order; what its main process hears of every test goes out as lines of JSON.
//
// Run by node_tool.py as `node vitest_run.mjs FD`, with the order on standard input. It needs vitest 3 or newer and
// takes it from where the order says. The tests run in processes of vitest's own, which do not inherit FD.
import { readFileSync } from 'node:fs'

import { Reporter, create, load, said, teller } from './vitest_reporter.mjs'

const order = JSON.parse(readFileSync(0, 'utf8'))
const tell = teller(Number(process.argv[2]))

let status = 3
try {
  const reporter = new Reporter(tell)
  const vitest = await create(await load(order), order, reporter)
  reporter.ignores = vitest.config.dangerouslyIgnoreUnhandledErrors
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
