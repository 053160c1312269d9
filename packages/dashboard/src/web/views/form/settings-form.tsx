import {
  fieldsInEffect,
  type SettingField,
  usualFields,
  valueAt,
  withValueAt,
} from "../../state/settings-fields.ts";
import { Field } from "../../ui/basics.tsx";
import { TextField } from "../../ui/text-field.tsx";

/** The usual settings. An empty field has the value that is in effect. */
export function SettingsForm({
  spec,
  inEffect,
  readOnly,
  onChange,
}: {
  spec: object;
  inEffect: object;
  readOnly: boolean;
  onChange: (spec: object) => void;
}) {
  return (
    <fieldset class="two" disabled={readOnly}>
      <legend class="sr">Usual settings</legend>
      {usualFields.map((field) => (
        <Setting
          key={field.path}
          field={field}
          value={valueAt(spec, field.path)}
          inEffect={fieldsInEffect(inEffect, field)}
          onChange={(text) => onChange(withValueAt(spec, field.path, text))}
        />
      ))}
    </fieldset>
  );
}

function Setting({
  field: { title, hint, choices },
  value,
  inEffect,
  onChange,
}: {
  field: SettingField;
  value: string;
  inEffect: string;
  onChange: (text: string) => void;
}) {
  if (!choices)
    return (
      <TextField
        label={title}
        hint={hint}
        placeholder={inEffect}
        value={value}
        onChange={(text) => onChange(text.trim())}
      />
    );
  const all = value === "" || choices.includes(value) ? choices : [...choices, value];
  return (
    <Field label={title} hint={hint}>
      {(ids) => (
        <select
          {...ids}
          value={value}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        >
          <option value="">{inEffect ? `default (${inEffect})` : "default"}</option>
          {all.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
