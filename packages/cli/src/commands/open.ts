import { connect, type GlobalOptions, urlOf } from "../connection.ts";
import { exposedUrl } from "../expose/exposed-url.ts";
import { findFunction } from "../find-function.ts";
import { openBrowser } from "../open-browser.ts";
import { UserError } from "../user-error.ts";

/** Opens a Function's address in the browser, and prints it: the one of an APIRule, or else its own. */
export async function open(name: string, options: GlobalOptions): Promise<void> {
  const { client, namespace, gateway, gatewayTls } = await connect(options);
  await findFunction(client, namespace, name);
  const url =
    (await exposedUrl(client, { namespace, name }, gatewayTls)) ??
    (gateway && urlOf(gateway, name, namespace));
  if (!url)
    throw new UserError(
      "the kubeconfig does not name a gateway through which Functions can be reached",
      `kubectl port-forward -n ${namespace} service/${name} 8080:80 makes it reachable`,
    );
  console.log(url);
  openBrowser(url, () => console.error("a browser could not be started: open the address above"));
}
