// What each model is, with the evidence, and what it finds at other thresholds.

import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { decodeModels, decodeReport, previewPath, type Model, type ModelReport } from '../api/models';
import type { Camera } from '../api/types';
import { providerWords } from '../words';
import { Facts } from './facts';
import { Note, Warning } from './icons';

const askMs = 5000;
const previewMs = 500;

export function ModelsPage({ cameras }: { cameras: readonly Camera[] }): JSX.Element {
  const [models, setModels] = useState<Model[] | null>(null);
  const [chosen, setChosen] = useState('default');
  useEffect(() => every(askMs, async (signal) => setModels(decodeModels(await json('/api/v1/models', signal)))), []);
  const model = models?.find((m) => m.id === chosen) ?? models?.[0];
  return (
    <div data-testid="models">
      <div class="page-head">
        <h1 tabIndex={-1}>Models</h1>
        {models && models.length > 1 ? (
          <label class="choice">
            <span>Model</span>
            <select value={model?.id} onChange={(e) => setChosen(e.currentTarget.value)} data-testid="model-choice">
              {models.map((m) => (
                <option key={m.id} value={m.id}>
                  {m.id}
                </option>
              ))}
            </select>
          </label>
        ) : null}
      </div>
      {model ? (
        <div class="model" key={model.id}>
          <Trial model={model} cameras={cameras} />
          <div class="side">
            <Summary model={model} />
            <Report model={model} />
          </div>
        </div>
      ) : (
        <p class="hint">{models ? 'No model is configured.' : 'Asking for the models …'}</p>
      )}
    </div>
  );
}

function Summary({ model: m }: { model: Model }): JSX.Element {
  return (
    <section class="panel">
      <h2>In use</h2>
      {m.reason ? <Say bad={m.state !== 'loading'} text={`${m.state}: ${m.reason}`} /> : null}
      {m.rejected ? <Say bad text={`${m.rejected.file} was not taken into use: ${m.rejected.reason}`} /> : null}
      <Facts
        facts={[
          ['State', m.state],
          ['File', m.file],
          ['Family', m.family],
          ['Runs on', m.provider ? `${providerWords(m.provider)}, ${m.precision}` : ''],
          ['One picture', m.msPerImage > 0 ? `${m.msPerImage.toFixed(1)} ms` : ''],
          ['Score threshold', m.scoreThreshold.toFixed(2)],
          ['Overlap (NMS)', m.nmsIou > 0 ? m.nmsIou.toFixed(2) : 'the model suppresses by itself'],
          ['Cameras', m.cameras.join(', ') || 'none'],
          ['Labels', m.labels.length > 0 ? `${m.labels.length}: ${m.labels.join(', ')}` : ''],
        ]}
      />
    </section>
  );
}

function Say(props: { bad: boolean; text: string }): JSX.Element {
  return (
    <p class={`say ${props.bad ? 'bad' : ''}`}>
      {props.bad ? <Warning /> : <Note />} <span class="outside">{props.text}</span>
    </p>
  );
}

const certainties: Record<string, string> = {
  config: 'you say so',
  stated: 'the file says so',
  shape: 'the graph shows it',
  convention: 'by convention',
};

function Report({ model }: { model: Model }): JSX.Element {
  const [report, setReport] = useState<ModelReport | null>(null);
  useEffect(() => {
    const run = new AbortController();
    json(`/api/v1/models/${model.id}`, run.signal).then(
      (v) => setReport(decodeReport(v)),
      () => setReport(null),
    );
    return () => run.abort();
    // Another file may have come under the same name: then it was measured anew.
  }, [model.id, model.file, model.state, model.msPerImage, model.labels.join('\n')]);
  return (
    <section class="panel" data-testid="report">
      <h2>What the file is</h2>
      {report === null ? (
        <p class="hint">Nothing is known of it yet.</p>
      ) : (
        <>
          <ul class="findings">
            {report.findings.map((f) => (
              <li key={f.about}>
                <p class="outside">
                  {f.about}: <strong>{f.value}</strong> <span class="tag">{certainties[f.certainty] ?? f.certainty}</span>
                </p>
                <p class="hint outside">{f.evidence}</p>
              </li>
            ))}
          </ul>
          <Facts facts={report.facts} />
          {report.notes.map((n) => (
            <Say key={n} bad={false} text={n} />
          ))}
        </>
      )}
    </section>
  );
}

