import { useState } from "preact/hooks";
import { functions, subscriptions } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { client } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { listedFunctions } from "../../state/listed-functions.ts";
import { Dialog, Field, Problem } from "../../ui/basics.tsx";
import { toast } from "../../ui/toasts.tsx";

/** Which events a Function is to get. More (filters, retries, order) is said in YAML. */
export function SubscribeDialog({
  namespace,
  onClose,
}: {
  namespace: string | undefined;
  onClose: () => void;
}) {
  const { items } = useLive(functions, { namespace, keep: listedFunctions });
  const [target, setTarget] = useState("");
  const [types, setTypes] = useState("");
  const [source, setSource] = useState("");
  const [failure, setFailure] = useState("");
  const create = async () => {
    const [inNamespace = "", name = ""] = target.split("/");
    const named = types.split(/[\s,]+/).filter(Boolean);
    try {
      await client.create(subscriptions, {
        metadata: { generateName: `${name}-`, namespace: inNamespace },
        spec: {
          sink: `http://${name}.${inNamespace}.svc.cluster.local`,
          typeMatching: "exact",
          source,
          types: named,
        },
      });
      toast("good", `${name} gets events of ${named.join(", ")}.`);
      onClose();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return (
    <Dialog
      title="Subscribe a Function to events"
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            class="primary"
            disabled={target === "" || types.trim() === ""}
            onClick={() => void create()}
          >
            Create
          </button>
        </>
      }
    >
      <Field label="Function">
        {(ids) => (
          <select
            {...ids}
            value={target}
            onChange={({ currentTarget }) => setTarget(currentTarget.value)}
          >
            <option value="">Choose …</option>
            {items.value.map(({ metadata }) => (
              <option key={metadata.uid} value={`${metadata.namespace}/${metadata.name}`}>
                {metadata.namespace}/{metadata.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Types of events" hint="separated by commas, such as order.created.v1">
        {(ids) => (
          <input
            {...ids}
            class="mono"
            value={types}
            onInput={({ currentTarget }) => setTypes(currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Source" hint="which source the events are of, as they name it">
        {(ids) => (
          <input
            {...ids}
            class="mono"
            value={source}
            onInput={({ currentTarget }) => setSource(currentTarget.value)}
          />
        )}
      </Field>
      {failure && <Problem title="The Subscription was not created" text={failure} />}
    </Dialog>
  );
}
