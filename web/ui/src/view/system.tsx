import type { ComponentChildren, JSX } from 'preact';
import { useApp, useSnapshot } from '../app';
import type { Capacity, Gpu, Memory, System } from '../api/types';
import { bytes, fps, ms, span } from '../format';
import { memoryWords, platformWords, providerWords, resourceWords } from '../words';
import { Facts } from './facts';
import { Note, Warning } from './icons';

export function SystemPage({ system }: { system: System }): JSX.Element {
  const { clock } = useApp();
  const { at } = useSnapshot();
  const { platform: p, inference: i, governor: g } = system;
  return (
    <div data-testid="system">
      <div class="page-head">
        <h1 tabIndex={-1}>System</h1>
      </div>
      <div class="cards">
        <Card title="Inference" lead={providerWords(i.provider)} testid="provider" notes={i.notes} calm>
          <Facts
            facts={[
              ['Model', i.model],
              ['Precision', i.precision],
              ['Reduced', g.reducing ? `to ${fps(g.allowedFps)} of ${fps(g.askedFps)} pictures a second (${g.cameras} cameras): ${g.reason}` : ''],
              ['Speed', i.fps > 0 ? `${fps(i.fps)} pictures a second` : ''],
              ['One run', i.run ? `${ms(i.run.p50)} p50, ${ms(i.run.p95)} p95` : ''],
              ['Probe at start', i.probeMs > 0 ? `${i.probeMs.toFixed(1)} ms a picture` : ''],
              ['Runs at once', i.threads > 0 ? String(i.threads) : ''],
              ['Batch', i.batch > 0 ? `up to ${i.batch}${i.batchMean > 0 ? `, ${i.batchMean.toFixed(1)} on average` : ''}` : ''],
              ['Input', i.inputWidth > 0 ? `${i.inputWidth} × ${i.inputHeight}` : ''],
              ['Score threshold', i.scoreThreshold > 0 ? i.scoreThreshold.toFixed(2) : ''],
              ['ONNX Runtime', i.libraryVersion],
              ['Library', i.library],
            ]}
          />
        </Card>
        <Card title="Frame memory" lead={system.memory.strategy} testid="strategy" notes={system.memory.notes}>
          <MemoryBody memory={system.memory} />
        </Card>
        <Card
          title="Capacity"
          lead={capacityLead(system.capacity)}
          testid="capacity"
          notes={system.capacity.short.map((r) => `${resourceWords(r)}: over 85 % for more than a minute`)}
        >
          <Facts facts={capacityFacts(system.capacity)} />
        </Card>
        <Card title="Platform" lead={platformWords(p.kind)} testid="platform" notes={p.notes}>
          <Facts
            facts={[
              ['Because', p.why],
              ['Board', p.jetson?.model ?? ''],
              ['JetPack', [p.jetson?.jetpack, p.jetson?.l4t && `Jetson Linux ${p.jetson.l4t}`].filter(Boolean).join(', ')],
              ['Power mode', p.jetson?.powerMode ?? ''],
              ...(p.gpus.length > 0 ? p.gpus.map(gpuFact) : [['GPU', p.gpu] as const]),
              ['Driver', p.driver],
              ['CUDA', p.cuda],
              ['Processor', p.cpu],
              ['Cores', p.cores > 0 ? String(p.cores) : ''],
              ['System', [p.os, p.arch].filter(Boolean).join(', ')],
            ]}
          />
        </Card>
        <Card title="edgecam" lead={system.version || 'unknown version'} testid="version" notes={[]}>
          <Facts
            facts={[
              ['Running for', system.startedAt === null ? '' : span(clock.now(at) - system.startedAt)],
              ['Detecting', system.ready ? 'yes' : `no: ${system.reason}`],
              ['Login', system.login ? 'required' : 'not required (loopback)'],
            ]}
          />
          <p class="hint">
            <a href="/api/v1/openapi.yaml">API description</a> · <a href="/metrics">Metrics</a>
          </p>
        </Card>
      </div>
    </div>
  );
}

function gpuFact(gpu: Gpu): readonly [string, string] {
  const does =
    gpu.state === 'ok'
      ? `${gpu.cameras} ${gpu.cameras === 1 ? 'camera' : 'cameras'}, engine at work ${(100 * gpu.utilisation).toFixed(0)} % of the time`
      : `${gpu.state}: ${gpu.reason}`;
  return [`GPU ${gpu.index}`, `${gpu.name}: ${does}`];
}

function capacityLead(c: Capacity): string {
  if (c.more === null) return '';
  return c.more === 0 ? 'full' : `${c.more} more ${c.more === 1 ? 'camera' : 'cameras'}`;
}

function capacityFacts(c: Capacity): [string, string][] {
  const shares = Object.entries(c.shares).map(([r, share]): [string, string] => [resourceWords(r), `${Math.round(share * 100)} %`]);
  return [...shares, ['First used up', c.limitedBy ? resourceWords(c.limitedBy) : '']];
}

interface CardProps {
  title: string;
  lead: string;
  testid: string;
  notes: readonly string[];
  /** The notes are findings, not warnings. */
  calm?: boolean;
  children: ComponentChildren;
}

function Card(props: CardProps): JSX.Element {
  return (
    <section class="panel card">
      <h2>{props.title}</h2>
      <p class="lead outside" data-testid={props.testid}>
        {props.lead || '–'}
      </p>
      {props.children}
      {props.notes.length > 0 ? (
        <ul class="notes" data-testid="notes">
          {props.notes.map((note) => (
            <li key={note} class="outside">
              {props.calm ? <Note /> : <Warning />}
              <span>{note}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </section>
  );
}

function MemoryBody({ memory: m }: { memory: Memory }): JSX.Element {
  const limit = m.limitBytes > 0 ? `${bytes(m.limitBytes)}${m.limitWhy ? ` (${m.limitWhy})` : ''}` : 'none';
  return (
    <>
      <SlotMeter memory={m} />
      <Facts
        facts={[
          ['Pixels are in', memoryWords(m.strategy)],
          ['Pinned', bytes(m.pinnedBytes)],
          ['Reserved', bytes(m.poolBytes)],
          ['Limit', limit],
          ['Huge pages', m.hugePages ? 'yes' : 'no'],
        ]}
      />
    </>
  );
}

/** Slots of all pools: in use now, the most that ever were, and all. */
function SlotMeter({ memory: m }: { memory: Memory }): JSX.Element | null {
  if (m.slots === 0) return null;
  const at = (n: number): number => (Math.min(n, m.slots) / m.slots) * 100;
  const words = `${m.inUse} of ${m.slots} slots in use, at most ${m.highWater}`;
  return (
    <figure class="meter" role="img" aria-label={words}>
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" focusable="false">
        <rect class="meter-all" width="100" height="6" />
        <rect class="meter-high" width={at(m.highWater)} height="6" />
        <rect class="meter-now" width={at(m.inUse)} height="6" />
      </svg>
      <figcaption aria-hidden="true">
        <span class="num">{m.inUse}</span> in use · <span class="num">{m.highWater}</span> at most ·{' '}
        <span class="num">{m.slots}</span> slots
      </figcaption>
    </figure>
  );
}
