// What the browser tests share: Chromium, an eye on everything that a page
// does, and a count of checks.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Opens a page of its own context and notes console errors and requests to other hosts. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'dark', ...options });
  const page = await context.newPage();
  const seen = { errors: [], foreign: [] };
  const home = new URL(url).host;
  page.on('console', (m) => {
    if (m.type() === 'error' || m.type() === 'warning') seen.errors.push(m.text());
  });
  page.on('pageerror', (err) => seen.errors.push(err.message));
  page.on('request', (r) => {
    const to = new URL(r.url());
    if (to.protocol.startsWith('http') && to.host !== home) seen.foreign.push(r.url());
  });
  await page.goto(url);
  return { page, seen, close: () => context.close() };
}

/** Counts named checks; a check fails by throwing. */
export function counter() {
  let passed = 0;
  let failed = 0;
  return {
    async check(name, run) {
      try {
        await run();
        passed++;
        console.log(`ok    ${name}`);
      } catch (err) {
        failed++;
        console.log(`FAIL  ${name}\n      ${String(err.message).split('\n').slice(0, 6).join('\n      ')}`);
      }
    },
    finish() {
      console.log(`${passed} passed, ${failed} failed`);
      return failed === 0 && passed > 0 ? 0 : 1;
    },
  };
}

export function assert(ok, message) {
  if (!ok) throw new Error(message);
}

export function assertEqual(got, want, what) {
  assert(Object.is(got, want), `${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

/** Asks until the answer is true, or throws with the last one. */
export async function until(what, ask, timeout = 20_000) {
  const end = Date.now() + timeout;
  let last;
  do {
    last = await ask();
    if (last === true) return;
    await new Promise((done) => setTimeout(done, 100));
  } while (Date.now() < end);
  throw new Error(`${what}: not within ${timeout / 1000} s (last: ${JSON.stringify(last)})`);
}

/** A number that stands for the pixels of a canvas, and how many of them are drawn upon. */
export function canvasState(locator) {
  return locator.evaluate((canvas) => {
    const copy = document.createElement('canvas');
    copy.width = 96;
    copy.height = 72;
    const g = copy.getContext('2d', { willReadFrequently: true });
    g.drawImage(canvas, 0, 0, copy.width, copy.height);
    const { data } = g.getImageData(0, 0, copy.width, copy.height);
    let hash = 0;
    let drawn = 0;
    for (let i = 0; i < data.length; i += 4) {
      hash = (Math.imul(hash, 31) + data[i] + data[i + 1] * 7 + data[i + 2] * 13) | 0;
      if (data[i + 3] > 0) drawn++;
    }
    return { hash, drawn };
  });
}

export function shooter(folder) {
  if (folder) mkdirSync(folder, { recursive: true });
  return async (page, name, options = {}) => {
    if (folder) await page.screenshot({ path: join(folder, `${name}.png`), ...options });
  };
}

/** The value of --name, or otherwise. */
export function option(name, otherwise) {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : process.argv[at + 1];
}
