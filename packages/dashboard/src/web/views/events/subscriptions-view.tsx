import { useState } from "preact/hooks";
import { type Subscription, subscriptions } from "@spry/function/browser";
import { messageOf } from "@spry/kube/browser";
import { client } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { useNamespaceNames } from "../../api/namespace-names.ts";
import { paths, query } from "../../router.ts";
import { type QueueState, queueStates } from "../../state/events-admin.ts";
import { type Tone } from "../../state/function-state.ts";
import { may, namespaceForNew } from "../../state/rights.ts";
import { Empty, State } from "../../ui/basics.tsx";
import { Icon } from "../../ui/icon.tsx";
import { toast } from "../../ui/toasts.tsx";
import { usePolled } from "../../ui/use-polled.ts";
import { TableView } from "../../ui/table-view.tsx";
import { DeadLettersDialog } from "./dead-letters-dialog.tsx";
import { SubscribeDialog } from "./subscribe-dialog.tsx";

export const eventingGroup = "eventing.kyma-project.io";
const pollMs = 2_000;
/** With more namespaces, only the first ones are polled: users then choose a namespace. */
const maxNamespaces = 20;

/** Which Functions get which events, how far the delivery is, and what could not be delivered. */
export function SubscriptionsView() {
  const namespace = query.value.get("ns") ?? undefined;
  const live = useLive<Subscription>(subscriptions, { namespace });
  const [isSubscribing, setSubscribing] = useState(false);
  const [edited, setEdited] = useState<Subscription>();
  const [shown, setShown] = useState<{ namespace: string; name: string }>();
  const namespaces = [...new Set(live.items.value.map(({ metadata }) => metadata.namespace ?? ""))];
  const states = useQueueStates(namespaces.slice(0, maxNamespaces));
  const known = useNamespaceNames();
  const forNew = namespaceForNew(namespace, known, "subscriptions", eventingGroup);
  const subscribe = forNew !== undefined && (
    <button type="button" class="primary" onClick={() => setSubscribing(true)}>
      <Icon name="plus" />
      Subscribe
    </button>
  );
  return (
    <TableView
      title="Events"
      actions={subscribe}
      namespace={namespace}
      live={live}
      problemTitle="Subscriptions cannot be listed"
      empty={
        <Empty title="No Subscriptions" actions={subscribe}>
          A Subscription sends events of a type to a Function: at least once, with retries. What
          cannot be delivered is kept here, to be looked at and sent again.
        </Empty>
      }
      heads={["Name", "State", "Types", "Sink", "Waiting", "Retried", "Dead letters", ""]}
      rows={live.items.value.map((each) => {
        const { name = "", namespace = "" } = each.metadata;
        const state = states.get(`${namespace}/${name}`);
        const { tone, word, note } = stateOf(each);
        return (
          <tr key={each.metadata.uid}>
            <td>
              <strong>{name}</strong>
              <div class="muted">{namespace}</div>
            </td>
            <td>
              <State tone={tone}>{word}</State>
              {note && <div class="muted">{note}</div>}
            </td>
            <td class="mono">{each.spec.types.join(", ")}</td>
            <td>
              <Sink subscription={each} />
            </td>
            <td>{state ? state.waiting + state.inFlight : "–"}</td>
            <td>{state?.retrying ?? "–"}</td>
            <td>
              {state && state.dead > 0 ? (
                <button
                  type="button"
                  class="small danger"
                  onClick={() => setShown({ namespace, name })}
                >
                  {state.dead} dead {state.dead === 1 ? "letter" : "letters"}
                </button>
              ) : (
                (state?.dead ?? "–")
              )}
            </td>
            <td class="nowrap">
              {may(namespace, "patch", "subscriptions", eventingGroup) && (
                <button
                  type="button"
                  class="small"
                  aria-label={`Edit Subscription ${name}`}
                  onClick={() => setEdited(each)}
                >
                  Edit
                </button>
              )}{" "}
              {may(namespace, "delete", "subscriptions", eventingGroup) && (
                <button
                  type="button"
                  class="plain small"
                  aria-label={`Delete Subscription ${name}`}
                  onClick={() => void remove(each)}
                >
                  <Icon name="trash" />
                </button>
              )}
            </td>
          </tr>
        );
      })}
    >
      {isSubscribing && (
        <SubscribeDialog namespace={namespace} onClose={() => setSubscribing(false)} />
      )}
      {edited && (
        <SubscribeDialog
          key={edited.metadata.uid}
          namespace={namespace}
          subscription={edited}
          onClose={() => setEdited(undefined)}
        />
      )}
      {shown && <DeadLettersDialog {...shown} onClose={() => setShown(undefined)} />}
    </TableView>
  );
}

async function remove(subscription: Subscription): Promise<void> {
  const { name = "", namespace = "" } = subscription.metadata;
  try {
    await client.delete(subscriptions, { namespace, name });
    toast("idle", `Subscription ${name} is deleted.`, {
      label: "Undo",
      run: () => void restore(subscription),
    });
  } catch (error) {
    toast("bad", `${name} was not deleted: ${messageOf(error)}`);
  }
}

async function restore({ metadata, spec }: Subscription): Promise<void> {
  const { name = "", namespace = "", labels = {} } = metadata;
  try {
    await client.create(subscriptions, { metadata: { name, namespace, labels }, spec });
  } catch (error) {
    toast("bad", `${name} was not created again: ${messageOf(error)}`);
  }
}

/** By `namespace/name`; polled while the view is shown. Empty without rights. */
function useQueueStates(namespaces: string[]): ReadonlyMap<string, QueueState> {
  const load = async () => {
    const found = await Promise.all(
      namespaces.map(async (namespace): Promise<[string, QueueState][]> => {
        const items = await queueStates(namespace).catch(() => []);
        return items.map((state) => [`${namespace}/${state.name}`, state]);
      }),
    );
    return new Map(found.flat());
  };
  return usePolled(namespaces.join(","), load, pollMs).value ?? new Map<string, QueueState>();
}

function stateOf({ status }: Subscription): { tone: Tone; word: string; note: string } {
  if (status?.ready) return { tone: "good", word: "ready", note: "" };
  const failed = status?.conditions?.find((each) => each.status === "False");
  if (failed) return { tone: "bad", word: failed.reason ?? "failed", note: failed.message ?? "" };
  return { tone: "busy", word: "starting", note: "" };
}

function Sink({ subscription: { spec, metadata } }: { subscription: Subscription }) {
  const service = /^http:\/\/([a-z0-9-]+)\./.exec(spec.sink)?.[1];
  if (service === undefined) return <span class="mono">{spec.sink}</span>;
  return <a href={paths.fn(metadata.namespace ?? "", service)}>{service}</a>;
}
