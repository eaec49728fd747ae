// Fails the build when the page's scripts grow past what a phone on a slow line should have to load.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const LIMIT_BYTES = 250_000;
const folder = fileURLToPath(new URL('../dist/assets/', import.meta.url));
const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
const total = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(folder + name), { level: 9 }).length, 0);
console.log(`scripts: ${total} bytes compressed, limit ${LIMIT_BYTES}`);
if (total > LIMIT_BYTES) process.exit(1);
