// The dashboard in a browser, in the states that a healthy appliance does not
// show: against dev/mock.mjs, which it starts itself. Needs a built dashboard.
//
//   node e2e/states.mjs [--shots FOLDER]

import { createMock, scenarios } from '../dev/mock.mjs';
import { assert, assertEqual, canvasState, counter, launch, openPage, option, shooter, until } from './browser.mjs';

const shoot = shooter(option('shots'));
const tests = counter();
const browser = await launch();

/** Runs checks against a mock and a page of their own. */
async function given(scenario, options, run) {
  const mock = await createMock({ scenario });
  options.before?.(mock);
  const { page, seen, close } = await openPage(browser, mock.url + (options.at ?? '/'), options.page);
  try {
    await run({ mock, page, seen });
  } catch (err) {
    await tests.check(`${scenario}: runs to its end`, () => {
      throw err;
    });
  } finally {
    await close();
    await mock.close();
  }
}

const tile = (page, id) => page.locator(`[data-testid=tile][data-camera="${id}"]`);
const fresh = (page, id) => async () => (await tile(page, id).getByTestId('picture').getAttribute('data-fresh')) === 'true';
const stale = (page, id) => async () => (await tile(page, id).getByTestId('picture').getAttribute('data-fresh')) === 'false';

await given('states', {}, async ({ mock, page, seen }) => {
  await tests.check('each state has its word, its reason and a picture that is not live', async () => {
    await page.getByTestId('grid').waitFor();
    for (const c of mock.cameras.filter((x) => x.state !== 'live')) {
      await tile(page, c.id).scrollIntoViewIfNeeded();
      assertEqual(await tile(page, c.id).getByTestId('reason').innerText(), c.reason, c.id);
      assertEqual(await tile(page, c.id).getByTestId('picture').getAttribute('data-fresh'), 'false', `${c.id} fresh`);
    }
  });
  await tests.check('a camera that is away says how often it was tried, when it is next, and what was damaged', async () => {
    for (const [id, reason, next] of [['yard', 'No picture', false], ['hall', 'refused the user name', false], ['dock', 'was refused', true]]) {
      await tile(page, id).scrollIntoViewIfNeeded();
      const words = await tile(page, id).innerText();
      assert(words.includes(reason), `${id}: no reason in ${words}`);
      assert(/TRIES\s+7/i.test(words) && /DAMAGED\s+12/i.test(words), `${id}: no counts in ${words}`);
      assertEqual(/Next try in \d+ s/.test(words), next, `${id}: next try`);
    }
    await shoot(page, 'away');
  });
  await tests.check('a hostile name is text', async () => {
    const name = mock.cameras.find((c) => c.id === 'evil').name;
    assertEqual(await tile(page, 'evil').locator('h2').evaluate((h) => h.textContent), name, 'name');
    assertEqual(await page.locator('img').count(), 0, 'img elements');
  });
  await tests.check('a camera that fails is announced and its picture is no longer live', async () => {
    await page.evaluate(() => scrollTo(0, 0));
    await until('a picture', fresh(page, 'gate'));
    Object.assign(mock.cameras[0], { state: 'stalled', reason: 'No picture for 5 s.' });
    await until('the announcement', async () => (await page.getByTestId('news').innerText()) === 'Front gate: Stalled. No picture for 5 s.');
    assert(await stale(page, 'gate')(), 'the old picture looks live');
    assert(/^Last picture \d+ s ago$/.test(await tile(page, 'gate').getByTestId('last-picture').innerText()), 'its age is missing');
    await shoot(page, 'stalled');
  });
  await tests.check('states: no error in the console', () => assertEqual(seen.errors.join('\n'), '', 'console'));
});

