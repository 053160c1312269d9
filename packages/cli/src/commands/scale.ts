import { functions } from "@spry/function";
import { fieldManager } from "../apply-object.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction } from "../find-function.ts";
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
}
