import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { theme } from "./theme.ts";

export interface ChartLine {
  label: string;
  /** A colour of the theme: `good`, `bad`, … */
  color: string;
  values: (number | null)[];
}

/** Few samples do not fill the width. */
const shortestSeconds = 120;

/** By the samples themselves: for a single one, uPlot's own proposal spans years. */
function rangeOf({ data: [times] }: uPlot): [min: number, max: number] {
  const last = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? last, last - shortestSeconds), last];
}

/** `19:28:30` for each tick: uPlot's own labels have a date that overlaps the next one, in the American order. */
const clockTimes = (_: uPlot, ticks: number[]): string[] =>
  ticks.map((seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB"));

/** As many digits as make neighbours different. */
const numbers = (_: uPlot, ticks: number[]): string[] => {
  const step = (ticks[1] ?? 1) - (ticks[0] ?? 0);
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step || 1))));
  return ticks.map((tick) => tick.toFixed(digits));
};

/** Lines over time. The text next to it has the numbers: the drawing itself is hidden from screen readers. */
export function Chart({ times, lines }: { times: number[]; lines: ChartLine[] }) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const data = [times, ...lines.map(({ values }) => values)] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  const dark = theme.value;
  useEffect(() => {
    let isGone = false;
    const element = ref.current;
    const observer = new ResizeObserver(() => {
      if (element && plot.current)
        plot.current.setSize({ width: element.clientWidth, height: element.clientHeight });
    });
    const show = async () => {
      const { default: UPlot } = await import("uplot");
      if (isGone || !element) return;
      const style = getComputedStyle(document.documentElement);
      const color = (name: string) => style.getPropertyValue(`--${name}`).trim();
      const axis: uPlot.Axis = {
        stroke: color("muted"),
        grid: { stroke: color("line"), width: 1 },
        ticks: { show: false },
        font: "11px ui-sans-serif, system-ui, sans-serif",
      };
      const options: uPlot.Options = {
        width: element.clientWidth,
        height: element.clientHeight,
        legend: { show: false },
        cursor: { show: true, drag: { x: false, y: false } },
        scales: {
          x: { range: rangeOf },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] },
        },
        axes: [
          { ...axis, values: clockTimes, space: 70, size: 28 },
          { ...axis, size: 46, values: numbers },
        ],
        series: [
          {},
          ...lines.map(({ label, color: name }) => ({
            label,
            stroke: color(name),
            width: 1.6,
            points: { show: false },
            spanGaps: false,
          })),
        ],
      };
      plot.current = new UPlot(options, latest.current, element);
      observer.observe(element);
    };
    // Without the drawing, the numbers above it remain.
    void show().catch(() => undefined);
    return () => {
      isGone = true;
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [dark]);
  useEffect(() => plot.current?.setData(data), [times.length, times.at(-1)]);
  return <div class="plot" ref={ref} aria-hidden="true" />;
}
