import { type EnvVar, type KubeObject, resources } from "@spry/kube/browser";
import { useLive } from "../../api/live.ts";
import { may } from "../../state/rights.ts";
import { Icon } from "../../ui/icon.tsx";
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
  const error = problemAt(problems, "spec.env");
  return (
    <fieldset class="stack" disabled={readOnly}>
      <legend>Variables</legend>
      <div class="rows">
        {env.map((each, index) => (
          <div class="one" key={index}>
            <input
              class="mono"
              aria-label={`Name of variable ${index + 1}`}
              placeholder="NAME"
              value={each.name}
              onInput={({ currentTarget }) =>
                replace(index, { ...each, name: currentTarget.value })
              }
            />
            <select
              aria-label={`Where variable ${index + 1} is from`}
              value={kindOf(each)}
              onChange={({ currentTarget }) =>
                replace(index, ofKind(each.name, currentTarget.value as Kind))
              }
            >
              <option value="value">Value</option>
              <option value="secret">Secret</option>
              <option value="configMap">ConfigMap</option>
            </select>
            {kindOf(each) === "value" ? (
              <input
                class="mono"
                aria-label={`Value of variable ${index + 1}`}
                value={each.value ?? ""}
                onInput={({ currentTarget }) =>
                  replace(index, { name: each.name, value: currentTarget.value })
                }
              />
            ) : (
              <KeyFields
                namespace={namespace}
                variable={each}
                label={`variable ${index + 1}`}
                onChange={(next) => replace(index, next)}
              />
            )}
            <button
              type="button"
              class="plain"
              aria-label={`Remove variable ${each.name || index + 1}`}
              onClick={() => set(env.filter((_, at) => at !== index))}
            >
              <Icon name="trash" />
            </button>
          </div>
        ))}
      </div>
      {error !== undefined && <p class="error-text">{error}</p>}
      <div>
        <button type="button" class="small" onClick={() => set([...env, { name: "", value: "" }])}>
          <Icon name="plus" />
          Variable
        </button>
      </div>
    </fieldset>
  );
}

function ofKind(name: string, kind: Kind): EnvVar {
  if (kind === "value") return { name, value: "" };
  const ref = { name: "", key: "" };
  return { name, valueFrom: kind === "secret" ? { secretKeyRef: ref } : { configMapKeyRef: ref } };
}

/** An object and a key. The names of existing objects are suggested to users who may list them. */
function KeyFields({
  namespace,
  variable,
  label,
  onChange,
}: {
  namespace: string;
  variable: EnvVar;
  label: string;
  onChange: (variable: EnvVar) => void;
}) {
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
