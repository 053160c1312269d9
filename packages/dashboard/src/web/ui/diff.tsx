import { diffLines } from "diff";

/** How many unchanged lines are shown around a change. */
const around = 3;

interface Line {
  kind: "" | "plus" | "minus" | "skip";
  text: string;
}

const signs = { "": " ", plus: "+", minus: "−", skip: " " };

/** What changes from one text to the other. */
export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = linesOf(before, after);
  return (
    <div class="diff" role="region" aria-label={label} tabIndex={0}>
      {lines.map(({ kind, text }, index) => (
        <div key={index} class={kind}>
          <span aria-hidden="true">{signs[kind]} </span>
          {kind === "plus" && <span class="sr">added: </span>}
          {kind === "minus" && <span class="sr">removed: </span>}
          {text}
        </div>
      ))}
    </div>
  );
}

function linesOf(before: string, after: string): Line[] {
  const parts = diffLines(before, after, { maxEditLength: 20_000 }) ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ];
  return parts.flatMap(({ value, added, removed }, index): Line[] => {
    const texts = value.replace(/\n$/, "").split("\n");
    if (added || removed) return texts.map((text) => ({ kind: added ? "plus" : "minus", text }));
    const head = index === 0 ? 0 : around;
    const tail = index === parts.length - 1 ? 0 : around;
    const all = texts.map((text): Line => ({ kind: "", text }));
    if (texts.length <= head + tail + 1) return all;
    const skipped = `${texts.length - head - tail} unchanged lines`;
    return [
      ...all.slice(0, head),
      { kind: "skip", text: skipped },
      ...all.slice(texts.length - tail),
    ];
  });
}
