import { connect, type GlobalOptions, urlOf } from "../connection.ts";
import { findFunction } from "../find-function.ts";
import { openBrowser } from "../open-browser.ts";
import { UserError } from "../user-error.ts";

/** Opens a Function's address in the browser, and prints it. */
export async function open(name: string, options: GlobalOptions): Promise<void> {
  const { client, namespace, gateway } = await connect(options);
  await findFunction(client, namespace, name);
  if (!gateway)
    throw new UserError(
      "the kubeconfig does not name a gateway through which Functions can be reached",
      `kubectl port-forward -n ${namespace} service/${name} 8080:80 makes it reachable`,
    );
  const url = urlOf(gateway, name, namespace);
  console.log(url);
  openBrowser(url, () => console.error("a browser could not be started: open the address above"));
}
