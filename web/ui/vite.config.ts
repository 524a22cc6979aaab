import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig, type Plugin } from 'vitest/config';

const root = import.meta.dirname;
const dist = resolve(root, '../dist');

// The Go side embeds web/dist, and a fresh clone must compile before the first
// dashboard build: the committed .keep holds the folder, so an emptying build
// must leave it alone, which Vite's own emptyOutDir does not.
function emptyButKeep(): Plugin {
  return {
    name: 'empty-but-keep',
    apply: 'build',
    buildStart() {
      if (!existsSync(dist)) return;
      for (const name of readdirSync(dist)) {
        if (name !== '.keep') rmSync(join(dist, name), { recursive: true });
      }
    },
  };
}

export default defineConfig({
  root,
  plugins: [emptyButKeep()],
  build: {
    outDir: dist,
    emptyOutDir: false,
    target: 'es2022',
    // The content security policy allows files of this origin only: nothing
    // may be inlined as a data: address, and no helper script is wanted.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rollupOptions: {
      input: resolve(root, 'index.html'),
    },
  },
  server: {
    host: '127.0.0.1',
    proxy: { '/api': process.env['EDGECAM_URL'] ?? 'http://127.0.0.1:8080' },
  },
  test: {
    include: ['test/**/*.test.ts'],
    environment: 'node',
    restoreMocks: true,
  },
});
