import { useRef } from "preact/hooks";
import { type Subscription, subscriptions } from "@spry/function/browser";
import { deepEqual } from "@spry/kube/browser";
import { client } from "../../api/client.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { FunctionField, type FunctionName, functionNameShape } from "../../ui/function-field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { toast } from "../../ui/toasts.tsx";
import { useKept } from "../../ui/use-kept.ts";

const empty = { target: undefined as FunctionName | undefined, types: "", source: "" };
const shape = { target: functionNameShape, types: "text", source: "text" } as const;

/** Which events a Function gets, of a new Subscription or of one that exists. Filters, retries and order are set in YAML. */
export function SubscribeDialog({
  namespace,
  subscription,
  onClose,
}: {
  namespace: string | undefined;
  /** Absent for a new one. */
  subscription?: Subscription | undefined;
  onClose: () => void;
}) {
  // As it was when the dialogue was opened: that is what is changed.
  const before = useRef(subscription).current;
  const { value, change, forget } = useKept(
    before ? `subscribe ${before.metadata.uid}` : "subscribe",
    before
      ? { ...empty, types: before.spec.types.join(", "), source: before.spec.source ?? "" }
      : empty,
    shape,
  );
  const { target, types, source } = value;
  const named = types.split(/[\s,]+/).filter(Boolean);
  const create = async ({ namespace, name }: FunctionName) => {
    await client.create(subscriptions, {
      metadata: { generateName: `${name}-`, namespace },
      spec: {
        sink: `http://${name}.${namespace}.svc.cluster.local`,
        typeMatching: "exact",
        source,
        types: named,
      },
    });
    return `${name} gets events of ${named.join(", ")}.`;
  };
  const update = async (edited: Subscription) => {
    const { namespace, name = "" } = edited.metadata;
    const current = await client.get<Subscription>(subscriptions, { namespace, name });
    if (
      !deepEqual([current.spec.types, current.spec.source], [edited.spec.types, edited.spec.source])
    )
      throw new Error(
        `another user has changed it meanwhile, to the types ${current.spec.types.join(", ")} of the source ${current.spec.source}: close this, and open it again`,
      );
    const { resourceVersion = "" } = current.metadata;
    await client.patch(
      subscriptions,
      { namespace, name },
      { metadata: { resourceVersion }, spec: { types: named, source } },
    );
    return `Subscription ${name} is changed.`;
  };
  return (
    <ActionDialog
      title={before ? `Subscription ${before.metadata.name}` : "Subscribe a Function to events"}
      verb={before ? "Apply" : "Create"}
      isDisabled={(!before && !target) || named.length === 0}
      failureTitle={
        before ? "The Subscription was not changed" : "The Subscription was not created"
      }
      onAction={async () => {
        const done = before ? update(before) : target && create(target);
        if (!done) return;
        toast("good", await done);
        forget();
        onClose();
      }}
      onClose={() => {
        // What others may change is not kept, as a new one is.
        if (before) forget();
        onClose();
      }}
    >
      {!before && (
        <FunctionField
          namespace={namespace}
          value={target}
          onChange={(target) => change({ target })}
        />
      )}
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