await given('two', {}, async ({ mock, page }) => {
  await tests.check('live pictures that cease are no longer shown as live', async () => {
    await until('a picture', fresh(page, 'gate'));
    mock.silent = true;
    await until('stale', stale(page, 'gate'), 5000);
    const ago = tile(page, 'gate').getByTestId('last-picture');
    await until('the age grows', async () => Number(/\d+/.exec(await ago.innerText())?.[0]) >= 4);
    mock.silent = false;
    await until('fresh again', fresh(page, 'gate'), 5000);
  });
  await tests.check('pictures that come late are not shown as live', async () => {
    mock.delayed = 8000;
    const words = tile(page, 'gate').getByTestId('veil');
    await until('the reason', async () => (await words.allInnerTexts()).join().startsWith('Pictures arrive late'), 8000).finally(
      () => (mock.delayed = 0),
    );
    await until('fresh again', fresh(page, 'gate'), 5000);
  });
  await tests.check('boxes of another moment are dashed, and never of a later one', async () => {
    mock.detectEvery = 4;
    const picture = tile(page, 'gate').getByTestId('picture');
    const kinds = new Set();
    await until('carried and exact boxes', async () => {
      const d = await picture.evaluate((p) => ({ ...p.dataset }));
      assert(d.boxSeq === '' || Number(d.boxSeq) <= Number(d.seq), `boxes of ${d.boxSeq} over picture ${d.seq}`);
      if (d.boxKind === 'exact') assertEqual(d.boxSeq, d.seq, 'seq of exact boxes');
      kinds.add(d.boxKind);
      return kinds.has('carried') && kinds.has('exact');
    });
    mock.detectEvery = 1e9;
    await until('no boxes after a second', async () => (await canvasState(picture.getByTestId('boxes'))).drawn === 0, 4000);
    assert(await fresh(page, 'gate')(), 'the picture stopped with the detections');
    mock.detectEvery = 1;
  });
  await tests.check('a server that fails is said, nothing old is shown as known, and it comes back by itself', async () => {
    mock.status = 503;
    await page.getByTestId('offline').waitFor();
    assertEqual(await tile(page, 'gate').getAttribute('data-state'), 'unknown', 'state');
    await shoot(page, 'offline');
    mock.status = 200;
    await page.getByTestId('offline').waitFor({ state: 'detached', timeout: 15_000 });
    await until('fresh again', fresh(page, 'gate'));
  });
  await tests.check('the arrows go through the cameras', async () => {
    await tile(page, 'gate').getByRole('link').focus();
    await page.keyboard.press('ArrowRight');
    assertEqual(await page.evaluate(() => document.activeElement.closest('li').dataset.camera), 'yard', 'focus');
    await page.keyboard.press('Enter');
    await page.locator('[data-testid=large][data-camera=yard]').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.locator('[data-testid=large][data-camera=gate]').waitFor();
    assertEqual(await page.title(), 'Front gate · edgecam', 'title');
    await page.keyboard.press('Escape');
    await page.getByTestId('grid').waitFor();
  });
  await tests.check('the theme is chosen by hand and kept', async () => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    assertEqual(await theme(), 'dark', 'theme of the system');
    await page.getByTestId('theme').click();
    assertEqual(await theme(), 'light', 'theme');
    await page.reload();
    assertEqual(await theme(), 'light', 'theme after a reload');
  });
  await tests.check('an ended session leads to the login and names the way back', async () => {
    await page.evaluate(() => (location.hash = '#/camera/gate'));
    await page.getByTestId('large').waitFor();
    mock.status = 401;
    await page.waitForURL('**/login?next=*');
    assertEqual(new URL(page.url()).searchParams.get('next'), '/#/camera/gate', 'next');
  });
});

await given('many', {}, async ({ mock, page }) => {
  await tests.check('only the cameras in view are asked for', async () => {
    await until('a picture', fresh(page, 'cam-1'));
    const first = mock.asked.at(-1);
    assert(first.includes('cam-1') && first.length < 24, `asked for ${first}`);
    await tile(page, 'cam-64').scrollIntoViewIfNeeded();
    await until('a picture', fresh(page, 'cam-64'));
    const last = mock.asked.at(-1);
    assert(last.includes('cam-64') && !last.includes('cam-1') && last.length < 24, `asked for ${last}`);
    assert(mock.asked.length <= 4, `asked ${mock.asked.length} times while scrolling`);
  });
});

const phone = { viewport: { width: 360, height: 740 } };
await given('many', { page: phone, before: (m) => Object.assign(m.system, { login: true }) }, async ({ mock, page }) => {
  await tests.check('360 px wide, with many cameras and a login: nothing sticks out', async () => {
    mock.cameras.forEach((c) => Object.assign(c, { state: 'live' }));
    await page.getByRole('button', { name: 'Log out' }).waitFor();
    await until('a picture', fresh(page, 'cam-1'));
    await shoot(page, 'login-phone');
    assertEqual(await page.evaluate(() => document.documentElement.scrollWidth), 360, 'width of the page');
  });
});

