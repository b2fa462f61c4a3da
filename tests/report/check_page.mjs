// Opens a page from a file in headless Chromium and prints what it saw, as JSON: check_page.mjs PAGE CHROMIUM [SHOTS]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [page_path, chromium_path, shots] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/`);
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const url = pathToFileURL(page_path).href;

const browser = await chromium.launch({ executablePath: chromium_path, args: ["--no-sandbox", "--disable-gpu"] });
const open = async (options) => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 1500 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  const seen = { errors: [], requests: [] };
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("request", (request) => request.url() !== url && seen.requests.push(request.url()));
  const begun = performance.now();
  await page.goto(url, { waitUntil: "load" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { page, seen, ms: performance.now() - begun };
};

const found = { axe: {} };
{
  const { page, seen, ms } = await open({ bypassCSP: false });
  found.ms = ms;
  found.runs = await page.locator("details").count();
  await page.keyboard.press("Tab");
  found.first_focus = await page.evaluate(() => document.activeElement.textContent);
  if (found.runs) {
    await page.locator("summary").first().focus();
    await page.keyboard.press("Enter");
    found.opened_by_key = await page.locator("details").first().evaluate((run) => run.open);
    await page.fill("#find", "green");
    found.green_shown = await page.locator("details:visible").count();
    found.said = await page.locator("#found").textContent();
    await page.fill("#find", "");
  }
  found.seen = seen;
}
for (const scheme of ["light", "dark"]) {
  const { page, seen } = await open({ colorScheme: scheme });
  await page.evaluate(() => [...document.querySelectorAll("details")].slice(0, 12).forEach((run) => (run.open = true)));
  await page.addScriptTag({ path: axe });
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  found.axe[scheme] = violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.length, html: nodes[0].html }));
  found.seen.requests.push(...seen.requests);
  if (shots) {
    await page.evaluate(() => document.querySelectorAll("details").forEach((run, n) => (run.open = n === 2)));
    if (scheme === "dark" && found.runs) await page.locator("details").nth(2).evaluate((run) => run.parentElement.scrollIntoView({ behavior: "instant" }));
    await page.screenshot({ path: `${shots}/${found.runs ? "report" : "ranking"}-${scheme}.png` });
  }
}
{
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(url, { waitUntil: "load" });
  found.without_script = await page.locator("h1").textContent();
}
await browser.close();
console.log(JSON.stringify(found));
