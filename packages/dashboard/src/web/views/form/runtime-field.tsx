import { defaultRuntime, deprecationOf, findRuntime, runtimes } from "@spry/function/browser";
import { Field } from "../../ui/basics.tsx";
import { type FormProps, problemAt } from "./form.ts";

export function RuntimeField({ spec, onChange, problems, readOnly }: FormProps) {
  const value = spec.runtime ?? defaultRuntime;
  const found = findRuntime(value);
  const deprecation = found && deprecationOf(found);
  return (
    <Field
      label="Runtime"
      hint={deprecation ?? "which interpreter runs the code"}
      error={problemAt(problems, "spec.runtime")}
    >
      {(ids) => (
        <select
          {...ids}
          value={value}
          disabled={readOnly}
          onChange={({ currentTarget }) => onChange({ ...spec, runtime: currentTarget.value })}
        >
          {!found && <option>{value}</option>}
          {runtimes.map(({ name, deprecated, language, interpreter }) => (
            <option key={name} value={name}>
              {language === "nodejs" ? "Node.js" : "Python"} {interpreter.split("@")[1]}
              {deprecated ? " (deprecated)" : ""}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
