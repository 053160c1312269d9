import { subscriptions } from "@spry/function/browser";
import { client } from "../../api/client.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { FunctionField, type FunctionName, functionNameShape } from "../../ui/function-field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { toast } from "../../ui/toasts.tsx";
import { useKept } from "../../ui/use-kept.ts";

const empty = { target: undefined as FunctionName | undefined, types: "", source: "" };
const shape = { target: functionNameShape, types: "text", source: "text" } as const;

/** Which events a Function gets. Filters, retries and order are set in YAML. */
export function SubscribeDialog({
  namespace,
  onClose,
}: {
  namespace: string | undefined;
  onClose: () => void;
}) {
  const { value, change, forget } = useKept("subscribe", empty, shape);
  const { target, types, source } = value;
  const create = async ({ namespace, name }: FunctionName) => {
    const named = types.split(/[\s,]+/).filter(Boolean);
    await client.create(subscriptions, {
      metadata: { generateName: `${name}-`, namespace },
      spec: {
        sink: `http://${name}.${namespace}.svc.cluster.local`,
        typeMatching: "exact",
        source,
        types: named,
      },
    });
    toast("good", `${name} gets events of ${named.join(", ")}.`);
    forget();
    onClose();
  };
  return (
    <ActionDialog
      title="Subscribe a Function to events"
      verb="Create"
      isDisabled={!target || types.trim() === ""}
      failureTitle="The Subscription was not created"
      onAction={async () => target && create(target)}
      onClose={onClose}
    >
      <FunctionField
        namespace={namespace}
        value={target}
        onChange={(target) => change({ target })}
      />
      <TextField
        label="Types of events"
        hint="separated by commas, such as order.created.v1"
        value={types}
        onChange={(types) => change({ types })}
      />
      <TextField
        label="Source"
        hint="the source attribute of the events"
        value={source}
        onChange={(source) => change({ source })}
      />
    </ActionDialog>
  );
}
