import { type FunctionSchedule } from "@spry/function/browser";
import { FieldRows } from "./field-rows.tsx";
import { type FormProps, problemAt } from "./form.ts";

/** When the Function is called by itself. Deadlines and what happens when runs overlap are set in YAML. */
export function ScheduleFields({ spec, onChange, problems, readOnly }: FormProps) {
  const schedules = spec.schedules ?? [];
  const set = (next: FunctionSchedule[]) => {
    const { schedules: _schedules, ...rest } = spec;
    onChange(next.length > 0 ? { ...rest, schedules: next } : rest);
  };
  const setRow = (index: number, part: Partial<FunctionSchedule>) =>
    set(schedules.map((each, at) => (at === index ? { ...each, ...part } : each)));
  return (
    <FieldRows
      title="Schedules"
      what="schedule"
      add="schedule"
      hint="Times at which the Function is called without a client, as cron expressions."
      names={schedules.map(({ name }) => name)}
      rowClass="one pair"
      row={(index) => {
        const { name = "", cron = "", timeZone = "" } = schedules[index] ?? {};
        const field = (label: string, value: string, set: (text: string) => void, hint: string) => (
          <input
            class="mono"
            aria-label={`${label} of schedule ${index + 1}`}
            placeholder={hint}
            value={value}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
        );
        return (
          <>
            {field("Name", name, (text) => setRow(index, { name: text }), "nightly")}
            {field("Cron expression", cron, (text) => setRow(index, { cron: text }), "0 3 * * *")}
            {field(
              "Time zone",
              timeZone,
              (text) => {
                const { timeZone: _zone, ...rest } = schedules[index] ?? { name: "", cron: "" };
                const changed = text === "" ? rest : { ...rest, timeZone: text };
                set(schedules.map((each, at) => (at === index ? changed : each)));
              },
              "UTC",
            )}
          </>
        );
      }}
      onAdd={() => set([...schedules, { name: "", cron: "" }])}
      onRemove={(index) => set(schedules.filter((_, at) => at !== index))}
      error={problemAt(problems, "spec.schedules")}
      readOnly={readOnly}
    />
  );
}
