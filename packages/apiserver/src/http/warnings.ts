const maxTotal = 4096;
const maxEach = 256;

/**
 * The warnings that an answer can carry (`k8s.io/apiserver/pkg/endpoints/filters/warning.go`): each
 * once, whole as long as all of them fit into 4096 characters, else cut to 256.
 */
export function boundedWarnings(warnings: readonly string[]): string[] {
  const different = [...new Set(warnings)];
  if (lengthOf(different) <= maxTotal) return different;
  const told: string[] = [];
  for (const warning of different) {
    if (lengthOf(told) >= maxTotal) break;
    told.push(Array.from(warning).slice(0, maxEach).join(""));
  }
  return told;
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0);
}
