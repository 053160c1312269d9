import { type KubeClient } from "@spry/kube";
import { ensureSharedToken, readSharedToken } from "./shared-token.ts";

/** The Secret of what the scaler shows to gateways; gateways may read it by this name (install/gateway.ts). */
export const countsTokenName = "serverless-gateway-counts";

/** For gateways: undefined as long as no leader has made it. */
export const readCountsToken = (
  client: KubeClient,
  namespace: string,
): Promise<string | undefined> => readSharedToken(client, { namespace, name: countsTokenName });

/** For the leader: made when there is none, also after it has been deleted. */
export const ensureCountsToken = (client: KubeClient, namespace: string): Promise<string> =>
  ensureSharedToken(client, { namespace, name: countsTokenName });
