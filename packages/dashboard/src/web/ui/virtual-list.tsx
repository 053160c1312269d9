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
  return (
    <div
      class="vlist"
      ref={ref}
      role="region"
      aria-label={label}
      tabIndex={-1}
      onKeyDown={moveFocus}
      onFocusCapture={({ target }) => {
        lastHref.current = (target as Element).closest("a")?.getAttribute("href") ?? "";
      }}
    >
      {head}
      <div class="vspace" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, offset) => {
          const index = first + offset;
          return row(item, {
            index,
            style: { top: `${index * rowHeight}px`, height: `${rowHeight}px` },
          });
        })}
      </div>
    </div>
  );
}

/** The arrow keys move from row to row. */
function moveFocus(event: KeyboardEvent): void {
  const by = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" } as const;
  const direction = by[event.key as keyof typeof by] as (typeof by)[keyof typeof by] | undefined;
  const row = (event.target as Element).closest(".vrow");
  const next = direction && row?.[direction];
  if (!(next instanceof HTMLElement)) return;
  event.preventDefault();
  next.focus();
}
