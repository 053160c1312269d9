import { type ComponentChildren } from "preact";
import { cameBack } from "../router.ts";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const overscan = 8;
/** Where a list was left: how far it was scrolled, and which row had the focus. */
const left = new Map<string, { top: number; href: string }>();

/** A list of any length: only the rows in view are in the document. All rows have the same height. */
export function VirtualList<T>({
  label,
  items,
  rowHeight,
  head,
  row,
}: {
  label: string;
  items: readonly T[];
  rowHeight: number;
  head?: ComponentChildren;
  row: (
    item: T,
    place: { style: { top: string; height: string }; index: number },
  ) => ComponentChildren;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  const lastHref = useRef("");
  const [focused, setFocused] = useState(-1);
  const [view, setView] = useState({ top: 0, height: 800 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const before = cameBack() ? left.get(label) : undefined;
    if (before) {
      element.scrollTop = before.top;
      // Rows are there after the next rendering.
      setTimeout(() => {
        const row = element.querySelector<HTMLElement>(`a[href="${CSS.escape(before.href)}"]`);
        row?.focus({ preventScroll: true });
      });
    }
    const measure = () => {
      lastTop.current = element.scrollTop;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      const href = lastHref.current;
      left.set(label, { top: lastTop.current, href });
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - overscan);
  const last = Math.ceil((view.top + view.height) / rowHeight) + overscan;
  // The row with the focus stays in the document when it is scrolled away: without it, the focus would be lost.
  const shown = Array.from(
    { length: Math.max(Math.min(last, items.length) - first, 0) },
    (_, at) => first + at,
  );
  if (focused < first && focused >= 0) shown.unshift(focused);
  if (focused >= last && focused < items.length) shown.push(focused);
  const rowAt = (index: number): HTMLElement | undefined =>
    [...(ref.current?.querySelectorAll<HTMLElement>(".vrow") ?? [])].find(
      ({ style }) => style.top === `${index * rowHeight}px`,
    );
  /** The arrow keys move from row to row. */
  const moveFocus = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || !(event.target as Element).closest(".vrow")) return;
    const next = focused + step;
    if (next < 0 || next >= items.length) return;
    event.preventDefault();
    const row = rowAt(next);
    if (row) return row.focus();
    ref.current?.scrollTo({ top: next * rowHeight });
    setFocused(next);
    setTimeout(() => rowAt(next)?.focus());
  };
  return (
    <div
      class="vlist"
      ref={ref}
      role="region"
      aria-label={label}
      tabIndex={-1}
      onKeyDown={moveFocus}
      onFocusCapture={({ target }) => {
        const row = (target as Element).closest<HTMLElement>(".vrow");
        lastHref.current = row?.getAttribute("href") ?? "";
        setFocused(row ? Math.round(Number.parseFloat(row.style.top) / rowHeight) : -1);
      }}
    >
      {head}
      <div class="vspace" style={{ height: `${items.length * rowHeight}px` }}>
        {shown.map((index) => {
          const item = items[index];
          const style = { top: `${index * rowHeight}px`, height: `${rowHeight}px` };
          return item === undefined ? null : row(item, { index, style });
        })}
      </div>
    </div>
  );
}
