import { type EnvVar, type KubeObject, resources } from "@spry/kube/browser";
import { useLive } from "../../api/live.ts";
import { may } from "../../state/rights.ts";
import { FieldRows } from "./field-rows.tsx";
import { type FormProps, problemAt } from "./form.ts";

type Kind = "value" | "secret" | "configMap";

const kindOf = ({ valueFrom }: EnvVar): Kind =>
  valueFrom?.secretKeyRef ? "secret" : valueFrom?.configMapKeyRef ? "configMap" : "value";

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
      error={problemAt(problems, "spec.env")}
      readOnly={readOnly}
    />
  );
}

interface VariableProps {
  namespace: string;
  variable: EnvVar;
  label: string;
  onChange: (variable: EnvVar) => void;
}

function VariableFields(props: VariableProps) {
  const { variable, label, onChange } = props;
  return (
    <>
      <input
        class="mono"
        aria-label={`Name of ${label}`}
        placeholder="NAME"
        value={variable.name}
        onInput={({ currentTarget }) => onChange({ ...variable, name: currentTarget.value })}
      />
      <select
        aria-label={`Where ${label} is from`}
        value={kindOf(variable)}
        onChange={({ currentTarget }) =>
          onChange(ofKind(variable.name, currentTarget.value as Kind))
        }
      >
        <option value="value">Value</option>
        <option value="secret">Secret</option>
        <option value="configMap">ConfigMap</option>
      </select>
      {kindOf(variable) === "value" ? (
        <input
          class="mono"
          aria-label={`Value of ${label}`}
          value={variable.value ?? ""}
          onInput={({ currentTarget }) =>
            onChange({ name: variable.name, value: currentTarget.value })
          }
        />
      ) : (
        <KeyFields {...props} />
      )}
    </>
  );
}

function ofKind(name: string, kind: Kind): EnvVar {
  if (kind === "value") return { name, value: "" };
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
