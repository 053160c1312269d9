import { type Node, quantityValue, resources } from "@spry/kube/browser";
import { useLive } from "../api/live.ts";
import { Age, Empty, Problem, State } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";

/** Where Functions run: what each node is, how it isolates Pods, and how full it is. */
export function NodesView() {
  const { items, isReady, problem } = useLive(resources.nodes);
  const pods = useLive(resources.pods);
  return (
    <Frame title="Nodes">
      {problem.value && !isReady.value && (
        <Problem tone="warn" title="You may not see nodes" text={problem.value} />
      )}
      {isReady.value && items.value.length === 0 && (
        <Empty title="No nodes">Nothing can run without one.</Empty>
      )}
      <div class="cards">
        {items.value.map((node) => {
          const own = pods.items.value.filter(
            ({ spec, status }) =>
              spec?.nodeName === node.metadata.name &&
              !["Succeeded", "Failed"].includes(status?.phase ?? ""),
          );
          return (
            <section key={node.metadata.uid} class="panel">
              <div class="head">
                <h2>{node.metadata.name}</h2>
                <Ready node={node} />
              </div>
              <dl class="body pairs">
                <dt>Pods</dt>
                <dd>
                  {pods.isReady.value ? own.length : "–"} of {node.status?.capacity?.["pods"]}
                </dd>
                <dt>CPU</dt>
                <dd>{node.status?.capacity?.["cpu"]}</dd>
                <dt>Memory</dt>
                <dd>{gibibytes(node.status?.capacity?.["memory"])}</dd>
                <dt>Kubelet</dt>
                <dd>{node.status?.nodeInfo?.kubeletVersion}</dd>
                <dt>Runtime</dt>
                <dd>{node.status?.nodeInfo?.containerRuntimeVersion}</dd>
                <dt>System</dt>
                <dd>
                  {node.status?.nodeInfo?.osImage}, {node.status?.nodeInfo?.architecture}
                </dd>
                <dt>Age</dt>
                <dd>
                  <Age time={node.metadata.creationTimestamp} />
                </dd>
              </dl>
            </section>
          );
        })}
      </div>
    </Frame>
  );
}

function Ready({ node }: { node: Node }) {
  const conditions = node.status?.conditions ?? [];
  const pressure = conditions.find(({ type, status }) => type !== "Ready" && status === "True");
  if (pressure) return <State tone="warn">{pressure.type}</State>;
  const isReady = conditions.some(({ type, status }) => type === "Ready" && status === "True");
  return isReady ? <State tone="good">ready</State> : <State tone="bad">not ready</State>;
}

const gibibytes = (quantity: string | undefined): string =>
  quantity === undefined ? "" : `${(quantityValue(quantity) / 1024 ** 3).toFixed(1)} GiB`;
