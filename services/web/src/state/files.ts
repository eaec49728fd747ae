/** Which files are pictures, and which are texts. */

/** What a browser draws without running anything; drawings with scripts (SVG) are files like any other. */
const PICTURE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

/** Texts that are shown as they are, whatever their kind; markup is not drawn. */
const TEXT_TYPES = new Set(['application/json', 'application/xml', 'application/x-ndjson', 'application/yaml', 'application/toml', 'application/javascript']);

export function isText(mediaType: string): boolean {
  const type = mediaType.split(';')[0]?.trim().toLowerCase() ?? '';
  return type.startsWith('text/') || TEXT_TYPES.has(type);
}

export function isPicture(mediaType: string): boolean {
  return PICTURE_TYPES.has(mediaType.split(';')[0]?.trim().toLowerCase() ?? '');
}
