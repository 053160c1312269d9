import { functions } from "@spry/function/browser";
import { useLive } from "../api/live.ts";
import { listedFunctions } from "../state/listed-functions.ts";
import { Field } from "./basics.tsx";

export interface FunctionName {
  namespace: string;
  name: string;
}

/** Of what is stored of it. */
export const functionNameShape = { "namespace!": "text", "name!": "text" } as const;

/** A choice of one Function, of the namespace or of all namespaces. */
export function FunctionField({
  namespace,
  value,
  onChange,
}: {
  namespace: string | undefined;
  value: FunctionName | undefined;
  onChange: (chosen: FunctionName | undefined) => void;
}) {
  const { items } = useLive(functions, { namespace, keep: listedFunctions });
  const choose = (path: string) => {
    const [inNamespace = "", name = ""] = path.split("/");
    onChange(path === "" ? undefined : { namespace: inNamespace, name });
  };
  return (
    <Field label="Function">
      {(ids) => (
        <select
          {...ids}
          value={value ? pathOf(value) : ""}
          onChange={({ currentTarget }) => choose(currentTarget.value)}
        >
          <option value="">Choose …</option>
          {items.value.map(({ metadata: { uid, namespace = "", name = "" } }) => (
            <option key={uid} value={pathOf({ namespace, name })}>
              {pathOf({ namespace, name })}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

const pathOf = ({ namespace, name }: FunctionName): string => `${namespace}/${name}`;
