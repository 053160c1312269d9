import { type EnvVar, type KubeObject, resources } from "@spry/kube/browser";
import { useRef } from "preact/hooks";
import { withEndsOf, withPlainEnds } from "../../state/line-ends.ts";
import { useLive } from "../../api/live.ts";
import { may } from "../../state/rights.ts";
import { FieldRows } from "./field-rows.tsx";
import { type FormProps, problemAt } from "./form.ts";

/** `other`: from a field of the Pod, for example, which the form shows and keeps. */
type Kind = "value" | "secret" | "configMap" | "other";

const kindOf = ({ valueFrom }: EnvVar): Kind =>
  valueFrom?.secretKeyRef
    ? "secret"
    : valueFrom?.configMapKeyRef
      ? "configMap"
      : valueFrom
        ? "other"
        : "value";

/** Variables: as values, or from keys of Secrets and ConfigMaps. Values of Secrets are not shown. */
export function EnvFields({ namespace, spec, onChange, problems, readOnly }: FormProps) {
  const env = spec.env ?? [];
  const set = (next: EnvVar[]) => {
    const { env: _env, ...rest } = spec;
    onChange(next.length > 0 ? { ...spec, env: next } : rest);
  };
  const replace = (index: number, next: EnvVar) =>
    set(env.map((each, at) => (at === index ? next : each)));
  return (
    <FieldRows
      title="Variables"
      what="variable"
      add="Variable"
      hint="Values that the code reads from its environment; passwords are best kept in a Secret."
      names={env.map(({ name }) => name)}
      row={(index) => {
        const each = env[index];
        return (
          each && (
            <VariableFields
              namespace={namespace}
              variable={each}
              label={`variable ${index + 1}`}
              onChange={(next) => replace(index, next)}
            />
          )
        );
      }}
      onAdd={() => set([...env, { name: "", value: "" }])}
      onRemove={(index) => set(env.filter((_, at) => at !== index))}
      error={
        [problemAt(problems, "spec.env"), duplicatesIn(env)].filter(Boolean).join("\n") || undefined
      }
      readOnly={readOnly}
    />
  );
}

/** Kubernetes takes them, and only the last one counts. */
function duplicatesIn(env: readonly EnvVar[]): string | undefined {
  const names = env.map(({ name }) => name).filter(Boolean);
  const twice = [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
  return twice.length === 0
    ? undefined
    : `${twice.join(", ")}: a variable has this name already, and only the last one counts`;
}

interface VariableProps {
  namespace: string;
  variable: EnvVar;
  label: string;
  onChange: (variable: EnvVar) => void;
}

function VariableFields(props: VariableProps) {
  const { variable, label, onChange } = props;
  const kind = kindOf(variable);
  // A look at another kind loses nothing: each kind keeps what was typed for it.
  const kept = useRef<{ name: string; kinds: Partial<Record<Kind, EnvVar>> }>(undefined);
  // Rows move up when one is removed: what was typed belongs to a name.
  if (kept.current?.name !== variable.name) kept.current = { name: variable.name, kinds: {} };
  const { kinds } = kept.current;
  kinds[kind] = variable;
  const rename = (name: string) => {
    kept.current = { name, kinds };
    onChange({ ...variable, name });
  };
  return (
    <>
      <input
        class="mono"
        aria-label={`Name of ${label}`}
        placeholder="NAME"
        value={variable.name}
        onInput={({ currentTarget }) => rename(currentTarget.value)}
      />
      <select
        aria-label={`Where ${label} is from`}
        value={kind}
        onChange={({ currentTarget }) => {
          const next = currentTarget.value as Kind;
          const { name } = variable;
          onChange({ ...(kinds[next] ?? ofKind(name, next)), name });
        }}
      >
        <option value="value">Value</option>
        <option value="secret">Secret</option>
        <option value="configMap">ConfigMap</option>
        {(kind === "other" || kinds.other) && <option value="other">Other (see YAML)</option>}
      </select>
      {kind === "value" && (
        <ValueField
          label={`Value of ${label}`}
          value={variable.value ?? ""}
          onChange={(value) => onChange({ name: variable.name, value })}
        />
      )}
      {kind === "other" && <code class="clip grow">{otherText(variable)}</code>}
      {(kind === "secret" || kind === "configMap") && <KeyFields {...props} />}
    </>
  );
}

/** As many lines as the value has, with its own line ends: a key in PEM stays one. */
function ValueField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const shown = withPlainEnds(value);
  return (
    <textarea
      class="mono value"
      aria-label={label}
      spellcheck={false}
      rows={Math.min(shown.split("\n").length, 8)}
      value={shown}
      onInput={({ currentTarget }) => onChange(withEndsOf(value, currentTarget.value))}
    />
  );
}

/** `fieldRef: metadata.name`. */
const otherText = ({ valueFrom }: EnvVar): string =>
  Object.entries(valueFrom ?? {})
    .map(
      ([kind, from]) =>
        `${kind}: ${Object.values(from ?? {})
          .map(String)
          .join(" ")}`,
    )
    .join(", ");

function ofKind(name: string, kind: Kind): EnvVar {
  if (kind === "value" || kind === "other") return { name, value: "" };
  const ref = { name: "", key: "" };
  return { name, valueFrom: kind === "secret" ? { secretKeyRef: ref } : { configMapKeyRef: ref } };
}

/** An object and a key. The names of existing objects are suggested to users who may list them. */
function KeyFields({ namespace, variable, label, onChange }: VariableProps) {
  const isSecret = kindOf(variable) === "secret";
  const field = isSecret ? "secretKeyRef" : "configMapKeyRef";
  const ref = variable.valueFrom?.[field] ?? { name: "", key: "" };
  const change = (part: { name?: string; key?: string }) =>
    onChange({ name: variable.name, valueFrom: { [field]: { ...ref, ...part } } });
  const listId = `${isSecret ? "secrets" : "configmaps"}-of-${namespace}`;
  const mayList = may(namespace, "list", isSecret ? "secrets" : "configmaps", "");
  return (
    <div class="row">
      <input
        class="mono grow"
        aria-label={`${isSecret ? "Secret" : "ConfigMap"} of ${label}`}
        placeholder={isSecret ? "Secret" : "ConfigMap"}
        list={listId}
        value={ref.name ?? ""}
        onInput={({ currentTarget }) => change({ name: currentTarget.value })}
      />
      <input
        class="mono grow"
        aria-label={`Key of ${label}`}
        placeholder="key"
        value={ref.key}
        onInput={({ currentTarget }) => change({ key: currentTarget.value })}
      />
      {mayList &&
        (isSecret ? (
          <SecretNames id={listId} namespace={namespace} />
        ) : (
          <ConfigMapNames id={listId} namespace={namespace} />
        ))}
    </div>
  );
}

/** Only names: the content of Secrets does not stay in the tab. */
const namesOnly = {
  kind: "names",
  transform: <T extends KubeObject>({ metadata }: T) => ({ metadata }) as T,
};

function SecretNames({ id, namespace }: { id: string; namespace: string }) {
  const { items } = useLive(resources.secrets, { namespace, keep: namesOnly });
  return <Names id={id} names={items.value.map(({ metadata }) => metadata.name ?? "")} />;
}

function ConfigMapNames({ id, namespace }: { id: string; namespace: string }) {
  const { items } = useLive(resources.configMaps, { namespace, keep: namesOnly });
  return <Names id={id} names={items.value.map(({ metadata }) => metadata.name ?? "")} />;
}

function Names({ id, names }: { id: string; names: string[] }) {
  return (
    <datalist id={id}>
      {names.sort().map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}
