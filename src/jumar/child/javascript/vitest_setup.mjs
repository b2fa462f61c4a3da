// Marks the start of each test at once: vitest tells of it 100 ms late, which is never when the test does not return.
import { appendFileSync } from 'node:fs'

const marks = process.env.JUMAR_MARKS
const names = (task) => (task.suite && task.suite !== task.file ? [...names(task.suite), task.name] : [task.name])

if (marks && globalThis.beforeEach) {
  globalThis.beforeEach(({ task }) => {
    appendFileSync(marks, JSON.stringify({ on: 'start', file: task.file.filepath, names: names(task) }) + '\n')
  })
}
