/** Build settings of the page. Everything is served from the page's own origin; nothing is inlined, so a strict CSP holds. */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const agent = process.env['PA_DEV_TARGET'] ?? 'http://127.0.0.1:8787';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      '/graphql': { target: agent, ws: true },
      '/files': { target: agent },
      '/sign-in': { target: agent },
      '/sign-out': { target: agent },
    },
  },
  test: { environment: 'node', include: ['src/**/*.test.ts', 'src/**/*.test.tsx'] },
});
