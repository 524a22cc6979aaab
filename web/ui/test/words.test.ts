// The words for what the program says in short names.

import { describe, expect, it } from 'vitest';
import capture from '../../../capture/drops.go?raw';
import decode from '../../../capture/decode/stats.go?raw';
import pipeline from '../../../internal/pipeline/drops.go?raw';
import { dropWords, stateAdvice } from '../src/words';

/** String literals in the form of a drop reason, in a Go source that defines them. */
function reasons(source: string): string[] {
  return [...source.matchAll(/^\s*[Dd]rop\w+\s*[=:]\s*"([a-z_]+)"/gm)].map((m) => m[1]!);
}

describe('drop reasons', () => {
  it.each([
    ['capture/drops.go', capture],
    ['capture/decode/stats.go', decode],
    ['internal/pipeline/drops.go', pipeline],
  ])('%s: each has words', (_, source) => {
    const found = reasons(source);
    expect(found.length).toBeGreaterThan(1);
    for (const reason of found) {
      expect(dropWords(reason), `${reason} needs words in words.ts`).not.toBe(reason.replaceAll('_', ' '));
    }
  });

  it('shows a reason that it does not know as it came', () => {
    expect(dropWords('brand_new')).toBe('brand new');
    expect(dropWords('constructor')).toBe('constructor');
  });
});

describe('advice', () => {
  it('does not contradict a reason that says what to do', () => {
    expect(stateAdvice('backoff', 'The camera has no stream at this path (404): check the path of the URL')).toBe('edgecam keeps trying.');
    expect(stateAdvice('backoff', '192.0.2.1:554 refused the connection')).toContain('power, network and address');
    expect(stateAdvice('auth_failed', 'The login was refused: check it')).toContain('username');
  });
});
