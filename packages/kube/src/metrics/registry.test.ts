import { expect, test } from "vitest";
import { MetricsRegistry } from "./registry.ts";

test("renders the text exposition format", () => {
  const registry = new MetricsRegistry();
  const gauge = registry.gauge({ name: "depth", help: "Keys." });
  gauge.set({ name: 'a "quoted"\\\nname' }, 2);
  gauge.add({ name: 'a "quoted"\\\nname' }, -0.5);
  registry.counter({ name: "calls_total", help: "Calls." }).increment({});
  const times = registry.histogram({ name: "seconds", help: "Times.", buckets: [0.1, 1] });
  for (const seconds of [0.1, 0.5, 7]) times.observe({ verb: "GET" }, seconds);
  registry.ask("gauge", { name: "now", help: "Asked for." }, () => 42);
  expect(registry.render()).toBe(`# HELP depth Keys.
# TYPE depth gauge
depth{name="a \\"quoted\\"\\\\\\nname"} 1.5
# HELP calls_total Calls.
# TYPE calls_total counter
calls_total 1
# HELP seconds Times.
# TYPE seconds histogram
seconds_bucket{verb="GET",le="0.1"} 1
seconds_bucket{verb="GET",le="1"} 2
seconds_bucket{verb="GET",le="+Inf"} 3
seconds_sum{verb="GET"} 7.6
seconds_count{verb="GET"} 3
# HELP now Asked for.
# TYPE now gauge
now 42
`);
});

test("forgets the series of what is gone", () => {
  const registry = new MetricsRegistry();
  const gauge = registry.gauge({ name: "g", help: "." });
  gauge.set({ name: "a" }, 1);
  gauge.remove({ name: "a" });
  expect(registry.render()).toBe("# HELP g .\n# TYPE g gauge\n");
});

test("keeps a bounded number of series; the rest is counted together", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter({ name: "c_total", help: ".", maxSeries: 2 });
  for (const name of ["a", "b", "c", "d", "a"]) counter.increment({ name });
  expect(registry.render().split("\n").slice(2, -1)).toEqual([
    'c_total{name="a"} 2',
    'c_total{name="b"} 1',
    'c_total{name="other"} 2',
  ]);
});

test("defines a name once", () => {
  const registry = new MetricsRegistry();
  registry.gauge({ name: "g", help: "." });
  expect(() => registry.counter({ name: "g", help: "." })).toThrow("metric g is defined already");
});
