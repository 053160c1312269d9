import { functions } from "@spry/function";
import { type KubeClient, resources } from "@spry/kube";
import { fieldManager } from "../apply-object.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";

/** Sets how many instances run; refused where the Function scales by itself. */
export async function scale(name: string, replicas: number, options: GlobalOptions): Promise<void> {
  const { client, namespace } = await connect(options);
  const { spec } = await findFunction(client, namespace, name);
  if (spec.scaleConfig)
    throw new UserError(
      `${name} scales by itself, from ${spec.scaleConfig.minReplicas} to ${spec.scaleConfig.maxReplicas}`,
      "change scale in its spry.yaml, or spec.scaleConfig",
    );
  await client.patch(functions, { namespace, name }, { spec: { replicas } }, { fieldManager });
  console.error(`function/${name} scaled to ${replicas}`);
  const room = await roomForPods(client);
  if (room !== undefined && replicas > room)
    console.error(
      wrapped(
        `remark: the cluster has room for ${room} Pods: more wait until it has nodes for them`,
        columnsOf(process.stderr),
      ),
    );
}

/** How many Pods all nodes take; undefined where the user may not list them. */
async function roomForPods(client: KubeClient): Promise<number | undefined> {
  try {
    const { items } = await client.list(resources.nodes);
    const rooms = items.map(({ status }) => Number(status?.allocatable?.["pods"]));
    return rooms.reduce((sum, each) => sum + each, 0);
  } catch {
    return undefined;
  }
}
