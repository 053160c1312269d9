import { useEffect, useRef } from "preact/hooks";
import { type Sample, samplerOf } from "../../state/samples.ts";
import { info } from "../../state/info.ts";
import { Chart } from "../../ui/chart.tsx";
import { type TabProps } from "./tab-props.ts";
import { TracesPanel } from "./traces-panel.tsx";

type Value = keyof Omit<Sample, "time">;

interface Panel {
  title: string;
  lines: [value: Value, label: string, color: string][];
  unit: string;
  digits: number;
}

const panels: Panel[] = [
  {
    title: "Requests",
    lines: [
      ["requestsPerSecond", "all", "good"],
      ["errorsPerSecond", "5xx", "bad"],
    ],
    unit: "/s",
    digits: 1,
  },
  {
    title: "Response time",
    lines: [
      ["p50", "p50", "good"],
      ["p95", "p95", "busy"],
      ["p99", "p99", "warn"],
    ],
    unit: " ms",
    digits: 0,
  },
  {
    title: "Cold starts",
    lines: [["coldStarts", "requests that waited", "busy"]],
    unit: "",
    digits: 0,
  },
  { title: "CPU", lines: [["cpu", "cores", "busy"]], unit: "", digits: 3 },
  { title: "Memory", lines: [["memory", "all Pods", "busy"]], unit: " MiB", digits: 0 },
  { title: "Pods", lines: [["pods", "running", "good"]], unit: "", digits: 0 },
];

/** Charts of what the gateway and the nodes report about the Function while this tab is open. */
export function MetricsTab({ fn, pods }: TabProps) {
  const { namespace = "", name = "" } = fn.metadata;
  const sampler = samplerOf({ namespace, name });
  const running = useRef(0);
  running.current = pods.filter(({ status }) => status?.phase === "Running").length;
  useEffect(() => sampler.start(() => running.current), [sampler]);
  const samples = sampler.samples.value;
  const times = samples.map(({ time }) => time);
  return (
    <div class="stack">
      <p class="muted">
        Sampled every two seconds while this view is open.{" "}
        {info.value?.hasMetrics
          ? "Requests are those through the gateway, by its own clock."
          : "Requests are counted by a gateway, and this dashboard has none to ask: CPU, memory and Pods are shown."}
        {sampler.usageProblem.value &&
          ` CPU and memory are unknown: ${sampler.usageProblem.value}.`}
      </p>
      <div class="charts">
        {panels.map(({ title, lines, unit, digits }) => (
          <section key={title} class="panel chart" aria-label={title}>
            <div class="head">
              <h2>{title}</h2>
              <span class="row wrap">
                {lines.map(([value, label, color]) => (
                  <span key={value} class={`state key tone-${color}`}>
                    <span class="dot" />
                    {label} {textOf(lastOf(samples, value), unit, digits)}
                  </span>
                ))}
              </span>
            </div>
            <div class="body">
              <Chart
                times={times}
                lines={lines.map(([value, label, color]) => ({
                  label,
                  color,
                  values: samples.map((sample) => sample[value]),
                }))}
              />
            </div>
          </section>
        ))}
      </div>
      <TracesPanel fn={fn} pods={pods} />
    </div>
  );
}

/** The latencies of some moment may be missing, because nothing was requested; older values are not current. */
const lastOf = (samples: Sample[], value: Value): number | null =>
  samples.slice(-3).findLast((sample) => sample[value] !== null)?.[value] ?? null;

const textOf = (value: number | null, unit: string, digits: number): string =>
  value === null ? "–" : `${value.toFixed(digits)}${unit}`;
