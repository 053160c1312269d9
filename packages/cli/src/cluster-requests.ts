/** Requests to a cluster of a kubeconfig. What stands in their way is a sentence that names the place in the kubeconfig. */
import { type ClusterConfig, messageOf, type Transport, transportOf } from "@spry/kube";
import { startCommand } from "./shown-command.ts";
import { UserError } from "./user-error.ts";

/** `isLocal`: the platform of one machine, which may just not run. */
export function explained(
  transport: Transport,
  config: ClusterConfig,
  isLocal: boolean,
): Transport {
  const { ask } = transport;
  const sent = async <T extends { status: number }>(
    answer: Promise<T>,
    { signal, isPage }: { signal: AbortSignal | undefined; isPage: (answer: T) => boolean },
  ): Promise<T> => {
    let response: T;
    try {
      response = await answer;
    } catch (error) {
      if (signal?.aborted) throw error;
      throw unreachable(messageOf(error), config, isLocal);
    }
    if (response.status === 401) throw refusedLogin(config, isLocal);
    if (isPage(response))
      throw new UserError(
        `${config.server} answers with a web page: it is not an API server of Kubernetes`,
        `check the server${ofContext(config)} in the kubeconfig`,
      );
    return response;
  };
  return transportOf(
    (request) =>
      sent(transport(request), {
        signal: request.signal,
        isPage: ({ headers }) => /^text\/html\b/.test(headers.get("content-type") ?? ""),
      }),
    ask &&
      ((request) =>
        sent(ask(request), {
          signal: request.signal,
          isPage: ({ text }) => /^\s*</.test(text),
        })),
  );
}

const ofContext = ({ context }: ClusterConfig): string =>
  context === undefined ? "" : ` of the context ${context}`;

function refusedLogin(config: ClusterConfig, isLocal: boolean): UserError {
  return new UserError(
    `the API server ${config.server} does not accept the login${ofContext(config)}: it is wrong, or has expired`,
    isLocal
      ? "take the kubeconfig that the platform has in its data directory"
      : "log in to the cluster again, or choose another context with kubectl config use-context",
  );
}

function unreachable(message: string, config: ClusterConfig, isLocal: boolean): UserError {
  const { server, exec } = config;
  const plugin = exec && /\brunning [^]+$/.exec(message)?.[0];
  if (exec && plugin?.startsWith(`running ${exec.command}: `)) {
    const isMissing = plugin.includes(": command not found");
    return new UserError(
      `the login${ofContext(config)} failed: ${plugin}`,
      isMissing
        ? "install the program that the kubeconfig names, or choose another context with kubectl config use-context"
        : "log in to the cluster again",
    );
  }
  // The address is in the sentence already.
  const why = message.replace(/^calling [A-Z]+ \S+: /, "").trim();
  const at = `the API server ${server} cannot be reached`;
  if (/wrong version number|packet length too long/.test(why))
    return new UserError(
      `${at}: it does not speak HTTPS`,
      `check the server${ofContext(config)} in the kubeconfig`,
    );
  if (/certificate/.test(why))
    return new UserError(
      `${at}: its certificate is not trusted: ${why}`,
      isLocal
        ? "another platform answers there: take the kubeconfig of that one's data directory"
        : "check server and certificate-authority-data in the kubeconfig",
    );
  return new UserError(
    `${at}: ${why}`,
    isLocal
      ? `is the platform running? \`${startCommand()}\` starts it`
      : `check the server${ofContext(config)} in the kubeconfig, and the network on the way to it`,
  );
}