function Trial({ model, cameras }: { model: Model; cameras: readonly Camera[] }): JSX.Element {
  const live = cameras.filter((c) => c.state === 'live');
  const [wanted, setWanted] = useState('');
  const camera = live.find((c) => c.id === wanted) ?? live.find((c) => model.cameras.includes(c.id)) ?? live[0];
  const [threshold, setThreshold] = useState(model.scoreThreshold);
  const [iou, setIou] = useState(model.nmsIou);
  const changed = threshold !== model.scoreThreshold || iou !== model.nmsIou;
  return (
    <section class="panel trial" data-testid="trial">
      <h2>
        Try thresholds<small>nothing is saved: the configuration keeps its own</small>
      </h2>
      <Preview path={camera ? previewPath(model.id, camera.id, threshold, model.nmsIou > 0 ? Math.min(iou, model.nmsIou) : null) : null} />
      <div class="sliders">
        <label class="choice">
          <span>Camera</span>
          <select value={camera?.id} disabled={live.length === 0} onChange={(e) => setWanted(e.currentTarget.value)}>
            {live.map((c) => (
              <option key={c.id} value={c.id}>
                {c.name}
              </option>
            ))}
          </select>
        </label>
        <Slider label="Least score" value={threshold} min={0.01} max={1} onChange={setThreshold} testid="threshold" />
        {model.nmsIou > 0 ? (
          <Slider label="Most overlap" value={iou} min={0.05} max={model.nmsIou} onChange={setIou} testid="iou" />
        ) : null}
        <button
          type="button"
          class="button"
          disabled={!changed}
          onClick={() => {
            setThreshold(model.scoreThreshold);
            setIou(model.nmsIou);
          }}
        >
          As configured
        </button>
      </div>
    </section>
  );
}

interface SliderProps {
  label: string;
  value: number;
  min: number;
  max: number;
  onChange: (n: number) => void;
  testid: string;
}

function Slider(p: SliderProps): JSX.Element {
  return (
    <label class="slider">
      <span>
        {p.label} <output class="num">{p.value.toFixed(2)}</output>
      </span>
      <input
        type="range"
        min={p.min}
        max={p.max}
        step={0.01}
        value={p.value}
        data-testid={p.testid}
        onInput={(e) => p.onChange(Number(e.currentTarget.value))}
      />
    </label>
  );
}

// One picture is asked for at a time, and the next at once when a slider moves.
// What it shows is told to a screen reader when it changes, not with every picture.
function Preview({ path }: { path: string | null }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [words, setWords] = useState('');
  useEffect(() => {
    if (path === null) {
      setWords('No camera is live.');
      return;
    }
    return every(previewMs, async (signal) => {
      const answer = await fetch(path, { signal, cache: 'no-store' });
      if (!answer.ok) {
        setWords(await trouble(answer));
        return;
      }
      const picture = await createImageBitmap(await answer.blob());
      const to = canvas.current;
      if (to && !signal.aborted) {
        to.width = picture.width;
        to.height = picture.height;
        to.getContext('2d')?.drawImage(picture, 0, 0);
        const n = Number(answer.headers.get('X-Objects'));
        setWords(n === 1 ? '1 object' : `${n} objects`);
      }
      picture.close();
    });
  }, [path]);
  return (
    <>
      <canvas ref={canvas} class="preview" width={16} height={9} role="img" aria-label="The camera's picture with what the model finds" />
      <p class="preview-words" role="status" data-testid="preview-words">
        {words || 'Waiting for a picture …'}
      </p>
    </>
  );
}

async function trouble(answer: Response): Promise<string> {
  try {
    const body = (await answer.json()) as { error?: { message?: string } };
    return body.error?.message ?? `the server answered ${answer.status}`;
  } catch {
    return `the server answered ${answer.status}`;
  }
}

async function json(path: string, signal: AbortSignal): Promise<unknown> {
  const answer = await fetch(path, { signal, cache: 'no-store', headers: { Accept: 'application/json' } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

/** Does work now and again after each end of it, while somebody looks; the result stops it. */
function every(ms: number, work: (signal: AbortSignal) => Promise<void>): () => void {
  const run = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const turn = async (): Promise<void> => {
    try {
      if (document.visibilityState === 'visible') await work(run.signal);
    } catch {
      // The banner says when the server is away; the next turn tries again.
    }
    if (!run.signal.aborted) timer = setTimeout(() => void turn(), ms);
  };
  void turn();
  return () => {
    clearTimeout(timer);
    run.abort();
  };
}
