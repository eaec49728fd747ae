/** Which files are pictures. */

/** What a browser draws without running anything; drawings with scripts (SVG) are files like any other. */
const PICTURE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

export function isPicture(mediaType: string): boolean {
  return PICTURE_TYPES.has(mediaType.split(';')[0]?.trim().toLowerCase() ?? '');
}
