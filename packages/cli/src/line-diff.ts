/** The lines that two texts do not share, in the form of `diff -u` without its header; empty if they are equal. */
export function lineDiff(before: string, after: string, context = 2): string[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  const changes = changesOf(a, b);
  const near = (index: number) =>
    changes.slice(Math.max(index - context, 0), index + context + 1).some(([mark]) => mark !== " ");
  const lines: string[] = [];
  let isGap = false;
  for (const [index, [mark, text]] of changes.entries()) {
    if (!near(index)) {
      isGap = lines.length > 0;
      continue;
    }
    if (isGap) lines.push("  ...");
    isGap = false;
    lines.push(`${mark} ${text}`);
  }
  return lines;
}

type Change = [mark: " " | "-" | "+", text: string];

/** By the longest common subsequence of what lies between the same beginning and the same end. */
function changesOf(a: readonly string[], b: readonly string[]): Change[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (
    tail < Math.min(a.length, b.length) - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  )
    tail++;
  const same = (texts: readonly string[]): Change[] => texts.map((text) => [" ", text]);
  return [
    ...same(a.slice(0, head)),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...same(a.slice(a.length - tail)),
  ];
}

const tableLimit = 4_000_000;

function middle(a: readonly string[], b: readonly string[]): Change[] {
  const all: Change[] = [
    ...a.map((text): Change => ["-", text]),
    ...b.map((text): Change => ["+", text]),
  ];
  if (a.length * b.length > tableLimit) return all;
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0);
  const changes: Change[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      changes.push([" ", a[i++] ?? ""]);
      j++;
    } else if ((lengths[(i + 1) * width + j] ?? 0) >= (lengths[i * width + j + 1] ?? 0))
      changes.push(["-", a[i++] ?? ""]);
    else changes.push(["+", b[j++] ?? ""]);
  }
  return [
    ...changes,
    ...a.slice(i).map((text): Change => ["-", text]),
    ...b.slice(j).map((text): Change => ["+", text]),
  ];
}
