import {
  type ApiRule,
  apiRules,
  type Function,
  functionRevisions,
  functions,
  labels,
  revisionsOf,
  type Subscription,
  subscriptions,
} from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { client } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { navigate, paths } from "../../router.ts";
import { desiredOf } from "../../state/changes.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { toast } from "../../ui/toasts.tsx";
import { type TabProps } from "./tab-props.ts";

/** Shows what is deleted with a Function, and what stays. The deletion can be undone for a while. */
export function DeleteDialog({
  fn,
  pods,
  onClose,
}: Pick<TabProps, "fn" | "pods"> & { onClose: () => void }) {
  const { namespace = "", name = "" } = fn.metadata;
  const revisions = useLive(functionRevisions, {
    namespace,
    labelSelector: `${labels.functionName}=${name}`,
  });
  const rules = useLive<ApiRule>(apiRules, { namespace });
  const fed = useLive<Subscription>(subscriptions, { namespace });
  const subscribed = fed.items.value.filter(({ spec }) => sinkOf(spec.sink) === name);
  const count = revisionsOf(fn, revisions.items.value).length;
  const exposing = rules.items.value.filter(({ spec }) => refersTo(spec, name));
  const remove = async () => {
    await client.delete(functions, { namespace, name }, { propagationPolicy: "Foreground" });
    navigate(paths.functions());
    toast("idle", `Function ${name} is deleted.`, { label: "Undo", run: () => void restore(fn) });
  };
  return (
    <ActionDialog
      title={`Delete Function ${name}?`}
      verb="Delete"
      kind="danger"
      failureTitle="It was not deleted"
      onAction={remove}
      onClose={onClose}
    >
      <p>Deleted with it:</p>
      <ul class="stack tight">
        <li>
          {pods.length === 1 ? "its Pod" : `its ${pods.length} Pods`}: requests are no longer
          answered
        </li>
        <li>its Deployment, Service and autoscaler, and its builds with their logs</li>
        <li>its history of {count === 1 ? "1 version" : `${count} versions`}, and their images</li>
      </ul>
      {exposing.length > 0 && (
        <p>
          {exposing.map(({ metadata }) => `APIRule ${metadata.name}`).join(", ")} refers to it and
          stays: its hosts will respond with 503.
        </p>
      )}
      {subscribed.length > 0 && (
        <p>
          {subscribed.map(({ metadata }) => `Subscription ${metadata.name}`).join(", ")} sends
          events to it and stays: they are retried, and become dead letters.
        </p>
      )}
      <p class="muted">Secrets and ConfigMaps that it uses stay as they are.</p>
    </ActionDialog>
  );
}

/** The Service of a sink in the cluster. */
const sinkOf = (sink: string): string | undefined => /^http:\/\/([a-z0-9-]+)\./.exec(sink)?.[1];

function refersTo(spec: unknown, name: string): boolean {
  return JSON.stringify(spec ?? {}).includes(`"name":${JSON.stringify(name)}`);
}

/** Creates the Function again, as it was; its history starts over. */
async function restore(fn: Function): Promise<void> {
  const { namespace = "", name = "" } = fn.metadata;
  const { metadata, spec } = desiredOf(fn);
  // The name stays taken until the deletion has finished.
  for (let attempt = 1; ; attempt++) {
    try {
      await client.create(functions, { metadata: { namespace, name, ...metadata }, spec });
      return navigate(paths.fn(namespace, name));
    } catch (error) {
      if (attempt >= 20) return toast("bad", `${name} was not created again: ${messageOf(error)}`);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}
