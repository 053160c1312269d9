import { apiRules } from "@spry/function";
import { isNotFound } from "@spry/kube";
import { confirm } from "../confirm.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { UserError } from "../user-error.ts";

export interface UnexposeOptions extends GlobalOptions {
  yes?: boolean;
}

/** Deletes the APIRule that `spry expose` wrote: the Function has no public host any more. */
export async function unexpose(name: string, options: UnexposeOptions): Promise<void> {
  const { client, namespace } = await connect(options);
  const { spec, metadata } = await client
    .get(apiRules, { namespace, name })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
      throw new UserError(
        `${name} is not exposed: APIRule ${name} not found in namespace ${namespace}`,
        "`spry expose FUNCTION` exposes a Function",
      );
    });
  const hosts = (spec.hosts ?? []).join(", ");
  await confirm(
    `Delete APIRule ${name} in namespace ${namespace}, with the host ${hosts}?`,
    options.yes,
  );
  const { uid } = metadata;
  await client.delete(
    apiRules,
    { namespace, name },
    uid === undefined ? {} : { preconditions: { uid } },
  );
  console.error(`apirule/${name} deleted: ${hosts} no longer leads to ${name}`);
}
