const shapes = {
  function: "M5 4h3c-2 0-2 2-2 4s0 4-2 4M3.5 8H8M10 7l3 5M13 7l-3 5",
  plus: "M8 3v10M3 8h10",
  search: "M7 12a5 5 0 1 1 0-10 5 5 0 0 1 0 10ZM10.7 10.7 14 14",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.500v1.500M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.500 9.500A6 6 0 1 1 6.500 2.500a5 5 0 0 0 7 7Z",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  route:
    "M4 12a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM12 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4ZM6 10h3a3 3 0 0 0 3-3V6",
  node: "M2.500 3h11v4h-11zM2.500 9h11v4h-11zM5 5h.01M5 11h.01",
  registry:
    "M2.500 4.500c0-1.100 2.500-2 5.500-2s5.500.900 5.500 2-2.500 2-5.500 2-5.500-.900-5.500-2ZM2.500 4.500v7c0 1.100 2.500 2 5.500 2s5.500-.900 5.500-2v-7M2.500 8c0 1.100 2.500 2 5.500 2s5.500-.900 5.500-2",
  build: "M8 1.500 14 4.800v6.400L8 14.500l-6-3.300V4.800zM2 4.800 8 8l6-3.200M8 8v6.500",
  settings:
    "M2 4.500h7M12 4.500h2M2 11.500h2M7 11.500h7M10.500 6.200a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400ZM5.500 13.200a1.700 1.700 0 1 0 0-3.400 1.700 1.700 0 0 0 0 3.400Z",
  event: "M9 1.500 3 9h4.500L7 14.500 13 7H8.500z",
  call: "M8 14.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13ZM8 4.500V8l2.500 1.500",
  trash: "M3 4.500h10M6.500 4V2.500h3V4M4.500 4.500l.5 9h6l.5-9",
  out: "M6.500 2.500h-4v11h4M6.500 8H14M11 5l3 3-3 3",
  x: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.500 6.500 12 13 4.500",
  alert: "M8 2 15 13.500H1zM8 6.500v3M8 11.500h.01",
  open: "M9 2.500h4.500V7M13.500 2.500 7.500 8.500M11.500 9.500v4h-9v-9h4",
  play: "M5 3.500v9l7-4.500z",
} as const;

export type IconName = keyof typeof shapes;

/** Decoration: the text next to it, or the label of its control, has the meaning. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  );
}
