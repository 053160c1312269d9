import { type IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { subscriptions } from "@spry/function";
import { type KubeClient, type KubeObject, type Resource } from "@spry/kube";

/** As the API server knows them. */
export interface User {
  username: string;
  groups?: string[] | undefined;
  uid?: string | undefined;
  extra?: Record<string, string[]> | undefined;
}

interface TokenReview extends KubeObject {
  spec: { token: string };
  status?: { authenticated?: boolean; user?: User };
}
interface SubjectAccessReview extends KubeObject {
  spec: object;
  status?: { allowed?: boolean };
}

const tokenReviews: Resource<TokenReview> = {
  group: "authentication.k8s.io",
  version: "v1",
  kind: "TokenReview",
  plural: "tokenreviews",
  namespaced: false,
};
const accessReviews: Resource<SubjectAccessReview> = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
};

/** What the caller wants to do, in Kubernetes' terms; the group is that of Subscriptions. */
export interface Access {
  verb: string;
  /** With a subresource: `subscriptions/deadletters`. */
  resource: string;
  namespace?: string;
  name?: string;
}

/** No API server issues longer ones. */
const maxTokenLength = 32 * 1024;

/** Known by a client certificate that the server has verified, or by a token of the API server; undefined without either. */
export async function callerOf(
  client: KubeClient,
  { socket, headers }: IncomingMessage,
): Promise<User | undefined> {
  if (socket instanceof TLSSocket && socket.authorized) {
    const { subject } = socket.getPeerCertificate();
    const { CN: name, O: groups = [] } = (subject ?? {}) as { CN?: string; O?: string | string[] };
    if (name) return { username: name, groups: [...[groups].flat(), "system:authenticated"] };
  }
  const [, token = ""] = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? "") ?? [];
  if (token === "" || token.length > maxTokenLength) return undefined;
  const { status } = await client.create(tokenReviews, { metadata: {}, spec: { token } });
  return status?.authenticated ? status.user : undefined;
}

export async function isAllowed(client: KubeClient, user: User, access: Access): Promise<boolean> {
  const [resource, subresource] = access.resource.split("/");
  const { verb, namespace, name } = access;
  const { status } = await client.create(accessReviews, {
    metadata: {},
    spec: {
      user: user.username,
      groups: user.groups ?? [],
      ...(user.uid ? { uid: user.uid } : {}),
      ...(user.extra ? { extra: user.extra } : {}),
      resourceAttributes: {
        group: subscriptions.group,
        verb,
        resource,
        ...(subresource ? { subresource } : {}),
        ...(namespace === undefined ? {} : { namespace }),
        ...(name === undefined ? {} : { name }),
      },
    },
  });
  return status?.allowed === true;
}
