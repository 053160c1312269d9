import { presets } from "@spry/function/browser";
import { Field } from "../../ui/basics.tsx";
import { type FormProps, problemAt } from "./form.ts";

const customValue = "custom";
const profiles = Object.entries(presets.function);

/** How large an instance is, and how many there are. */
export function ScaleFields({ spec, onChange, problems, readOnly }: FormProps) {
  const asked = spec.resourceConfiguration?.function;
  const profile = asked?.profile ?? (asked?.resources ? customValue : "");
  const { scaleConfig } = spec;
  const setProfile = (name: string) => {
    const { function: _function, ...others } = spec.resourceConfiguration ?? {};
    const { resourceConfiguration: _resources, ...rest } = spec;
    const next = { ...others, ...(name && { function: { profile: name } }) };
    onChange(Object.keys(next).length > 0 ? { ...spec, resourceConfiguration: next } : rest);
  };
  const setScale = (part: { minReplicas?: number; maxReplicas?: number }) => {
    const minReplicas = part.minReplicas ?? scaleConfig?.minReplicas ?? 1;
    const maxReplicas = Math.max(part.maxReplicas ?? scaleConfig?.maxReplicas ?? 1, minReplicas, 1);
    const { scaleConfig: _scale, ...rest } = spec;
    const isDefault = minReplicas === 1 && maxReplicas === 1;
    onChange(isDefault ? rest : { ...spec, scaleConfig: { minReplicas, maxReplicas } });
  };
  return (
    <fieldset class="stack" disabled={readOnly}>
      <legend>Size and scale</legend>
      <Field
        label="Size of an instance"
        error={problemAt(problems, "spec.resourceConfiguration")}
        hint="CPU and memory, as the limit"
      >
        {(ids) => (
          <select
            {...ids}
            value={profile}
            onChange={({ currentTarget }) => setProfile(currentTarget.value)}
          >
            <option value="">The platform’s default</option>
            {profiles.map(([name, { limits }]) => (
              <option key={name} value={name}>
                {name}: {limits?.["cpu"]} CPU, {limits?.["memory"]}
              </option>
            ))}
            {profile === customValue && <option value={customValue}>Custom (see YAML)</option>}
          </select>
        )}
      </Field>
      <div class="two">
        <Field
          label="Minimum instances"
          hint={
            scaleConfig?.minReplicas === 0
              ? "none without requests; the first request waits for one"
              : "0: none without requests"
          }
          error={problemAt(problems, "spec.scaleConfig")}
        >
          {(ids) => (
            <input
              {...ids}
              type="number"
              min={0}
              max={1000}
              value={scaleConfig?.minReplicas ?? 1}
              onInput={({ currentTarget }) =>
                setScale({ minReplicas: currentTarget.valueAsNumber || 0 })
              }
            />
          )}
        </Field>
        <Field label="Maximum instances" hint="more come with load">
          {(ids) => (
            <input
              {...ids}
              type="number"
              min={1}
              max={1000}
              value={scaleConfig?.maxReplicas ?? 1}
              onInput={({ currentTarget }) =>
                setScale({ maxReplicas: currentTarget.valueAsNumber || 1 })
              }
            />
          )}
        </Field>
      </div>
    </fieldset>
  );
}
