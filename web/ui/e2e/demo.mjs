// The dashboard in a browser, against a running appliance.
//
//   node e2e/demo.mjs [--url http://127.0.0.1:8080] [--shots FOLDER] [--stopped ID]
//                     [--start 'COMMAND LINE'] [--start-timeout SECONDS]
//
// --start runs a command first, waits until it serves the address, and ends it
// with SIGTERM afterwards. --stopped names a camera that must not be live.

import { spawn } from 'node:child_process';
import { assert, assertEqual, canvasState, counter, launch, openPage, option, shooter, until } from './browser.mjs';

const url = option('url', 'http://127.0.0.1:8080').replace(/\/$/, '');
const stopped = option('stopped');
const shoot = shooter(option('shots'));
const tests = counter();

const tile = (page, id) => page.locator(`[data-testid=tile][data-camera="${id}"]`);
const api = async (path) => (await fetch(`${url}/api/v1/${path}`)).json();

async function start(command) {
  const child = spawn('sh', ['-c', `exec ${command}`], { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise((done) => child.once('exit', done));
  let gone = false;
  void ended.then(() => (gone = true));
  await until(
    `${url} answers`,
    async () => {
      if (gone) throw new Error(`the command ended: ${command}`);
      return fetch(`${url}/healthz`).then((r) => r.ok, () => false);
    },
    1000 * Number(option('start-timeout', '60')),
  );
  return async () => {
    child.kill('SIGTERM');
    await ended;
  };
}

async function liveCamera() {
  let id = '';
  await until(
    'a camera is live and analysed',
    async () => {
      const found = (await api('cameras')).find((c) => c.state === 'live' && c.inferred > 0);
      id = found?.id ?? '';
      return id !== '';
    },
    30_000,
  );
  return id;
}

async function checkGrid(browser, id) {
  const { page, seen, close } = await openPage(browser, `${url}/`);
  const picture = tile(page, id).getByTestId('picture');
  const pixels = picture.getByTestId('pixels');

  await tests.check('every camera has a tile with its name and state', async () => {
    const cameras = await api('cameras');
    await until('the tiles', async () => (await page.getByTestId('tile').count()) === cameras.length);
    for (const c of cameras) {
      assertEqual((await tile(page, c.id).locator('h2').innerText()).trim(), c.name, `name of ${c.id}`);
      assert((await tile(page, c.id).getByTestId('state').innerText()).trim() !== '', `no state on ${c.id}`);
    }
  });
  await tests.check('the picture is live and moves', async () => {
    await until('a fresh picture', async () => (await picture.getAttribute('data-fresh')) === 'true');
    const hashes = new Set();
    await until('three different pictures', async () => hashes.add((await canvasState(pixels)).hash).size >= 3);
  });
  await tests.check('boxes are drawn over the picture of the same moment', async () => {
    await until('exact boxes', () =>
      picture.evaluate((p) => p.dataset.boxKind === 'exact' && Number(p.dataset.boxes) > 0 && p.dataset.boxSeq === p.dataset.seq),
    );
    await until('drawn pixels', async () => (await canvasState(picture.getByTestId('boxes'))).drawn > 0);
  });
  await tests.check('boxes can be switched off, and stay off after a reload', async () => {
    await page.getByTestId('switch-boxes').click();
    await until('no pixels', async () => (await canvasState(picture.getByTestId('boxes'))).drawn === 0);
    await page.reload();
    await until('a picture', async () => (await picture.getAttribute('data-fresh')) === 'true');
    assertEqual((await canvasState(picture.getByTestId('boxes'))).drawn, 0, 'drawn pixels');
    await page.getByTestId('switch-boxes').click();
    await until('boxes again', async () => (await canvasState(picture.getByTestId('boxes'))).drawn > 0);
  });
  await tests.check('the tile shows rates and frame age', async () => {
    const words = await tile(page, id).innerText();
    await until('frame age', async () => /Age p95\s+\d+ ms/.test(await tile(page, id).innerText()));
    assert(/Camera\s+\d+\.\d fps/.test(words), `no camera rate in: ${words}`);
    assert(/Analysed\s+\d+\.\d fps/.test(words), `no analysis rate in: ${words}`);
  });
  await shoot(page, 'grid-dark');
  await checkStopped(page);
  await checkKeyboard(page, id);
  await checkSystem(page);
  await tests.check('no error in the console', () => assertEqual(seen.errors.join('\n'), '', 'console'));
  await tests.check('no request leaves the host', () => assertEqual(seen.foreign.join('\n'), '', 'requests'));
  await close();
}

async function checkStopped(page) {
  const other = (await api('cameras')).find((c) => (stopped ? c.id === stopped : c.state !== 'live'));
  if (!other && !stopped) {
    console.log('--    a stopped camera shows its reason: not checked, all cameras are live (see --stopped)');
    return;
  }
  await tests.check('a stopped camera shows its reason', async () => {
    assert(other, `no camera ${stopped}`);
    await tile(page, other.id).scrollIntoViewIfNeeded();
    await until('the reason', async () => {
      const now = (await api('cameras')).find((c) => c.id === other.id);
      if (now.state === 'live' || now.reason === '') return `state ${now.state}, reason ${now.reason}`;
      return (await tile(page, other.id).getByTestId('reason').allInnerTexts()).join() === now.reason;
    }, 30_000);
    assertEqual(await tile(page, other.id).getByTestId('picture').getAttribute('data-fresh'), 'false', 'fresh');
    await shoot(page, 'stopped');
  });
}

async function checkKeyboard(page, id) {
  await tests.check('the keyboard leads to a camera and back', async () => {
    await page.evaluate(() => document.activeElement?.blur?.());
    let at = '';
    for (let i = 0; i < 40 && at !== id; i++) {
      await page.keyboard.press('Tab');
      at = await page.evaluate(() => document.activeElement?.closest('[data-testid=tile]')?.dataset.camera ?? '');
    }
    assertEqual(at, id, 'focus');
    await page.keyboard.press('Enter');
    const large = page.locator(`[data-testid=large][data-camera="${id}"]`);
    await large.waitFor();
    await until('a fresh large picture', async () => (await large.getByTestId('picture').getAttribute('data-fresh')) === 'true');
    await until('detections in the list', async () => (await large.getByTestId('seen').locator('li').count()) > 0);
    await until('ages by stage', async () => (await large.getByTestId('stages').locator('tbody tr').count()) >= 3);
    await shoot(page, 'camera-dark');
    await page.keyboard.press('Escape');
    await page.getByTestId('grid').waitFor();
    await until('the focus back on the tile', () =>
      page.evaluate((want) => document.activeElement?.closest('[data-testid=tile]')?.dataset.camera === want, id),
    );
  });
}

async function checkSystem(page) {
  await tests.check('the system panel shows the provider that runs', async () => {
    const system = await api('system');
    await page.getByRole('link', { name: 'System' }).click();
    const shown = await page.getByTestId('provider').innerText();
    assert(shown.toLowerCase().includes(system.inference.provider.toLowerCase()), `${shown} for ${system.inference.provider}`);
    const all = await page.getByTestId('system').innerText();
    for (const word of [system.inference.model, system.inference.precision, system.memory.strategy, system.version]) {
      assert(all.includes(word), `no ${word} on the page`);
    }
    await shoot(page, 'system-dark');
  });
}

async function checkPhone(browser, id) {
  const { page, seen, close } = await openPage(browser, `${url}/`, { viewport: { width: 360, height: 740 }, colorScheme: 'light' });
  for (const [name, hash] of [['grid', '#/'], ['camera', `#/camera/${id}`], ['system', '#/system']]) {
    await tests.check(`360 px wide, ${name}: nothing sticks out`, async () => {
      await page.evaluate((h) => (location.hash = h), hash);
      await page.getByTestId(name === 'grid' ? 'grid' : name === 'camera' ? 'large' : 'system').waitFor();
      if (name !== 'system') {
        await until('a picture', async () => (await page.getByTestId('picture').first().getAttribute('data-fresh')) === 'true');
      }
      assertEqual(await page.evaluate(() => document.documentElement.scrollWidth), 360, 'width of the page');
      await shoot(page, `${name}-phone-light`);
    });
  }
  await tests.check('no error in the console of the phone', () => assertEqual(seen.errors.join('\n'), '', 'console'));
  await close();
}

const command = option('start');
const stop = command ? await start(command) : async () => {};
const browser = await launch();
try {
  const id = await liveCamera();
  await checkGrid(browser, id);
  await checkPhone(browser, id);
} catch (err) {
  await tests.check('the test runs to its end', () => {
    throw err;
  });
} finally {
  await browser.close();
  await stop();
}
process.exitCode = tests.finish();
