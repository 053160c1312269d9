import { type ComponentChildren } from "preact";
import { Field } from "./basics.tsx";

/** A field for a line that programs read: a name, a URL, a path. */
export function TextField({
  label,
  hint,
  error,
  placeholder,
  autocomplete,
  value,
  onChange,
}: {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  placeholder?: string;
  autocomplete?: string;
  value: string | undefined;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <input
          {...ids}
          class="mono"
          placeholder={placeholder}
          autocomplete={autocomplete}
          value={value}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </Field>
  );
}
