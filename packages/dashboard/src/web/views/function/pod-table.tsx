import { type Pod } from "@spry/kube/browser";
import { isReady, podProblem } from "../../state/chain.ts";
import { Age, State } from "../../ui/basics.tsx";
import { Table } from "../../ui/table.tsx";

export function PodTable({ pods }: { pods: readonly Pod[] }) {
  return (
    <Table isPanel heads={["Pod", "State", "Restarts", "Node", "Age"]}>
      {pods.map((pod) => (
        <tr key={pod.metadata.uid}>
          <td class="mono">{pod.metadata.name}</td>
          <td>
            <PodState pod={pod} />
          </td>
          <td>{pod.status?.containerStatuses?.[0]?.restartCount ?? 0}</td>
          <td class="muted">{pod.spec?.nodeName}</td>
          <td class="muted">
            <Age time={pod.metadata.creationTimestamp} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function PodState({ pod }: { pod: Pod }) {
  if (pod.metadata.deletionTimestamp) return <State tone="idle">ending</State>;
  const problem = podProblem(pod);
  if (problem !== undefined) return <State tone="bad">{problem}</State>;
  return isReady(pod) ? <State tone="good">ready</State> : <State tone="busy">starting</State>;
}