await given('empty', {}, async ({ mock, page }) => {
  await tests.check('without cameras it says how to add one, and shows it when it comes', async () => {
    await page.getByTestId('empty').waitFor();
    const text = await page.getByTestId('empty').innerText();
    for (const part of ['url: rtsp://', '/etc/edgecam/edgecam.yaml', 'systemctl reload edgecam']) assert(text.includes(part), `no ${part}`);
    mock.cameras = scenarios.two();
    await page.getByTestId('grid').waitFor();
  });
});

await given('two', { before: (m) => Object.assign(m.system, { ready: false, reason: 'the model failed 3 times' }) }, async ({ page }) => {
  await tests.check('an appliance that detects nothing says so', async () => {
    await page.getByTestId('not-ready').waitFor();
    assert((await page.getByTestId('not-ready').innerText()).includes('the model failed 3 times'), 'no reason');
  });
});

await given('two', { before: (m) => Object.assign(m.system, { capacity: { cameras_more: 0, limited_by: 'cpu', shares: { cpu: 0.93, gpu: null }, short: ['cpu'] } }) }, async ({ page }) => {
  await tests.check('a machine that is nearly full says so, and what there is of it', async () => {
    await page.getByTestId('short').waitFor();
    assert((await page.getByTestId('short').innerText()).includes('nearly full: Processor'), 'no resource');
    await page.getByRole('link', { name: 'System' }).click();
    assertEqual(await page.getByTestId('capacity').innerText(), 'full', 'capacity');
  });
});

await given('two', { at: '/models' }, async ({ mock, page }) => {
  const words = (id) => page.getByTestId(id).innerText();
  const says = (id, text) => async () => (await words(id)).includes(text);
  await tests.check('the page of models says what the file is, and why another did not take its place', async () => {
    await until('the report', says('report', 'output0 of yard.onnx'));
    assert((await words('models')).includes('yard.onnx was not taken into use: every score is exactly 0'), 'no refusal');
    await until('a preview', says('preview-words', '3 objects'));
  });
  await tests.check('a slider asks for its threshold, and the overlap goes no further than the model’s own', async () => {
    await page.getByTestId('threshold').fill('0.95');
    await until('the threshold', () => mock.previews.at(-1)?.threshold === '0.95');
    await until('what it leaves', says('preview-words', '0 objects'));
    assertEqual(await page.getByTestId('iou').getAttribute('max'), '0.6', 'most overlap');
    await page.getByRole('button', { name: 'As configured' }).click();
    await until('the configured threshold', () => mock.previews.at(-1)?.threshold === '0.45');
  });
  await tests.check('another file under the same name is looked at anew', async () => {
    Object.assign(mock.models[0], { family: 'yolox', labels: ['forklift'], ms_per_image: 12.5 });
    await until('the new report', says('report', 'yolox'));
    await until('its labels', says('report', 'forklift'));
  });
  await tests.check('an unhealthy model says so in its place and in that of the picture, and its labels are text', async () => {
    await page.getByTestId('model-choice').selectOption('night');
    await until('the reason', says('models', 'unhealthy: the model is unhealthy: value 3 is NaN'));
    await until('no picture', says('preview-words', 'value 3 is NaN'));
    assert((await words('models')).includes('<img src=x'), 'no label');
    assertEqual(await page.locator('main img').count(), 0, 'img elements');
  });
  await tests.check('a refused model says why, and that nothing is known of the file', async () => {
    await page.getByTestId('model-choice').selectOption('plates');
    await until('the reason', says('models', 'refused: is a web page'));
    await until('no report', says('report', 'Nothing is known of it yet'));
    assertEqual(await page.getByTestId('iou').count(), 0, 'sliders for the overlap');
  });
  await tests.check('360 px wide: nothing of the models sticks out', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByTestId('model-choice').selectOption('default');
    await shoot(page, 'models-phone');
    assertEqual(await page.evaluate(() => document.documentElement.scrollWidth), 360, 'width of the page');
  });
});

await given('two', { at: '/camera/nowhere' }, async ({ page }) => {
  await tests.check('an address of a camera that is gone says so', async () => {
    await page.getByTestId('no-camera').waitFor();
    await page.getByRole('link', { name: 'All cameras' }).click();
    await page.getByTestId('grid').waitFor();
  });
});

await browser.close();
process.exitCode = tests.finish();
